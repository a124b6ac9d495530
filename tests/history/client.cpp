#include "tests/history/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/encoding.h"

namespace ringshift::history {

Result<std::vector<Address>> parse_addresses(const std::string& list) {
  std::vector<Address> addresses;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string item = list.substr(at, end - at);
    const std::size_t colon = item.rfind(':');
    const auto port = colon == std::string::npos ? std::nullopt : base::parse_u64(item.substr(colon + 1));
    in_addr parsed{};
    if (!port || *port == 0 || *port > 65535 ||
        inet_pton(AF_INET, item.substr(0, colon).c_str(), &parsed) != 1) {
      return fail(ErrorKind::invalid,
                  "'" + item + "' is no address; write IPV4:PORT, for example 127.0.0.1:6380");
    }
    addresses.push_back({item.substr(0, colon), static_cast<std::uint16_t>(*port)});
    at = end + 1;
  }
  return addresses;
}

void Client::close() noexcept {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  input_.clear();
}

Status Client::wait(short events) {
  pollfd item{socket_, events, 0};
  for (;;) {
    const int ready = ::poll(&item, 1, static_cast<int>(timeout_.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno == EINTR) continue;
    return fail(ErrorKind::retryable, ready == 0 ? "no answer within the timeout" : std::strerror(errno));
  }
}

Status Client::connect(const Address& address) {
  close();
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(address.port);
  inet_pton(AF_INET, address.host.c_str(), &where.sin_addr);
  Status status;
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
    status = errno == EINPROGRESS ? wait(POLLOUT) : fail(ErrorKind::retryable, std::strerror(errno));
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (status && error != 0) status = fail(ErrorKind::retryable, std::strerror(error));
  }
  if (!status) {
    close();
    return status;
  }
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {};
}

Status Client::send(const std::string& commands) {
  for (std::size_t sent = 0; sent < commands.size();) {
    const ssize_t n = ::send(socket_, commands.data() + sent, commands.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    Status status = errno == EAGAIN ? wait(POLLOUT) : fail(ErrorKind::retryable, std::strerror(errno));
    if (!status) {
      close();
      return status;
    }
  }
  return {};
}

Result<protocol::resp::Value> Client::read() {
  for (;;) {
    auto decoded = protocol::resp::decode(input_);
    if (!decoded) {
      close();
      return std::unexpected(decoded.error());
    }
    if (*decoded) {
      input_.erase(0, (*decoded)->size);
      return std::move((*decoded)->value);
    }
    std::array<char, 16384> buffer;
    const ssize_t n = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (n > 0) {
      input_.append(buffer.data(), static_cast<std::size_t>(n));
      continue;
    }
    Status status = n < 0 && errno == EAGAIN
                        ? wait(POLLIN)
                        : fail(ErrorKind::retryable, n == 0 ? "connection closed" : std::strerror(errno));
    if (!status) {
      close();
      return std::unexpected(status.error());
    }
  }
}

}  // namespace ringshift::history
