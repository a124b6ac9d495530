#include "drill/client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ringshift::drill {
namespace {

constexpr std::size_t kReadBytes = 64U << 10;

std::string cause_of(int error) {
  return error == EAGAIN || error == EINPROGRESS ? "timed out" : std::strerror(error);
}

}  // namespace

Result<Client> Client::connect(std::string_view address, std::chrono::milliseconds timeout) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) {
    return fail(ErrorKind::invalid, fmt::format("address '{}' is not host:port", address));
  }
  const std::string host(address.substr(0, colon));
  const std::string port(address.substr(colon + 1));
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return fail(ErrorKind::invalid, fmt::format("address '{}': {}", address, ::gai_strerror(error)));
  }
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // On Linux the send timeout bounds connect(), too.
  const timeval limit{timeout.count() / 1000, (timeout.count() % 1000) * 1000};
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const bool connected = fd >= 0 && ::connect(fd, found->ai_addr, found->ai_addrlen) == 0;
  const int error = errno;
  ::freeaddrinfo(found);
  if (!connected) {
    if (fd >= 0) ::close(fd);
    return fail(ErrorKind::retryable, fmt::format("cannot connect to {}: {}", address, cause_of(error)));
  }
  return Client(fd, std::string(address));
}

Client::~Client() {
  if (fd_ >= 0) ::close(fd_);
}

Client::Client(Client&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      out_(std::move(other.out_)),
      in_(std::move(other.in_)),
      in_used_(other.in_used_),
      arrived_(other.arrived_) {}

Client& Client::operator=(Client&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    address_ = std::move(other.address_);
    out_ = std::move(other.out_);
    in_ = std::move(other.in_);
    in_used_ = other.in_used_;
    arrived_ = other.arrived_;
  }
  return *this;
}

void Client::append(std::initializer_list<std::string_view> command) {
  protocol::resp::append_command(out_, command);
}

Status Client::flush() {
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const ssize_t n = ::send(fd_, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      out_.clear();
      return fail(ErrorKind::retryable, fmt::format("sending to {}: {}", address_, cause_of(errno)));
    }
    sent += static_cast<std::size_t>(n);
  }
  out_.clear();
  return {};
}

Result<Client::Value> Client::read() {
  for (;;) {
    if (in_used_ < in_.size()) {
      auto decoded = protocol::resp::decode(std::string_view(in_).substr(in_used_));
      if (!decoded)
        return fail(decoded.error().kind, fmt::format("{}: {}", address_, decoded.error().message));
      if (*decoded) {
        in_used_ += (*decoded)->size;
        return std::move((*decoded)->value);
      }
    }
    in_.erase(0, in_used_);
    in_used_ = 0;
    const std::size_t size = in_.size();
    in_.resize(size + kReadBytes);
    const ssize_t n = ::recv(fd_, in_.data() + size, kReadBytes, 0);
    const int error = errno;
    arrived_ = std::chrono::steady_clock::now();
    in_.resize(size + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (n < 0 && error == EINTR) continue;
    if (n < 0)
      return fail(ErrorKind::retryable, fmt::format("reading from {}: {}", address_, cause_of(error)));
    if (n == 0) return fail(ErrorKind::retryable, fmt::format("{} closed the connection", address_));
  }
}

Result<Client::Value> Client::call(std::initializer_list<std::string_view> command) {
  append(command);
  if (Status sent = flush(); !sent) return std::unexpected(sent.error());
  return read();
}

}  // namespace ringshift::drill
