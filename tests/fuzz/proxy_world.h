// What the fuzzers of the data plane share: real members on unix sockets, proxies before them in this
// process, and a client that judges every byte it gets.
//
// Unix sockets on both sides: a fuzzer makes thousands of connections a second, and TCP ports would run out.
// One thread, apart from the proxies' own. Failure: found() says what is wrong and aborts, as libFuzzer wants
// it.
#pragma once
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backend/sync_client.h"
#include "protocol/resp/reply_framer.h"
#include "protocol/resp/value.h"
#include "proxy/proxy.h"
#include "tests/support/redis_process.h"

namespace ringshift::proxy::fuzz {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

inline constexpr milliseconds kPatienceBehindBlocked{500};
inline constexpr milliseconds kPatience{20000};  // With what a sanitizer and a busy machine cost.

[[noreturn]] inline void found(const std::string& what) {
  std::fprintf(stderr, "\nfound: %s\n", what.c_str());
  std::abort();
}

// Escaped and cut short, for people.
inline std::string shown(std::string_view bytes) {
  std::string out;
  for (const char c : bytes.substr(0, 400)) {
    out += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + (bytes.size() > 400 ? "..." : "");
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = "/tmp/rs_fuzz_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) found("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] std::string file(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

 private:
  std::string path_;
};

// A member whose commands stay small, so that no input takes all the machine's memory: what one command can
// make of a few bytes (SETRANGE, SETBIT) ends at 1 MiB.
class FuzzMember {
 public:
  FuzzMember(const TemporaryDirectory& directory, const std::string& name)
      : path_(directory.file(name)),
        server_({"--unixsocket", path_, "--proto-max-bulk-len", "1mb", "--maxmemory", "64mb", "--loglevel",
                 "warning"}),
        admin_(dial()) {}
  [[nodiscard]] std::string address() const { return "unix:" + path_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // In two halves, so that members empty themselves at the same time. Loading functions anew is slow, so only
  // when there may be some.
  void begin_to_empty(bool functions, const std::string& stamp = "") {
    std::string commands;
    protocol::resp::append_command(commands, {"FLUSHALL"});
    if (functions) protocol::resp::append_command(commands, {"FUNCTION", "FLUSH"});
    expected_ = (functions ? 2U : 1U) + (stamp.empty() ? 0U : 1U);
    if (const auto sent = admin_->send(commands + stamp); !sent) found(sent.error().message);
  }
  void wait_until_empty() {
    if (const auto done = admin_->receive(expected_); !done) found(done.error().message);
  }

 private:
  // The server opens its unix socket after its port.
  [[nodiscard]] std::unique_ptr<backend::SyncClient> dial() const {
    for (int attempt = 0; attempt < 500; ++attempt) {
      if (auto client = backend::SyncClient::connect(address())) return std::move(*client);
      std::this_thread::sleep_for(milliseconds(10));
    }
    found("the member's unix socket does not open: " + path_);
  }

  std::string path_;
  test::RedisProcess server_;
  std::unique_ptr<backend::SyncClient> admin_;
  std::size_t expected_ = 0;
};

inline topology::Member member(const std::string& id, const std::string& address) {
  topology::Member out;
  out.id = id;
  out.address = address;
  return out;
}

inline std::shared_ptr<Proxy::Holder> holder_of(const topology::Topology& topology) {
  auto compiled = topology::Snapshot::compile(topology, {0, 1});
  if (!compiled) found(compiled.error().message);
  return std::make_shared<Proxy::Holder>(*compiled);
}

// A client of a unix socket. Every reply it gets is judged: whole, and readable by decode(). Out-of-band
// pushes are counted apart.
class FuzzClient {
 public:
  static constexpr std::size_t kMaxRead = 16U << 20;  // Then it leaves: some inputs ask for gigabytes.

  explicit FuzzClient(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof to.sun_path - 1);
    // Blocks while the queue of the listener is full.
    if (fd_ < 0 || ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      found(fmt::format("cannot connect to {}: {}", path, std::strerror(errno)));
    }
  }
  ~FuzzClient() { close(); }
  FuzzClient(const FuzzClient&) = delete;
  FuzzClient& operator=(const FuzzClient&) = delete;

  // Types of RESP3 are found, until somebody says otherwise.
  void expect_resp2(bool only) noexcept { resp2_ = only; }
  // Where each reply ends is all that is looked at.
  void expect_anything() noexcept { anything_ = true; }

  // Behind a command that may wait for ever the proxy takes so much and no more: what it does not take is
  // left out.
  void expect_to_be_read(bool always) noexcept { always_read_ = always; }

  // Reads while it writes, so that two who both wait for the other to read are not taken for a hang.
  void send(std::string_view bytes) {
    const auto deadline = Clock::now() + (always_read_ ? kPatience : kPatienceBehindBlocked);
    while (!bytes.empty() && !ended_ && !left_out_) {
      pollfd wait{fd_, POLLIN | POLLOUT, 0};
      ::poll(&wait, 1, 100);
      if ((wait.revents & (POLLIN | POLLHUP)) != 0) take();
      if ((wait.revents & POLLOUT) != 0) {
        const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
        if (n < 0 && errno != EAGAIN) ended_ = true;
      }
      if (Clock::now() <= deadline) continue;
      left_out_ = !always_read_;
      if (left_out_) return;
      found("the proxy takes no more bytes: " + shown(bytes));
    }
  }
  // What comes without a pause of `quiet`.
  void read_for(milliseconds quiet) {
    while (!ended_) {
      pollfd wait{fd_, POLLIN, 0};
      if (::poll(&wait, 1, static_cast<int>(quiet.count())) <= 0) return;
      take();
    }
  }
  // False when `done` did not become true in time; true when the proxy closed first.
  template <typename Done>
  [[nodiscard]] bool read_until(const Done& done) {
    const auto deadline = Clock::now() + kPatience;
    while (!done() && !ended_) {
      pollfd wait{fd_, POLLIN, 0};
      if (::poll(&wait, 1, 100) > 0) take();
      if (Clock::now() > deadline) return done();
    }
    return true;
  }
  [[nodiscard]] bool read_to_end() {
    return read_until([] { return false; });
  }

  void half_close() const {
    if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] bool had_enough() const noexcept { return read_ > kMaxRead; }
  [[nodiscard]] const std::vector<std::string>& replies() const noexcept { return replies_; }
  [[nodiscard]] std::size_t pushes() const noexcept { return pushes_; }
  [[nodiscard]] std::string_view unfinished() const noexcept { return pending_; }

 private:
  void take() {
    char block[1 << 16];
    const ssize_t n = ::recv(fd_, block, sizeof block, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      ended_ = true;
      return;
    }
    pending_.append(block, static_cast<std::size_t>(n));
    read_ += static_cast<std::size_t>(n);
    if (had_enough()) {
      ended_ = true;
      close();
      return;
    }
    std::size_t begin = 0;
    while (begin < pending_.size()) {
      const std::string_view rest = std::string_view(pending_).substr(begin);
      const auto frame = framer_.next(rest);
      using State = protocol::resp::ReplyFramer::State;
      if (frame.state == State::broken) found("no RESP: " + shown(rest));
      if (frame.state == State::more) break;
      judge(rest.substr(0, frame.size));
      if (frame.push) {
        ++pushes_;
      } else {
        replies_.emplace_back(rest.substr(0, std::min(frame.size, kKept)));
      }
      begin += frame.size;
    }
    pending_.erase(0, begin);
  }
  void judge(std::string_view raw) const {
    if (anything_) return;
    const auto decoded = protocol::resp::decode(raw);
    if (!decoded) found("a reply that nobody can read: " + decoded.error().message + ": " + shown(raw));
    if (!decoded->has_value() || (*decoded)->size != raw.size())
      found("a reply of another size: " + shown(raw));
    if (resp2_ && !is_resp2((*decoded)->value)) found("RESP3 for a client that speaks RESP2: " + shown(raw));
  }
  static bool is_resp2(const protocol::resp::Value& value) {
    using Type = protocol::resp::Value::Type;
    switch (value.type) {
      case Type::simple:
      case Type::error:
      case Type::integer:
      case Type::bulk:
      case Type::null:
      case Type::array:
        return std::ranges::all_of(value.items, is_resp2);
      default:
        return false;
    }
  }

  static constexpr std::size_t kKept = 4096;  // Of one reply.

  int fd_;
  bool ended_ = false, resp2_ = false, anything_ = false, always_read_ = true, left_out_ = false;
  std::string pending_;
  std::size_t read_ = 0, pushes_ = 0;
  protocol::resp::ReplyFramer framer_;
  std::vector<std::string> replies_;
};

// The process' CPU time, all threads.
inline milliseconds cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) { return time.tv_sec * 1000 + time.tv_usec / 1000; };
  return milliseconds(ms(usage.ru_utime) + ms(usage.ru_stime));
}

// Nobody asks for anything, so the loops sleep. Three windows in a row, since the last wakeups may still be
// at work.
inline void expect_idle_loops() {
  constexpr milliseconds kWindow{20};
  for (int i = 0; i < 3; ++i) {
    const milliseconds before = cpu_time();
    std::this_thread::sleep_for(kWindow);
    if (cpu_time() - before < kWindow / 2) return;
  }
  found("a loop spins");
}

// A proxy of one thread on a unix socket, which can be replaced by a fresh one.
class FuzzProxy {
 public:
  FuzzProxy(std::string path, Options options, std::vector<ServedCluster> clusters, Rules rules)
      : path_(std::move(path)),
        options_(std::move(options)),
        clusters_(std::move(clusters)),
        rules_(std::move(rules)) {
    options_.listen = "unix:" + path_;
    options_.threads = 1;
    options_.shutdown_grace = milliseconds(500);
    start();
  }
  void start() {
    proxy_.reset();
    auto started = Proxy::start(options_, clusters_, rules_);
    if (!started) found(started.error().message);
    proxy_ = std::move(*started);
    expect_service();
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t sessions() const {
    using telemetry::Counter;
    const telemetry::Totals totals = proxy_->stats();
    // Read one after the other while they grow, so never negative only in this order.
    const std::uint64_t closed = telemetry::get(totals, Counter::clients_closed);
    const std::uint64_t accepted = telemetry::get(totals, Counter::clients_accepted);
    return accepted > closed ? accepted - closed : 0;
  }
  // Every client but `staying` has left, so their sessions end soon.
  void expect_sessions(std::uint64_t staying) const {
    const auto deadline = Clock::now() + kPatience;
    while (sessions() > staying) {
      if (Clock::now() > deadline) found(fmt::format("{} sessions without a client", sessions() - staying));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  // Somebody new is served.
  void expect_service() const {
    FuzzClient fresh(path_);
    fresh.expect_resp2(true);
    fresh.send("PING\r\n");
    if (!fresh.read_until([&] { return !fresh.replies().empty(); }) || fresh.replies().empty() ||
        fresh.replies()[0] != "+PONG\r\n") {
      found("a fresh client is not served");
    }
  }

 private:
  std::string path_;
  Options options_;
  std::vector<ServedCluster> clusters_;
  Rules rules_;
  std::unique_ptr<Proxy> proxy_;
};

}  // namespace ringshift::proxy::fuzz
