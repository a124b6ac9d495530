// TLS over one connected, non-blocking socket, whose descriptor belongs to somebody else. Reads and writes as
// recv() and send() do: -1 and EAGAIN when the socket must become ready first.
//
// OpenSSL works on the descriptor directly. It reads ahead, so bytes may be here that the kernel knows
// nothing of: when holds(), read() has something without any readiness.
// Thread rule: one thread. Failure: -1 with EPROTO; problem() says what it was, and nothing works any more.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct ssl_st;

namespace ringshift::net {

class TlsContext;

class TlsSession {
 public:
  static constexpr std::size_t kMaxWrite = 1U << 20;  // Most that one write() takes: others want their turn.

  // The side of `context`. `host`: of the address, for a client: an IP or a name, checked unless the context
  // has a name of its own.
  TlsSession(const TlsContext& context, int fd, std::string_view host);
  ~TlsSession();  // Says goodbye (close_notify) if that is possible at once. REQUIRES: the socket is open.
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  enum class Step : std::uint8_t { done, wants_read, wants_write, failed };
  [[nodiscard]] Step handshake();  // Again when the socket is ready for what it wants.

  // REQUIRES: the handshake is done.
  [[nodiscard]] ssize_t read(char* data, std::size_t size);         // 0: the peer sends no more.
  [[nodiscard]] ssize_t write(const char* data, std::size_t size);  // Again with at least these bytes.
  [[nodiscard]] bool holds() const noexcept { return holds_; }
  // The last read() needs a writable socket (an answer to a key update); clear it and read again then.
  [[nodiscard]] bool read_wants_write() const noexcept { return read_wants_write_; }
  void socket_writable() noexcept { read_wants_write_ = false, holds_ = true; }
  // False: the socket is full, again when it is writable.
  [[nodiscard]] bool close_notify();

  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] std::string version() const;  // "TLSv1.3"

 private:
  struct Socket;  // OpenSSL's view of the descriptor.
  enum class End : std::uint8_t { none, ended, failed };
  void failed(int error, std::string_view step);

  ssl_st* ssl_ = nullptr;
  const int fd_;
  int socket_error_ = 0;
  End end_ = End::none;
  bool established_ = false;
  bool eof_ = false;  // Of the socket.
  bool holds_ = false;
  bool read_wants_write_ = false;
  bool write_stuck_ = false;  // Half a record has left: nothing else may be written.
  bool said_goodbye_ = false;
  std::string host_;  // For messages.
  std::string problem_;
};

}  // namespace ringshift::net
