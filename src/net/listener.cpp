#include "net/listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/seldom.h"
#include "net/address.h"
#include "net/handover.h"
#include "net/watch.h"

namespace ringshift::net {
namespace {

constexpr int kBacklog = 4096;                        // The kernel caps it at net.core.somaxconn.
constexpr std::chrono::seconds kExhaustionLogged{5};  // At most one in this time and thread.
constexpr std::string_view kUnixPrefix = "unix:";

Error failed(std::string_view address, std::string_view step, int error) {
  std::string message =
      "cannot listen on " + std::string(address) + ": " + std::string(step) + ": " + std::strerror(error);
  if (error == EADDRINUSE) message += "; stop what listens there, or choose another port";
  return Error{error == EACCES ? ErrorKind::denied : ErrorKind::internal, std::move(message)};
}

// A unix socket's file survives its process; it may go when nobody answers on it. The kernel refuses to
// connect to any other file in the same words, and that is somebody's data.
void remove_stale_file(const SocketAddress& address, const std::string& path) {
  struct stat file{};
  if (::lstat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return;
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return;
  if (::connect(probe, address.get(), address.size) != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
  ::close(probe);
}

}  // namespace

struct Listener::Impl {
  Loop& loop;
  OnAccept on_accept;
  int fd = -1;
  std::string unlink_path;  // "" unless we made the file.
  Watch watch;
  std::unique_ptr<Timer> rest_over;

  Impl(Loop& l, OnAccept callback) : loop(l), on_accept(std::move(callback)), watch(l) {
    rest_over = loop.timer([this] { begin(); });
  }
  ~Impl() {
    if (fd < 0) return;
    watch.stop();
    ::close(fd);
    if (!unlink_path.empty()) ::unlink(unlink_path.c_str());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start(int listening_fd) {
    fd = listening_fd;
    watch.start(fd, [](void* self) { (void)static_cast<Impl*>(self)->accept_ready(); }, nullptr, this);
    begin();
  }
  // The kernel may be out of memory for it, which passes.
  void begin() {
    if (!watch.want_read(true)) rest_over->arm(kRestAfterExhaustion);
  }

  // False when nothing waits any more, or nothing can be accepted for now.
  bool accept_ready() {
    for (int i = 0; i < kMaxAcceptsPerWakeup; ++i) {
      const int accepted = ::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted >= 0) {
        on_accept(accepted);
        continue;
      }
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        thread_local base::Seldom seldom;
        const std::string why = std::strerror(errno);
        if (const auto tail = seldom.ask(loop.now(), kExhaustionLogged)) {
          base::log(base::LogLevel::warning,
                    "accepting rests for {} ms: {}; raise the limit of open files (ulimit -n){}",
                    kRestAfterExhaustion.count(), why, *tail);
        }
        (void)watch.want_read(false);
        rest_over->arm(kRestAfterExhaustion);
        return false;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      // Anything else (ECONNABORTED, EPROTO, ...) concerns that one connection alone.
    }
    return true;
  }
};

Listener::Listener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() = default;

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, std::string_view address, OnAccept on_accept,
                                                 mode_t unix_mode) {
  Result<Endpoint> endpoint = parse_endpoint(address);
  if (!endpoint) return std::unexpected(endpoint.error());
  Result<std::vector<SocketAddress>> resolved = resolve(*endpoint);
  if (!resolved) return std::unexpected(resolved.error());
  const SocketAddress& at = resolved->front();
  auto impl = std::make_unique<Impl>(loop, std::move(on_accept));
  const bool is_unix = !endpoint->unix_path.empty();
  if (is_unix) remove_stale_file(at, endpoint->unix_path);

  const int fd = ::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::unexpected(failed(address, "socket", errno));
  const int on = 1;
  if (!is_unix) {
    (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
  }
  const char* step = "bind";
  int result = ::bind(fd, at.get(), at.size);
  if (result == 0) {
    if (is_unix) impl->unlink_path = endpoint->unix_path;
    if (is_unix && unix_mode != 0) {
      step = "chmod";
      result = ::chmod(endpoint->unix_path.c_str(), unix_mode);
    }
  }
  if (result == 0) {
    step = "listen";
    result = ::listen(fd, kBacklog);
  }
  if (result != 0) {
    const int error = errno;
    ::close(fd);
    return std::unexpected(failed(address, step, error));
  }
  impl->start(fd);
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

Result<std::unique_ptr<Listener>> Listener::share(Loop& loop, const Listener& other, OnAccept on_accept) {
  const int fd = ::fcntl(other.impl_->fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return std::unexpected(failed(other.address(), "dup", errno));
  auto impl = std::make_unique<Impl>(loop, std::move(on_accept));
  impl->start(fd);
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

Result<std::unique_ptr<Listener>> Listener::adopt(Loop& loop, Descriptor socket, OnAccept on_accept) {
  const std::string address = listening_address(socket.get());
  // The flag belongs to the socket, not to the descriptor, and whoever made it may be a stranger to us.
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return std::unexpected(failed(address, "fcntl", errno));
  }
  auto impl = std::make_unique<Impl>(loop, std::move(on_accept));
  impl->start(socket.release());
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

std::string Listener::address() const { return listening_address(impl_->fd); }

Descriptor Listener::duplicate() const { return Descriptor(::fcntl(impl_->fd, F_DUPFD_CLOEXEC, 0)); }

void Listener::own_file(mode_t unix_mode) {
  const std::string at = address();
  if (!at.starts_with(kUnixPrefix)) return;
  impl_->unlink_path = at.substr(kUnixPrefix.size());
  if (unix_mode != 0) (void)::chmod(impl_->unlink_path.c_str(), unix_mode);
}

void Listener::leave_to_successor() { impl_->unlink_path.clear(); }

void Listener::accept_the_rest() {
  // First the file, so that the queue has an end.
  if (!impl_->unlink_path.empty()) ::unlink(std::exchange(impl_->unlink_path, {}).c_str());
  for (int accepted = 0; accepted < kBacklog; accepted += kMaxAcceptsPerWakeup) {
    if (!impl_->accept_ready()) return;
  }
}

}  // namespace ringshift::net
