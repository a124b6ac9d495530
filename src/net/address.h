// Where a socket connects to or listens on: "host:port", "[v6]:port" or "unix:/path".
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/loop.h"
#include "ringshift/error.h"

namespace ringshift::net {

// An address the kernel understands. A value.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
  [[nodiscard]] std::string text() const;  // As in the header of this file.
};

// Text that was checked for form, but maybe not resolved yet.
struct Endpoint {
  std::string host;  // Without brackets; "" for unix.
  std::uint16_t port = 0;
  std::string unix_path;  // "" for TCP.
};
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

// At once and without the network: an IP literal or a unix path; not_found when it is a host name.
[[nodiscard]] Result<SocketAddress> literal(const Endpoint& endpoint);
// Every address of the name, the best first; never empty. Blocks for as long as the system's resolver does:
// for threads that are no event loop.
[[nodiscard]] Result<std::vector<SocketAddress>> resolve(const Endpoint& endpoint);

// Whether the other end of a connected socket is on this machine: a loopback address or a unix socket.
[[nodiscard]] bool is_local_peer(int fd) noexcept;

// Resolves on a thread of its own and answers on the loop's thread, unless destroyed before.
// REQUIRES: destroyed on the loop's thread, before the loop. At most kMaxLookups names are looked up at a
// time in the process; more fail as overloaded.
class Lookup {
 public:
  static constexpr int kMaxLookups = 16;
  Lookup(Loop& loop, const Endpoint& endpoint, std::function<void(Result<std::vector<SocketAddress>>)> done);
  ~Lookup();
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

 private:
  struct Mailbox;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace ringshift::net
