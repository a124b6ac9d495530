#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/probe.h"
#include "base/encoding.h"
#include "net/address.h"

namespace ringshift::agent {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

constexpr std::size_t kMaxStatsBytes = 64U << 10;
constexpr int kRefusalMs = 200;  // Within which the machine beside us refuses a connection.

// A socket with a deadline for everything. -1: none.
class TextConnection {
 public:
  TextConnection() = default;
  ~TextConnection() { close(); }
  TextConnection(const TextConnection&) = delete;
  TextConnection& operator=(const TextConnection&) = delete;

  [[nodiscard]] bool open() const noexcept { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  Status connect(std::string_view address, Deadline until) {
    const auto endpoint = net::parse_endpoint(address);
    if (!endpoint) return std::unexpected(endpoint.error());
    const auto addresses = net::resolve(*endpoint);
    if (!addresses) return std::unexpected(addresses.error());
    const net::SocketAddress& first = addresses->front();
    fd_ = ::socket(first.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return broke("socket", errno);
    if (::connect(fd_, first.get(), first.size) != 0 && errno != EINPROGRESS) return broke("connect", errno);
    if (Status ready = wait(POLLOUT, until); !ready) return ready;
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
      return broke("connect", error);
    return {};
  }

  // Up to and without "END\r\n".
  Result<std::string> ask(std::string_view question, Deadline until) {
    if (::send(fd_, question.data(), question.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(question.size())) {
      return broke("send", errno);
    }
    std::string answer;
    while (!answer.ends_with("END\r\n")) {
      if (Status ready = wait(POLLIN, until); !ready) return std::unexpected(ready.error());
      char part[4096];
      const ssize_t got = ::recv(fd_, part, sizeof part, 0);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) return broke("recv", errno);
      answer.append(part, static_cast<std::size_t>(got));
      const bool refused = answer.starts_with("ERROR") || answer.starts_with("-ERR");
      if (got == 0 || refused || answer.size() > kMaxStatsBytes) {
        close();
        return fail(ErrorKind::retryable,
                    got == 0 ? "the server closed the connection" : "it does not speak as memcached does");
      }
    }
    return answer;
  }

 private:
  std::unexpected<Error> broke(std::string_view doing, int error) {
    close();
    return fail(ErrorKind::retryable, fmt::format("{}: {}", doing, std::strerror(error)));
  }

  Status wait(short events, Deadline until) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd entry{fd_, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return {};
    if (ready < 0 && errno == EINTR) return {};  // The caller's call says what there is.
    close();
    return fail(ErrorKind::retryable, "no answer in time");
  }

  int fd_ = -1;
};

std::string stat_text(std::string_view stats, std::string_view name) {
  const std::string line = fmt::format("STAT {} ", name);
  const std::size_t at = stats.find(line);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = stats.substr(at + line.size());
  return std::string(rest.substr(0, rest.find('\r')));
}

std::uint64_t stat_number(std::string_view stats, std::string_view name) {
  return base::parse_u64(stat_text(stats, name)).value_or(0);
}

class MemcachedProbe final : public Probe {
 public:
  explicit MemcachedProbe(ProbeOptions options) : options_(std::move(options)) {}

  Health look(bool with_clients) override {
    const bool was_open = connection_.open();
    Health health = look_once();
    if (!health.good && was_open) health = look_once();
    if (!health.good && with_clients) health.absent = nothing_listens(options_.address);
    return health;
  }

 private:
  Health look_once() {
    Health health;
    const Deadline until = std::chrono::steady_clock::now() + options_.timeout;
    if (!connection_.open()) {
      if (Status connected = connection_.connect(options_.address, until); !connected) {
        health.reason = fmt::format("{}: {}", options_.address, connected.error().message);
        return health;
      }
    }
    const auto stats = connection_.ask("stats\r\n", until);
    if (!stats) {
      health.reason = fmt::format("{}: {}", options_.address, stats.error().message);
      return health;
    }
    health.version = stat_text(*stats, "version");
    health.used_memory = stat_number(*stats, "bytes");
    health.max_memory = stat_number(*stats, "limit_maxbytes");
    health.clients = stat_number(*stats, "curr_connections");
    for (const char* counted : {"cmd_get", "cmd_set", "cmd_flush", "cmd_touch", "cmd_meta", "delete_hits",
                                "delete_misses", "incr_hits", "incr_misses", "decr_hits", "decr_misses"})
      health.commands += stat_number(*stats, counted);
    const auto now = std::chrono::steady_clock::now();
    if (commands_ != 0 && health.commands >= commands_) {
      const double seconds = std::chrono::duration<double>(now - looked_at_).count();
      if (seconds > 0)
        health.ops_per_second =
            static_cast<std::uint64_t>(static_cast<double>(health.commands - commands_) / seconds);
    }
    commands_ = health.commands;
    looked_at_ = now;
    health.router_connections = 1;  // memcached knows no names: its commands alone say that it is quiet.
    health.good = health.counted = !health.version.empty();
    if (!health.good) health.reason = "stats names no version: is this a memcached?";
    return health;
  }

  const ProbeOptions options_;
  TextConnection connection_;
  std::uint64_t commands_ = 0;
  std::chrono::steady_clock::time_point looked_at_{};
};

}  // namespace

bool nothing_listens(std::string_view address) {
  const auto endpoint = net::parse_endpoint(address);
  if (!endpoint) return false;
  const auto addresses = net::resolve(*endpoint);
  if (!addresses) return false;
  return std::ranges::all_of(*addresses, [](const net::SocketAddress& one) {
    const int fd = ::socket(one.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    int error = ::connect(fd, one.get(), one.size) == 0 ? 0 : errno;
    pollfd entry{fd, POLLOUT, 0};
    socklen_t size = sizeof error;
    if (error == EINPROGRESS &&
        (::poll(&entry, 1, kRefusalMs) <= 0 || ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0))
      error = EINPROGRESS;
    ::close(fd);
    return error == ECONNREFUSED || error == ENOENT;  // ENOENT: a unix socket's path.
  });
}

std::unique_ptr<Probe> make_memcached_probe(ProbeOptions options) {
  return std::make_unique<MemcachedProbe>(std::move(options));
}

}  // namespace ringshift::agent
