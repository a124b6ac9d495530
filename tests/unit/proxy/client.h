// A blocking client for tests: sends any bytes, reads whole replies as raw bytes.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include "protocol/resp/value.h"

namespace ringshift::proxy {

class Client {
 public:
  explicit Client(std::uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0) << std::strerror(errno);
  }
  ~Client() { close(); }
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}
  Client& operator=(Client&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void half_close() const { ::shutdown(fd_, SHUT_WR); }

  // False when the peer closed before it took everything.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  void command(std::initializer_list<std::string_view> arguments) const {
    std::string bytes;
    protocol::resp::append_command(bytes, arguments);
    EXPECT_TRUE(send(bytes));
  }

  // One whole reply; "(closed)" or "(timeout)" when none comes.
  std::string reply(std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (true) {
      const auto decoded = protocol::resp::decode(buffer_);
      if (!decoded) return "(no RESP: " + decoded.error().message + ")";
      if (decoded->has_value()) {
        std::string raw = buffer_.substr(0, (*decoded)->size);
        buffer_.erase(0, (*decoded)->size);
        return raw;
      }
      if (std::string trouble = read_more(deadline); !trouble.empty()) return trouble;
    }
  }
  // Everything until the peer closes.
  std::string rest(std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (true) {
      const std::string trouble = read_more(deadline);
      if (trouble == "(closed)") return std::exchange(buffer_, {});
      if (!trouble.empty()) return buffer_ + trouble;
    }
  }
  // Reads exactly this many bytes, for replies too large to decode again and again.
  std::string exactly(std::size_t size, std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (buffer_.size() < size) {
      if (std::string trouble = read_more(deadline); !trouble.empty()) return trouble;
    }
    std::string raw = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return raw;
  }
  std::string ask(std::initializer_list<std::string_view> arguments) {
    command(arguments);
    return reply();
  }

 private:
  // "" when bytes came.
  std::string read_more(std::chrono::steady_clock::time_point deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{fd_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) == 0) return "(timeout)";
    char block[1 << 16];
    const ssize_t n = ::recv(fd_, block, sizeof block, 0);
    if (n <= 0) return "(closed)";
    buffer_.append(block, static_cast<std::size_t>(n));
    return "";
  }

  int fd_;
  std::string buffer_;
};

}  // namespace ringshift::proxy
