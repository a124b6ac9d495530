#include "net/handover.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "net/address.h"

namespace ringshift::net {
namespace {

constexpr int kWaitingSuccessors = 4;

std::unexpected<Error> failed(std::string_view step, int error) {
  return fail(error == EACCES || error == EPERM ? ErrorKind::denied : ErrorKind::internal,
              std::string(step) + ": " + std::strerror(error));
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(ErrorKind::invalid, "'" + path + "' is no path for a socket: at most " +
                                        std::to_string(sizeof address.sun_path - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Descriptor packet_socket() { return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * kMaxPacketDescriptors);

}  // namespace

Status send_packet(int socket, std::string_view text, std::span<const Descriptor> descriptors) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    unsigned char* out = CMSG_DATA(header);
    for (const Descriptor& descriptor : descriptors) {
      const int fd = descriptor.get();
      std::memcpy(out, &fd, sizeof fd);
      out += sizeof fd;
    }
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return failed("sending to the other process", errno);
  }
  return {};
}

Result<Packet> receive_packet(int socket, std::chrono::milliseconds timeout) {
  pollfd waits{socket, POLLIN, 0};
  const int ready = ::poll(&waits, 1, static_cast<int>(timeout.count()));
  if (ready == 0) {
    return fail(ErrorKind::not_found,
                "the other process said nothing within " + std::to_string(timeout.count()) + " ms");
  }
  Packet packet;
  packet.text.resize(kMaxPacketText);
  iovec part{packet.text.data(), packet.text.size()};
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ready < 0 ? -1 : ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (size < 0 && errno != ECONNRESET) return failed("hearing the other process", errno);
  packet.text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); size >= 0 && header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      packet.descriptors.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return fail(ErrorKind::invalid,
                "the other process sent too much at once, or the limit of open files "
                "(ulimit -n) is too low");
  }
  return packet;
}

Result<Descriptor> connect_packets(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return std::unexpected(address.error());
  Descriptor socket = packet_socket();
  if (!socket) return failed("socket", errno);
  const auto* at = reinterpret_cast<const sockaddr*>(&*address);
  if (::connect(socket.get(), at, sizeof *address) == 0) return socket;
  if (errno == ENOENT) return Descriptor();
  const int error = errno;
  struct stat file{};
  const bool is_socket = ::lstat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode);
  if (error == ECONNREFUSED && is_socket) return Descriptor();
  if (error == EPROTOTYPE || !is_socket) {
    return fail(ErrorKind::invalid, path + " is something else than the handover socket of a proxy");
  }
  return failed(path, error);
}

Result<Descriptor> listen_packets(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return std::unexpected(address.error());
  Descriptor socket = packet_socket();
  if (!socket) return failed("socket", errno);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return failed(path, errno);
  }
  // Nobody can connect before listen().
  if (::chmod(path.c_str(), 0600) != 0 || ::listen(socket.get(), kWaitingSuccessors) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return failed(path, error);
  }
  return socket;
}

std::string listening_address(int socket) {
  SocketAddress at;
  at.size = sizeof at.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&at.storage), &at.size) != 0) return "?";
  return at.text();
}

std::uint64_t socket_number(int socket) {
  struct stat file{};
  return ::fstat(socket, &file) == 0 ? file.st_ino : 0;
}

Descriptor duplicate(const Descriptor& descriptor) {
  return Descriptor(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace ringshift::net
