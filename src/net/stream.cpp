#include "net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "net/address.h"
#include "net/tls_session.h"

namespace ringshift::net {
namespace {

constexpr std::size_t kReadSize = 64U << 10;    // Most that one wakeup reads into the shared buffer.
constexpr std::size_t kSmallTail = 16U << 10;   // A tail up to this is copied in front of the next read.
constexpr std::size_t kBigReadSize = 1U << 20;  // Most that one wakeup reads onto a bigger tail.

// Room for a small tail and what is read after it. In the thread's zero pages until the first read.
thread_local char shared_input[kSmallTail + kReadSize];

void set_option(int fd, int level, int name, int value) {
  (void)::setsockopt(fd, level, name, &value, sizeof(value));  // Fails on unix sockets, which need none.
}

void set_tcp_options(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);  // A peer that lost power is found within ten minutes.
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 300);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 60);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

}  // namespace

struct Stream::Connecting {
  std::string address;
  std::vector<SocketAddress> candidates;
  std::size_t next = 0;
  std::unique_ptr<Lookup> lookup;
  std::unique_ptr<Timer> timeout;
  const TlsContext* tls = nullptr;
  std::string host;  // Of the address, which the certificate must name.
  bool accepted = false;
};

Stream::Stream(Loop& loop, StreamHandler& handler)
    : loop_(loop),
      handler_(handler),
      watch_(loop),
      wake_(loop, [](void* self) { static_cast<Stream*>(self)->woken(); }, this) {}

Stream::~Stream() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  if (out_ != nullptr) loop_.buffers_.give_back(std::move(out_));
  if (fd_ < 0) return;
  watch_.stop();
  tls_.reset();  // Says goodbye, so the socket must be open.
  ::close(fd_);
}

void Stream::want_read(bool on) {
  if (!watch_.want_read(on)) close_later(std::strerror(errno));
}

void Stream::want_write(bool on) {
  if (!watch_.want_write(on)) close_later(std::strerror(errno));
}

std::unique_ptr<Stream> Stream::adopt(Loop& loop, int fd, StreamHandler& handler, const TlsContext* tls,
                                      std::chrono::milliseconds handshake_timeout) {
  std::unique_ptr<Stream> stream(new Stream(loop, handler));
  stream->fd_ = fd;
  if (tls == nullptr) {
    stream->connected();
    return stream;
  }
  stream->connecting_ = std::make_unique<Connecting>();
  stream->connecting_->accepted = true;
  stream->connecting_->timeout = loop.timer([self = stream.get(), handshake_timeout] {
    self->close_later("TLS handshake timed out after " + std::to_string(handshake_timeout.count()) + " ms");
  });
  stream->connecting_->timeout->arm(handshake_timeout);
  stream->begin_handshake(*tls, "");
  return stream;
}

std::unique_ptr<Stream> Stream::connect(Loop& loop, std::string_view address,
                                        std::chrono::milliseconds timeout, StreamHandler& handler,
                                        const TlsContext* tls) {
  std::unique_ptr<Stream> stream(new Stream(loop, handler));
  stream->connecting_ = std::make_unique<Connecting>();
  stream->connecting_->tls = tls;
  stream->begin_connect(address, timeout);
  return stream;
}

// ---- connecting ----

void Stream::begin_connect(std::string_view address, std::chrono::milliseconds timeout) {
  connecting_->address = address;
  Result<Endpoint> endpoint = parse_endpoint(address);
  if (!endpoint) return close_later(endpoint.error().message);
  connecting_->host = endpoint->host;
  connecting_->timeout = loop_.timer([this, timeout] {
    close_later((tls_ ? "TLS handshake with " : "connecting to ") + connecting_->address +
                " timed out after " + std::to_string(timeout.count()) + " ms");
  });
  connecting_->timeout->arm(timeout);
  if (Result<SocketAddress> at_once = literal(*endpoint)) {
    connecting_->candidates.push_back(*at_once);
    return try_next_address("");
  }
  connecting_->lookup =
      std::make_unique<Lookup>(loop_, *endpoint, [this](Result<std::vector<SocketAddress>> addresses) {
        if (!addresses) return close_later(addresses.error().message);
        connecting_->candidates = std::move(*addresses);
        try_next_address("");
      });
}

void Stream::try_next_address(std::string_view last_failure) {
  Connecting& state = *connecting_;
  std::string failure(last_failure);
  while (state.next < state.candidates.size()) {
    const SocketAddress& address = state.candidates[state.next++];
    fd_ = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) {
      failure = std::strerror(errno);
      continue;
    }
    const int result = ::connect(fd_, address.get(), address.size);
    if (result == 0 || errno == EINPROGRESS) {
      // A unix socket is connected at once, and is writable at once: both are reported from the loop.
      watch_.start(fd_, nullptr, [](void* self) { static_cast<Stream*>(self)->connect_ready(); }, this);
      return want_write(true);
    }
    failure = std::strerror(errno);
    ::close(fd_);
    fd_ = -1;
  }
  close_later(failure);
}

void Stream::connect_ready() {
  if (!close_reason_.empty()) return;  // Timed out in this very wakeup.
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    watch_.stop();
    ::close(fd_);
    fd_ = -1;
    return try_next_address(std::strerror(error));
  }
  if (connecting_->tls != nullptr) return begin_handshake(*connecting_->tls, connecting_->host);
  connecting_.reset();
  connected();
  handler_.on_connected();  // May destroy us.
}

void Stream::begin_handshake(const TlsContext& tls, std::string_view host) {
  set_tcp_options(fd_);
  const auto ready = [](void* self) { static_cast<Stream*>(self)->handshake_ready(); };
  watch_.start(fd_, ready, ready, this);
  tls_ = std::make_unique<TlsSession>(tls, fd_, host);
  if (connecting_->accepted) {  // The client speaks first.
    want_read(true);
  } else {
    want_write(true);
  }
}

void Stream::handshake_ready() {
  if (!close_reason_.empty()) return;  // Timed out in this very wakeup.
  const TlsSession::Step step = tls_->handshake();
  want_read(step == TlsSession::Step::wants_read);
  want_write(step == TlsSession::Step::wants_write);
  if (step == TlsSession::Step::wants_read || step == TlsSession::Step::wants_write) return;
  if (step == TlsSession::Step::failed) return close_later(tls_->problem());
  const bool accepted = connecting_->accepted;
  connecting_.reset();
  connected();
  if (tls_->holds()) wake_.ask();
  if (!accepted) return handler_.on_connected();  // May destroy us.
  flush();
}

void Stream::connected() {
  set_tcp_options(fd_);
  connected_ = true;
  watch_.start(
      fd_, [](void* self) { static_cast<Stream*>(self)->read_ready(); },
      [](void* self) { static_cast<Stream*>(self)->write_ready(); }, this);
  if (reading_) want_read(true);
}

// ---- reading ----

void Stream::read_ready() {
  if (tail_.size() > kSmallTail) return read_into_tail();
  const std::size_t old = tail_.size();
  if (old != 0) std::memcpy(shared_input, tail_.data(), old);
  const ssize_t size = receive(shared_input + old, kReadSize);
  if (size <= 0) [[unlikely]]
    return nothing_received(size, errno);
  deliver(shared_input, old + static_cast<std::size_t>(size));
}

// A big value in parts: read to where it lies, so that each byte is copied once.
void Stream::read_into_tail() {
  const std::size_t old = tail_.size();
  const std::size_t spare = tail_.capacity() - old;
  const std::size_t want = spare < kReadSize ? kReadSize : (spare < kBigReadSize ? spare : kBigReadSize);
  ssize_t size = 0;
  int error = 0;
  tail_.resize_and_overwrite(old + want, [&](char* data, std::size_t) {
    size = receive(data + old, want);
    error = errno;
    return old + (size > 0 ? static_cast<std::size_t>(size) : 0);
  });
  if (size <= 0) return nothing_received(size, error);
  deliver(tail_.data(), tail_.size());
}

ssize_t Stream::receive(char* data, std::size_t size) {
  if (tls_) [[unlikely]]
    return receive_tls(data, size);
  return ::recv(fd_, data, size, 0);
}

ssize_t Stream::receive_tls(char* data, std::size_t size) {
  const ssize_t got = tls_->read(data, size);
  const int error = errno;
  if (tls_->read_wants_write()) want_write(true);
  if (tls_->holds()) {
    // No readiness will tell. Later, so that the others have their turn first.
    wake_.ask();
  }
  errno = error;
  return got;
}

std::string Stream::failure(int error) const {
  return tls_ && !tls_->problem().empty() ? tls_->problem() : std::strerror(error);
}

// The end of the stream, an error, or nothing at all.
void Stream::nothing_received(ssize_t size, int error) {
  if (size < 0) {
    if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) return;
    want_read(false);
    return close_later(failure(error));
  }
  ended_ = true;
  want_read(false);
  handler_.on_end();  // May destroy us.
}

// `data` is the shared buffer or the tail itself.
void Stream::deliver(const char* data, std::size_t size) {
  bool destroyed = false;
  destroyed_ = &destroyed;
  const std::size_t used = handler_.on_data(std::string_view(data, size));
  if (destroyed) return;
  destroyed_ = nullptr;
  if (used == size) {
    if (!tail_.empty()) drop_tail();
  } else if (data == tail_.data()) {
    tail_.erase(0, used);
  } else {
    tail_.assign(data + used, size - used);
  }
}

void Stream::drop_tail() {
  if (tail_.capacity() > kSmallTail) {
    std::string().swap(tail_);
  } else {
    tail_.clear();
  }
}

void Stream::pause_reading() {
  if (!reading_) return;
  reading_ = false;
  deliver_again_ = false;
  if (connected_ && !ended_) want_read(false);
}

void Stream::resume_reading() {
  if (reading_) return;
  reading_ = true;
  if (!connected_) return;
  if (!ended_) want_read(true);
  deliver_again_ = true;
  wake_.ask();
}

bool Stream::input_waits() const {
  if (!connected_ || !tail_.empty() || (tls_ && tls_->holds())) return true;
  int bytes = 0;
  return ::ioctl(fd_, FIONREAD, &bytes) == 0 && bytes > 0;
}

void Stream::woken() {
  if (!close_reason_.empty()) {
    watch_.stop();
    const std::string reason = std::exchange(close_reason_, {});
    return handler_.on_closed(reason);  // May destroy us.
  }
  if (tls_ && tls_->holds() && connected_ && reading_ && !ended_) {
    deliver_again_ = false;
    return read_ready();  // Delivers the tail, too.
  }
  if (!deliver_again_) return;
  deliver_again_ = false;
  if (tail_.empty()) return;
  // Through a copy, so that the tail is never both the source and the target.
  const std::string bytes = std::exchange(tail_, {});
  deliver(bytes.data(), bytes.size());
}

bool Stream::peer_left() const noexcept {
  pollfd look{.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return connected_ && ::poll(&look, 1, 0) > 0;
}

// ---- writing ----

void Stream::flush() {
  if (!writable_ || !connected_ || !close_reason_.empty()) return;
  if (const std::size_t size = queued_bytes(); size != 0) {
    // The goodbye of TLS is a write of its own, which must not come later than the answer: see
    // finish_writing().
    if (finish_writing_ && tls_) set_option(fd_, IPPROTO_TCP, TCP_CORK, 1);
    ssize_t sent = send_some(out_->data() + out_sent_, size);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) return close_later(failure(errno));
      sent = 0;
    }
    const auto count = static_cast<std::size_t>(sent);
    written_ += count;
    if (count < size) [[unlikely]] {
      out_sent_ += count;
      if (out_sent_ > out_->size() / 2) {
        out_->erase(0, out_sent_);
        out_sent_ = 0;
      }
      writable_ = false;
      want_write(true);
      return;
    }
    out_sent_ = 0;
    loop_.buffers_.give_back(std::move(out_));
  }
  if (finish_writing_) end_output();
}

ssize_t Stream::send_some(const char* data, std::size_t size) {
  if (tls_) [[unlikely]]
    return tls_->write(data, size);
  ssize_t sent = 0;
  const int flags = finish_writing_ ? MSG_NOSIGNAL | MSG_MORE : MSG_NOSIGNAL;
  do {
    sent = ::send(fd_, data, size, flags);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

void Stream::end_output() {
  if (tls_ && !tls_->close_notify()) {
    writable_ = false;
    want_write(true);
    return;
  }
  (void)::shutdown(fd_, SHUT_WR);
}

void Stream::write_ready() {
  writable_ = true;
  flush();
  if (tls_ && tls_->read_wants_write()) {
    tls_->socket_writable();
    wake_.ask();
  }
  if (queued_bytes() != 0 || !writable_ || !close_reason_.empty()) return;
  want_write(false);
  handler_.on_drained();  // May destroy us.
}

void Stream::finish_writing() {
  finish_writing_ = true;
  if (queued_bytes() == 0 && connected_ && writable_) end_output();
}

void Stream::close_later(std::string_view reason) {
  if (connecting_) connecting_->timeout.reset();
  if (!close_reason_.empty()) return;
  close_reason_ = reason.empty() ? "connection closed" : reason;
  wake_.ask();
}

std::string Stream::peer() const {
  SocketAddress address;
  address.size = sizeof(address.storage);
  if (fd_ < 0 || ::getpeername(fd_, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    return "?";
  }
  return address.text();
}

}  // namespace ringshift::net
