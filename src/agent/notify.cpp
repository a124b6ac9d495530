#include "agent/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/encoding.h"

namespace ringshift::agent {

void notify_systemd(std::string_view lines) {
  const char* path = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe): nobody sets it.
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if (length >= sizeof address.sun_path) return;
  std::copy_n(path, length, address.sun_path);
  if (path[0] == '@') address.sun_path[0] = '\0';  // Of the abstract kind.
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  static_cast<void>(::sendto(fd, lines.data(), lines.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address),
                             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length)));
  ::close(fd);
}

std::optional<std::chrono::microseconds> systemd_watchdog() {
  const char* text = std::getenv("WATCHDOG_USEC");  // NOLINT(concurrency-mt-unsafe)
  const auto usec = text == nullptr ? std::nullopt : base::parse_u64(text);
  if (!usec || *usec == 0) return std::nullopt;
  return std::chrono::microseconds(*usec);
}

}  // namespace ringshift::agent
