// Any requests to the registry's endpoints, one after the other, through the real handlers over a database of
// their own, with every kind of caller: none, a wrong token, each role, a certificate.
//
// An input is requests separated by NUL bytes: the caller, the route (a byte each) and the body, in which @0
// to
// @4 stand for the secrets of the callers. In the seeds '0' to '7' are the callers, 'H' and what follows the
// routes. What must hold for all of them:
//   each is answered once, and what says it is JSON is;
//   who is nobody gets nothing but what is open, and nobody but an admin what is an admin's;
//   who may not write changes nothing;
//   no answer shows a secret, but the one that makes it or exchanges it, and no line of the audit does;
//   an admin's token that does not end remains.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/log.h"
#include "registry/server_impl.h"

namespace ringshift::registry {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kRequestsMax = 24;
constexpr int kDrainsMax = 64;

void must(bool holds, const char* what, const std::string& about = "") {
  if (holds) return;
  std::fprintf(stderr, "broken: %s: %s\n", what, about.c_str());
  std::abort();
}

struct Answer {
  int replies = 0, status = 0;
  std::string type, body;
  void reply(int with, std::string_view content_type, std::string_view text) {
    ++replies;
    status = with;
    type = content_type;
    body = text;
  }
};
using AnswerPtr = std::shared_ptr<Answer>;

class HeldStream final : public http::Stream {
 public:
  static std::set<HeldStream*>& all() {
    static std::set<HeldStream*> streams;
    return streams;
  }
  explicit HeldStream(AnswerPtr answer) : answer_(std::move(answer)) { all().insert(this); }
  ~HeldStream() override { all().erase(this); }
  HeldStream(const HeldStream&) = delete;
  HeldStream& operator=(const HeldStream&) = delete;
  bool write(std::string_view chunk) override {
    answer_->body.append(chunk);
    return true;
  }
  [[nodiscard]] std::size_t backlog() const override { return 0; }
  [[nodiscard]] bool closed() const override { return false; }
  void on_closed(std::function<void()>) override {}
  void on_drained(std::function<void()> callback) override { drained_ = std::move(callback); }
  void drain() const {
    if (drained_) drained_();
  }

 private:
  AnswerPtr answer_;
  std::function<void()> drained_;
};

class HeldDeferred final : public http::Deferred {
 public:
  explicit HeldDeferred(AnswerPtr answer) : answer_(std::move(answer)) {}
  void add_header(const std::string&, const std::string&) override {}
  void reply(int status, std::string_view type, std::string_view body) override {
    answer_->reply(status, type, body);
  }

 private:
  AnswerPtr answer_;
};

class HeldExchange final : public http::Exchange {
 public:
  explicit HeldExchange(AnswerPtr answer) : answer_(std::move(answer)) {}
  void reply(int status, std::string_view type, std::string_view body) override {
    answer_->reply(status, type, body);
  }
  void add_header(const std::string&, const std::string&) override {}
  std::unique_ptr<http::Stream> stream(std::string_view type) override {
    answer_->reply(200, type, "");
    return std::make_unique<HeldStream>(answer_);
  }
  std::unique_ptr<http::Deferred> defer() override { return std::make_unique<HeldDeferred>(answer_); }

 private:
  AnswerPtr answer_;
};

enum class Who : std::uint8_t { admin, reader, operates, registers, revoked, wrong, nobody, certified };
constexpr int kCallers = 8;

}  // namespace

struct HandlersForTest {
  using Impl = Server::Impl;

  std::string directory;
  std::array<std::string, 5> secrets;  // Of the first five of Who.

  HandlersForTest() {
    base::set_log_sink(base::LogLevel::off, {});
    // In memory where that is to be had: a disk would see an fsync for each write.
    const std::filesystem::path memory = "/dev/shm";
    const bool has = std::filesystem::is_directory(memory);
    std::string pattern = (has ? memory : std::filesystem::temp_directory_path()) / "ringshift-fuzz-XXXXXX";
    directory = mkdtemp(pattern.data());
    Impl impl;
    impl.options = options("/first.db");
    must(impl.open_state().has_value(), "the database opens");
    const TokenBook::Change by{"the fuzzer", ""};
    secrets[0] = impl.book->create({"root", Role::admin, "*", {}, {}}, 0, by).value();
    must(impl.book->revoke("admin", by).has_value(), "another admin");
    secrets[1] = impl.book->create({"reader", Role::read, "a", {}, {}}, 0, by).value();
    secrets[2] = impl.book->create({"operates", Role::operate, "a", {}, {}}, 0, by).value();
    secrets[3] =
        impl.book->create({"agent", Role::register_own, "a", {"i-*"}, {"10.0.0.0/8"}}, 0, by).value();
    secrets[4] = impl.book->create({"gone", Role::admin, "*", {}, {}}, 0, by).value();
    must(impl.book->revoke("gone", by).has_value(), "revoked");
    must(impl.book->create_certified({"machine", Role::read, "a", {}, {}}, 0, by).has_value(), "certified");
  }
  ~HandlersForTest() { std::filesystem::remove_all(directory); }
  HandlersForTest(const HandlersForTest&) = delete;
  HandlersForTest& operator=(const HandlersForTest&) = delete;

  [[nodiscard]] Options options(const std::string& name) const {
    Options made;
    made.database = directory + name;
    made.auth = true;
    made.requests_per_second = 0;
    return made;
  }

  [[nodiscard]] std::string with_secrets(std::string body) const {
    for (std::size_t at = 0; (at = body.find('@', at)) != std::string::npos; ++at) {
      if (at + 1 >= body.size() || body[at + 1] < '0' || body[at + 1] > '4') continue;
      body.replace(at, 2, secrets[static_cast<std::size_t>(body[at + 1] - '0')]);
    }
    return body;
  }

  [[nodiscard]] http::Request request(Who who, const Impl::Route& route, std::string body) const {
    http::Request made;
    made.method = route.method;
    made.path = route.path;
    made.body = std::move(body);
    made.peer = "10.0.0.1";
    std::string header;
    if (who <= Who::revoked) header = "Bearer " + secrets[static_cast<std::size_t>(who)];
    if (who == Who::wrong) header = "rs_" + std::string(43, 'A');
    made.header = [header](const std::string& name) -> std::optional<std::string> {
      if (name == "Authorization" && !header.empty()) return header;
      return std::nullopt;
    };
    if (who == Who::certified) {
      made.certificate = [] {
        net::CertificateFacts facts;
        facts.names = {"DNS:machine", "URI:ringshift:machine"};
        facts.ends = INT64_MAX;
        return std::optional(facts);
      };
    }
    return made;
  }

  void check(Who who, const Impl::Route& route, const Answer& answer, const std::string& sent) const {
    const std::string about = std::string(route.path) + " by caller " +
                              std::to_string(static_cast<int>(who)) + ": " + std::to_string(answer.status) +
                              " " + answer.body.substr(0, 300);
    must(answer.replies == 1, "answered once", about);
    const bool nobody = who == Who::revoked || who == Who::wrong || who == Who::nobody;
    if (route.need != Need::nothing && nobody) must(answer.status == 401, "nobody gets nothing", about);
    if (route.need == Need::admin && who != Who::admin) must(answer.status >= 400, "for admins alone", about);
    if (answer.type == kJson && route.whole == nullptr) {
      must(!Json::parse(answer.body, nullptr, false).is_discarded(), "it is JSON", about);
    }
    if (route.path == "/ringshift/v1/backup" && answer.status == 200)
      return;  // Of digests; checked elsewhere.
    const bool exchanged = route.path == "/v3/auth/authenticate" && answer.status == 200;
    for (const std::string& secret : secrets) {
      // What somebody calls a token or a key he may read there.
      if (exchanged || sent.find(secret) != std::string::npos) continue;
      must(answer.body.find(secret) == std::string::npos, "no secret in an answer", about);
    }
  }

  static void settle(Impl& impl) {
    impl.end_group();
    for (int i = 0; i < kDrainsMax && !HeldStream::all().empty(); ++i) {
      for (const HeldStream* stream : std::set<HeldStream*>(HeldStream::all())) stream->drain();
    }
    impl.tick();
    impl.hub->end_unless([&](const WatchHub::Owner& owner) { return impl.may_go_on(owner); });
  }

  void run(std::string_view input) const {
    std::filesystem::copy_file(directory + "/first.db", directory + "/now.db",
                               std::filesystem::copy_options::overwrite_existing);
    {
      Impl impl;
      impl.options = options("/now.db");
      must(impl.open_state().has_value(), "the database opens");
      std::string sent;  // All bodies, but those that are to hold a secret.
      for (std::size_t i = 0; i < kRequestsMax && !input.empty(); ++i) {
        const std::string_view one = input.substr(0, input.find('\0'));
        input.remove_prefix(std::min(input.size(), one.size() + 1));
        if (one.size() < 2) continue;
        const Who who{static_cast<std::uint8_t>(static_cast<unsigned char>(one[0]) % kCallers)};
        const auto& routes = Impl::table();
        const Impl::Route& route = routes[static_cast<unsigned char>(one[1]) % routes.size()];
        const std::string body = with_secrets(std::string(one.substr(2)));
        if (route.path != "/v3/auth/authenticate") sent += body;
        const store::Revision before = impl.store->revision();
        const auto answer = std::make_shared<Answer>();
        HeldExchange exchange(answer);
        impl.handle(request(who, route, body), exchange);
        // Before leases end by themselves in settle().
        impl.end_group();
        const bool writes = who == Who::admin || who == Who::operates || who == Who::registers;
        if (!writes) must(impl.store->revision() == before, "who may not write changes nothing");
        settle(impl);
        check(who, route, *answer, sent);
      }
      check_after(impl, sent);
    }
    for (const char* suffix : {"", "-wal", "-shm", "-journal", "-lock"}) {
      std::filesystem::remove(directory + "/now.db" + suffix);
    }
  }

  void check_after(Impl& impl, const std::string& sent) const {
    bool admin = false;
    for (const TokenBook::Info& info : impl.book->list()) {
      admin = admin || (info.identity.role == Role::admin && info.expires == 0 && info.secrets > 0);
    }
    must(admin, "an admin's token that does not end remains");
    const auto rows = impl.store->audit(0, 0, 1000);
    must(rows.has_value(), "the audit can be read");
    for (const store::AuditRow& row : *rows) {
      const std::string all = row.who + row.verb + row.key + row.outcome;
      for (const std::string& secret : secrets) {
        if (sent.find(secret) != std::string::npos) continue;
        must(all.find(secret) == std::string::npos, "no secret in the audit", all);
      }
    }
  }
};

}  // namespace ringshift::registry

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ringshift::registry::HandlersForTest handlers;
  handlers.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
