// A connected, non-blocking socket (TCP with TCP_NODELAY, or unix) on a loop, plain or with TLS. Everything
// belongs to the loop's thread.
//
// Reading: one read a wakeup, into a buffer that all streams of the thread share; only the tail that the
// handler did not consume is kept, so an idle stream holds no buffer. Writing: append() or output() only
// gather; flush() does one write, and only a short write makes the loop watch for writability.
//
// The handler is called from the loop alone, never from inside a method of Stream, and may destroy the
// stream in any callback. After on_closed nothing is called any more.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/loop.h"
#include "net/watch.h"

namespace ringshift::net {

class TlsContext;
class TlsSession;

class StreamHandler {
 public:
  // Everything that was read and not consumed yet. Returns how many bytes of the front are done with; the
  // rest comes again, in front of what follows. Good only during the call.
  virtual std::size_t on_data(std::string_view bytes) = 0;
  // The peer will send no more, but may still read. on_data has seen everything before.
  virtual void on_end() = 0;
  // The connection is broken, or could not be made: nothing can be read or written. Destroy the stream.
  virtual void on_closed(std::string_view reason) = 0;
  virtual void on_connected() {}  // Only after Stream::connect.
  virtual void on_drained() {}    // Output that a flush() could not write at once has left.

 protected:
  ~StreamHandler() = default;
};

class Stream {
 public:
  static constexpr std::chrono::milliseconds kHandshakeTimeout{10000};

  // Takes over a connected, non-blocking socket, as Listener gives it, and starts reading. With a server's
  // `tls` the handshake comes first, without a word to the handler unless it fails or takes too long:
  // on_closed.
  [[nodiscard]] static std::unique_ptr<Stream> adopt(
      Loop& loop, int fd, StreamHandler& handler, const TlsContext* tls = nullptr,
      std::chrono::milliseconds handshake_timeout = kHandshakeTimeout);
  // Connects to "host:port", "[v6]:port" or "unix:/path". Ends in on_connected or on_closed, within
  // `timeout`. With a client's `tls` that is after the handshake, which the same limit holds for. REQUIRES:
  // `tls` lives until then.
  [[nodiscard]] static std::unique_ptr<Stream> connect(Loop& loop, std::string_view address,
                                                       std::chrono::milliseconds timeout,
                                                       StreamHandler& handler,
                                                       const TlsContext* tls = nullptr);
  ~Stream();  // Closes the socket; output that was not written is lost.
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Gathers output. output() is the buffer itself: append to it, and do nothing else with it.
  void append(std::string_view bytes) { output().append(bytes); }
  [[nodiscard]] std::string& output() {
    if (out_ == nullptr) [[unlikely]]
      out_ = loop_.buffers_.take();
    return *out_;
  }
  // One write of what is gathered, unless the socket is known to be full. A failure shows as on_closed later.
  void flush();
  [[nodiscard]] std::size_t queued_bytes() const noexcept {
    return out_ == nullptr ? 0 : out_->size() - out_sent_;
  }
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return written_; }  // Since the beginning.

  // Backpressure. resume_reading() delivers an unconsumed tail again even when no more bytes come.
  void pause_reading();
  void resume_reading();
  [[nodiscard]] bool reading() const noexcept { return reading_; }

  // Of an idle stream: what it keeps for its next input is given back. So many bytes.
  std::size_t rest() { return tail_.empty() ? std::exchange(tail_, {}).capacity() : 0; }
  // Whether the peer has shut its end, also behind bytes that were not read. One system call; for streams
  // that do not read.
  [[nodiscard]] bool peer_left() const noexcept;

  // The peer is in the middle of something: bytes are here that the handler has not consumed, or a handshake
  // is not over. One system call.
  [[nodiscard]] bool input_waits() const;

  // Half-close: once all output has left, tells the peer that no more comes. Before flush(): in the same
  // segment as the output's end, so that whoever has read the last answer can already see the end behind it.
  void finish_writing();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::string peer() const;  // "host:port" for logs.

 private:
  struct Connecting;
  Stream(Loop& loop, StreamHandler& handler);
  void begin_connect(std::string_view address, std::chrono::milliseconds timeout);
  void try_next_address(std::string_view last_failure);
  void connect_ready();
  void connected();
  void begin_handshake(const TlsContext& tls, std::string_view host);
  void handshake_ready();
  void read_ready();
  ssize_t receive(char* data, std::size_t size);
  ssize_t receive_tls(char* data, std::size_t size);
  ssize_t send_some(const char* data, std::size_t size);
  void end_output();
  void drop_tail();
  [[nodiscard]] std::string failure(int error) const;
  void read_into_tail();
  void nothing_received(ssize_t size, int error);
  void deliver(const char* data, std::size_t size);
  void want_read(bool on);
  void want_write(bool on);
  void woken();
  void write_ready();
  void close_later(std::string_view reason);

  Loop& loop_;
  StreamHandler& handler_;
  Watch watch_;
  Soon wake_;  // For what must not be reported from inside a method.
  int fd_ = -1;
  bool connected_ = false;
  bool reading_ = true;
  bool writable_ = true;        // False after a short write, until the loop says otherwise.
  bool ended_ = false;          // The peer's end of file was seen.
  bool deliver_again_ = false;  // resume_reading() with a tail.
  bool finish_writing_ = false;
  bool* destroyed_ = nullptr;  // Set while a callback runs that is followed by work of ours.
  std::uint64_t written_ = 0;
  std::unique_ptr<std::string> out_;  // Output; the first out_sent_ bytes have left. Null: none.
  std::size_t out_sent_ = 0;
  std::string tail_;                        // Input that the handler did not consume.
  std::string close_reason_;                // Not empty: on_closed is due.
  std::unique_ptr<Connecting> connecting_;  // Until the handshake is done, too.
  std::unique_ptr<TlsSession> tls_;         // Null: plain.
};

}  // namespace ringshift::net
