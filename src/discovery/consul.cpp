#include "discovery/consul.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "base/log.h"
#include "base/retry_thread.h"
#include "discovery/http_ask.h"
#include "discovery/pace.h"

namespace ringshift::discovery {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConsulWait{60'000};
constexpr milliseconds kConsulTimeout{
    10'000};  // Beyond the wait, and the sixteenth by which Consul spreads it.
constexpr std::string_view kConsulFix =
    "give the token of a policy with service:read and node:read by token_file";

class ConsulSource final : public Source {
 public:
  explicit ConsulSource(Options options)
      : options_(std::move(options)),
        wait_(options_.wait.count() > 0 ? options_.wait : kConsulWait),
        timeout_(options_.timeout.count() > 0 ? options_.timeout : kConsulTimeout),
        http_(options_.urls, options_.ca_file) {}
  ~ConsulSource() override {
    thread_.stop([this] { http_.cancel(); });
  }
  ConsulSource(const ConsulSource&) = delete;
  ConsulSource& operator=(const ConsulSource&) = delete;

  Status start(Sink& sink) override {
    thread_.start([this, &sink] { run(sink); });
    return {};
  }
  std::string describe() const override {
    return fmt::format("Consul service {} at {}", options_.service, fmt::join(options_.urls, ", "));
  }

 private:
  void run(Sink& sink) {
    Teller teller(sink);
    while (!thread_.stopping()) {
      const Status looked = look(teller);
      if (thread_.stopping()) return;
      if (!looked) {
        index_ = 0;  // What was missed meanwhile is read at once, without waiting.
        teller.trouble(looked.error());
        thread_.back_off();
        continue;
      }
      thread_.done();
      const auto pause = pace_.before(std::chrono::steady_clock::now());
      thread_.wait(std::chrono::ceil<milliseconds>(pause));
    }
  }

  std::string path() const {
    std::string path = fmt::format("/v1/health/service/{}?index={}&wait={}ms",
                                   percent_encoded(options_.service), index_, wait_.count());
    if (!options_.datacenter.empty()) path += "&dc=" + percent_encoded(options_.datacenter);
    if (!options_.name_space.empty()) path += "&ns=" + percent_encoded(options_.name_space);
    if (!options_.tag.empty()) path += "&tag=" + percent_encoded(options_.tag);
    if (options_.stale) path += "&stale";
    return path;
  }

  Status look(Teller& teller) {
    http::Call call;
    call.method = "GET";
    call.timeout = (index_ == 0 ? milliseconds(0) : wait_ + wait_ / 16) + timeout_;
    if (!options_.token_file.empty()) {
      const auto token = read_secret(options_.token_file);
      if (!token) return std::unexpected(token.error());
      call.headers.push_back("X-Consul-Token: " + *token);
    }
    const auto began = std::chrono::steady_clock::now();
    auto reply = http_.ask(std::move(call), path());
    if (!reply) return std::unexpected(std::move(reply.error()));
    if (reply->status != 200) {
      Error error = status_error(*reply, http_.url(), kConsulFix);
      http_.next();
      return std::unexpected(std::move(error));
    }
    return take(*reply, std::chrono::steady_clock::now() - began, teller);
  }

  Status take(const HttpReply& reply, std::chrono::nanoseconds took, Teller& teller) {
    const std::string header = http_.header("X-Consul-Index");
    const auto said = base::parse_u64(header);
    if (!said) {
      return fail(ErrorKind::retryable,
                  fmt::format("{} answers without an X-Consul-Index: is Consul there?", http_.url()));
    }
    if (options_.stale && http_.header("X-Consul-Knownleader") == "false") {
      return fail(ErrorKind::retryable, fmt::format("{} knows no leader: its list may be old", http_.url()));
    }
    // Consul answers a token without rights with 200 and what is left of the list.
    if (http_.header("X-Consul-Results-Filtered-By-ACLs") == "true") {
      return fail(ErrorKind::denied, fmt::format("{} hides entries from us; {}", http_.url(), kConsulFix));
    }
    const std::uint64_t now = std::max<std::uint64_t>(1, *said);
    // A question from 0 is answered at once, and rightly so.
    const bool waited = index_ == 0 || took >= wait_ / 2;
    if (now < index_) {
      // A restored snapshot, a restarted server, or one that lags: its list may be older than what we have.
      base::log(base::LogLevel::info, "discovery: {}: the index went from {} back to {}: reading anew",
                describe(), index_, now);
      index_ = 0;
      pace_.after(waited, false);
      return {};
    }
    auto seen = parse_consul_health(reply.body, options_);
    if (!seen) return std::unexpected(std::move(seen.error()));
    const bool changed = seen->all != last_;
    last_ = seen->all;
    pace_.after(waited, changed);
    index_ = teller.saw(*std::move(seen)) ? now : 0;
    return {};
  }

  const Options options_;
  const milliseconds wait_, timeout_;
  HttpAsk http_;

  // The thread's own.
  std::uint64_t index_ = 0;  // 0: the next question does not wait.
  std::vector<Instance> last_;
  Pace pace_;

  base::RetryThread thread_{kRetryFirst, kRetryMax};  // Last: its thread uses all above.
};

}  // namespace

std::unique_ptr<Source> make_consul_source(Options options) {
  return std::make_unique<ConsulSource>(std::move(options));
}

}  // namespace ringshift::discovery
