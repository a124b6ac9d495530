#include "net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <atomic>
#include <charconv>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

namespace ringshift::net {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

Error bad(std::string_view text, std::string_view why) {
  return Error{ErrorKind::invalid, "address '" + std::string(text) + "': " + std::string(why) +
                                       "; write host:port, [v6]:port or unix:/path"};
}

SocketAddress from_v4(const in_addr& host, std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr = host;
  in.sin_port = htons(port);
  SocketAddress out;
  std::memcpy(&out.storage, &in, sizeof(in));
  out.size = sizeof(in);
  return out;
}

SocketAddress from_v6(const in6_addr& host, std::uint16_t port) {
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_addr = host;
  in.sin6_port = htons(port);
  SocketAddress out;
  std::memcpy(&out.storage, &in, sizeof(in));
  out.size = sizeof(in);
  return out;
}

std::atomic<int> lookups_running{0};

}  // namespace

std::string SocketAddress::text() const {
  char host[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof(in));
    inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
    return std::string(host) + ":" + std::to_string(ntohs(in.sin_port));
  }
  if (family() == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof(in));
    inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof(host));
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(in.sin6_port));
  }
  if (family() == AF_UNIX) {
    sockaddr_un un{};
    std::memcpy(&un, &storage, sizeof(un));
    return "unix:" + std::string(un.sun_path, strnlen(un.sun_path, sizeof(un.sun_path)));
  }
  return "?";
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  Endpoint out;
  if (text.starts_with(kUnixPrefix)) {
    out.unix_path = text.substr(kUnixPrefix.size());
    if (out.unix_path.empty()) return std::unexpected(bad(text, "the path is empty"));
    if (out.unix_path.size() >= sizeof(sockaddr_un{}.sun_path)) {
      return std::unexpected(bad(text, "the path is longer than 107 bytes"));
    }
    return out;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::unexpected(bad(text, "there is no port"));
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::unexpected(bad(text, "an IPv6 host needs brackets"));
  }
  if (host.empty()) return std::unexpected(bad(text, "the host is empty"));
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) {
    return std::unexpected(bad(text, "'" + std::string(port) + "' is no port (0 to 65535)"));
  }
  out.host = host;
  return out;
}

Result<SocketAddress> literal(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) {
    sockaddr_un un{};
    un.sun_family = AF_UNIX;
    std::memcpy(un.sun_path, endpoint.unix_path.data(), endpoint.unix_path.size());
    SocketAddress out;
    std::memcpy(&out.storage, &un, sizeof(un));
    out.size = sizeof(un);
    return out;
  }
  in_addr v4{};
  if (inet_pton(AF_INET, endpoint.host.c_str(), &v4) == 1) return from_v4(v4, endpoint.port);
  in6_addr v6{};
  if (inet_pton(AF_INET6, endpoint.host.c_str(), &v6) == 1) return from_v6(v6, endpoint.port);
  return fail(ErrorKind::not_found, "'" + endpoint.host + "' is a name, not an IP address");
}

Result<std::vector<SocketAddress>> resolve(const Endpoint& endpoint) {
  if (Result<SocketAddress> at_once = literal(endpoint)) return std::vector{*at_once};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(endpoint.host.c_str(), nullptr, &hints, &list);
  if (code != 0) {
    return fail(ErrorKind::retryable,
                "cannot resolve host '" + endpoint.host + "': " + std::string(gai_strerror(code)));
  }
  std::vector<SocketAddress> out;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    if (info->ai_family == AF_INET) {
      sockaddr_in in{};
      std::memcpy(&in, info->ai_addr, sizeof(in));
      out.push_back(from_v4(in.sin_addr, endpoint.port));
    } else if (info->ai_family == AF_INET6) {
      sockaddr_in6 in{};
      std::memcpy(&in, info->ai_addr, sizeof(in));
      out.push_back(from_v6(in.sin6_addr, endpoint.port));
    }
  }
  freeaddrinfo(list);
  if (out.empty()) return fail(ErrorKind::retryable, "host '" + endpoint.host + "' has no IP address");
  return out;
}

// Outlives both sides. The lookup's thread may finish long after nobody waits any more, so it reaches the
// loop only through here, and only while `loop` is set.
struct Lookup::Mailbox {
  std::mutex mutex;
  Loop* loop = nullptr;  // Guarded by mutex; null once the Lookup is gone.
  std::function<void(Result<std::vector<SocketAddress>>)> done;  // Loop thread only.
};

Lookup::Lookup(Loop& loop, const Endpoint& endpoint,
               std::function<void(Result<std::vector<SocketAddress>>)> done)
    : mailbox_(std::make_shared<Mailbox>()) {
  mailbox_->loop = &loop;
  mailbox_->done = std::move(done);
  const auto answer = [](const std::shared_ptr<Mailbox>& box, Result<std::vector<SocketAddress>> result) {
    const std::lock_guard lock(box->mutex);
    if (box->loop == nullptr) return;
    box->loop->post([box, result = std::move(result)]() mutable {
      // On the loop's thread, where the Lookup is destroyed, too: no race for `loop` from here on.
      if (box->loop != nullptr) box->done(std::move(result));
    });
  };
  if (lookups_running.fetch_add(1) >= kMaxLookups) {
    lookups_running.fetch_sub(1);
    answer(mailbox_, fail(ErrorKind::overloaded, "cannot resolve host '" + endpoint.host + "': " +
                                                     std::to_string(kMaxLookups) + " lookups are under way"));
    return;
  }
  std::thread([box = mailbox_, endpoint, answer] {
    answer(box, resolve(endpoint));
    lookups_running.fetch_sub(1);
  }).detach();
}

Lookup::~Lookup() {
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->loop = nullptr;
}

bool is_local_peer(int fd) noexcept {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  if (peer.ss_family == AF_UNIX) return true;
  if (peer.ss_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in&>(peer).sin_addr.s_addr) >> 24) == 127;
  }
  const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

}  // namespace ringshift::net
