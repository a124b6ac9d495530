#include "http/server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/seldom.h"
#include "net/tls.h"

namespace ringshift::http {
namespace {

constexpr int kBacklog = 1024;
constexpr timeval kAcceptPause{0, 100'000};
constexpr std::chrono::seconds kAcceptSaidEvery{10};
constexpr std::size_t kStreamInputMax = 16U << 10;  // What a client may send into its stream, unread.

struct EventFree {
  void operator()(event* e) const { event_free(e); }
};
using EventPtr = std::unique_ptr<event, EventFree>;

const char* method_name(evhttp_cmd_type type) {
  switch (type) {
    case EVHTTP_REQ_GET:
      return "GET";
    case EVHTTP_REQ_POST:
      return "POST";
    case EVHTTP_REQ_HEAD:
      return "HEAD";
    case EVHTTP_REQ_PUT:
      return "PUT";
    case EVHTTP_REQ_DELETE:
      return "DELETE";
    case EVHTTP_REQ_OPTIONS:
      return "OPTIONS";
    case EVHTTP_REQ_PATCH:
      return "PATCH";
    default:
      return "";
  }
}

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 503:
      return "Service Unavailable";
    default:
      return status < 400 ? "OK" : "Error";
  }
}

Request read_request(evhttp_request* raw) {
  Request request;
  request.method = method_name(evhttp_request_get_command(raw));
  const evhttp_uri* uri = evhttp_request_get_evhttp_uri(raw);
  if (const char* path = evhttp_uri_get_path(uri)) {
    std::size_t size = 0;
    char* decoded = evhttp_uridecode(path, 0, &size);
    if (decoded != nullptr) request.path.assign(decoded, size);
    std::free(decoded);
  }
  if (const char* query = evhttp_uri_get_query(uri)) request.query = query;
  evbuffer* body = evhttp_request_get_input_buffer(raw);
  request.body.resize(evbuffer_get_length(body));
  evbuffer_remove(body, request.body.data(), request.body.size());
  request.header = [raw](const std::string& name) -> std::optional<std::string> {
    const char* value = evhttp_find_header(evhttp_request_get_input_headers(raw), name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
  char* peer = nullptr;
  ev_uint16_t port = 0;
  evhttp_connection_get_peer(evhttp_request_get_connection(raw), &peer, &port);
  if (peer != nullptr) request.peer = peer;
  request.certificate = [raw] {
    return net::peer_certificate(
        bufferevent_openssl_get_ssl(evhttp_connection_get_bufferevent(evhttp_request_get_connection(raw))));
  };
  return request;
}

// What a new connection reads and writes with, when it is TLS. Without memory for it the process ends:
// libevent would make one without TLS of a null.
bufferevent* secure_connection(event_base* base, void* context) {
  const std::shared_ptr<SSL_CTX> settings = static_cast<net::TlsContext*>(context)->current();
  SSL* ssl = SSL_new(settings.get());
  if (ssl == nullptr) std::abort();
  // libevent asks SSL_pending() whether there is more, which does not know of what was read ahead: the rest
  // of a long body would lie there until the client sends again.
  SSL_set_read_ahead(ssl, 0);
  bufferevent* events =
      bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
  if (events == nullptr) std::abort();
  bufferevent_openssl_set_allow_dirty_shutdown(events, 1);  // HTTP says how long everything is.
  return events;
}

// A connection waits and cannot be taken: no descriptor is left. libevent would try again at once, for ever.
void pause_accepting(evconnlistener* listener, void*) {
  const int error = errno;
  thread_local base::Seldom seldom;
  if (const auto tail = seldom.ask(base::SteadyClock().now(), kAcceptSaidEvery)) {
    base::log(
        base::LogLevel::error,
        "http: no further connection can be taken ({}): connections that are open go on; raise the limit "
        "of open files (ulimit -n, LimitNOFILE), or look who has so many{}",
        std::strerror(error), *tail);
  }
  evconnlistener_disable(listener);
  event_base_once(
      evconnlistener_get_base(listener), -1, EV_TIMEOUT,
      [](int, short, void* paused) { evconnlistener_enable(static_cast<evconnlistener*>(paused)); }, listener,
      &kAcceptPause);
}

// Invariant: request_ is null once the connection is gone. Who frees the request then depends on how it
// went: a client that left has it detached (ours to free); a server that ends frees it itself.
class EvStream final : public Stream {
 public:
  EvStream(evhttp_request* request, std::chrono::seconds write_timeout) : request_(request) {
    evhttp_connection* connection = evhttp_request_get_connection(request);
    evhttp_connection_set_closecb(connection, &EvStream::closed_by_peer, this);
    const timeval limit{static_cast<time_t>(write_timeout.count()), 0};
    bufferevent* events = evhttp_connection_get_bufferevent(connection);
    bufferevent_set_timeouts(events, nullptr, &limit);
    bufferevent_setwatermark(events, EV_READ, 0, kStreamInputMax);
    evhttp_send_reply_start(request, 200, "OK");
  }
  ~EvStream() override {
    if (request_ == nullptr) return;
    if (evhttp_connection* connection = evhttp_request_get_connection(request_)) {
      evhttp_connection_set_closecb(connection, nullptr, nullptr);
    }
    evhttp_send_reply_end(request_);
  }
  EvStream(const EvStream&) = delete;
  EvStream& operator=(const EvStream&) = delete;

  bool write(std::string_view chunk) override {
    if (request_ == nullptr) return false;
    if (chunk.empty()) return true;
    evbuffer* buffer = evbuffer_new();
    evbuffer_add(buffer, chunk.data(), chunk.size());
    evhttp_send_reply_chunk_with_cb(request_, buffer, &EvStream::drained, this);
    evbuffer_free(buffer);
    return true;
  }
  [[nodiscard]] std::size_t backlog() const override {
    if (request_ == nullptr) return 0;
    bufferevent* events = evhttp_connection_get_bufferevent(evhttp_request_get_connection(request_));
    return evbuffer_get_length(bufferevent_get_output(events));
  }
  [[nodiscard]] bool closed() const override { return request_ == nullptr; }
  void on_closed(std::function<void()> callback) override { on_closed_ = std::move(callback); }
  void on_drained(std::function<void()> callback) override { on_drained_ = std::move(callback); }

 private:
  static void closed_by_peer(evhttp_connection*, void* self) {
    auto* stream = static_cast<EvStream*>(self);
    evhttp_request* request = std::exchange(stream->request_, nullptr);
    if (request != nullptr && evhttp_request_get_connection(request) == nullptr) evhttp_request_free(request);
    if (stream->on_closed_) stream->on_closed_();
  }
  static void drained(evhttp_connection*, void* self) {
    auto* stream = static_cast<EvStream*>(self);
    if (stream->on_drained_) stream->on_drained_();
  }

  evhttp_request* request_;
  std::function<void()> on_closed_, on_drained_;
};

void send_reply(evhttp_request* request, int status, std::string_view content_type, std::string_view body) {
  evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                    std::string(content_type).c_str());
  evbuffer* buffer = evbuffer_new();
  evbuffer_add(buffer, body.data(), body.size());
  evhttp_send_reply(request, status, reason(status), buffer);
  evbuffer_free(buffer);
}

// Invariant: as EvStream's.
class EvDeferred final : public Deferred {
 public:
  explicit EvDeferred(evhttp_request* request) : request_(request) {
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), &EvDeferred::closed_by_peer, this);
  }
  ~EvDeferred() override { reply(500, "text/plain; charset=utf-8", "no answer\n"); }
  EvDeferred(const EvDeferred&) = delete;
  EvDeferred& operator=(const EvDeferred&) = delete;

  void add_header(const std::string& name, const std::string& value) override {
    if (request_ == nullptr) return;
    evhttp_add_header(evhttp_request_get_output_headers(request_), name.c_str(), value.c_str());
  }
  void reply(int status, std::string_view content_type, std::string_view body) override {
    if (request_ == nullptr) return;
    evhttp_connection_set_closecb(evhttp_request_get_connection(request_), nullptr, nullptr);
    send_reply(std::exchange(request_, nullptr), status, content_type, body);
  }

 private:
  static void closed_by_peer(evhttp_connection*, void* self) {
    evhttp_request* request = std::exchange(static_cast<EvDeferred*>(self)->request_, nullptr);
    if (request != nullptr && evhttp_request_get_connection(request) == nullptr) evhttp_request_free(request);
  }

  evhttp_request* request_;
};

class EvExchange final : public Exchange {
 public:
  EvExchange(evhttp_request* request, std::chrono::seconds write_timeout)
      : request_(request), write_timeout_(write_timeout) {}

  void reply(int status, std::string_view content_type, std::string_view body) override {
    send_reply(std::exchange(request_, nullptr), status, content_type, body);
  }
  void add_header(const std::string& name, const std::string& value) override {
    evhttp_add_header(evhttp_request_get_output_headers(request_), name.c_str(), value.c_str());
  }
  std::unique_ptr<Stream> stream(std::string_view content_type) override {
    add_header("Content-Type", std::string(content_type));
    add_header("Connection", "close");  // The connection's timeouts are the stream's; it serves nothing else.
    return std::make_unique<EvStream>(std::exchange(request_, nullptr), write_timeout_);
  }
  std::unique_ptr<Deferred> defer() override {
    return std::make_unique<EvDeferred>(std::exchange(request_, nullptr));
  }
  [[nodiscard]] bool answered() const { return request_ == nullptr; }

 private:
  evhttp_request* request_;
  std::chrono::seconds write_timeout_;
};

// A listening socket by hand, since its errno is what the message needs.
Result<int> listen_on(const ServerOptions& options) {
  const std::string place = fmt::format("{}:{}", options.host, options.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(options.host.c_str(), std::to_string(options.port).c_str(), &hints, &found);
  if (code != 0) {
    return fail(ErrorKind::invalid,
                fmt::format("cannot listen on {}: {}: name an address of this machine, for example "
                            "127.0.0.1",
                            place, gai_strerror(code)));
  }
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Accepted sockets inherit it. Without it the second of two events of a stream waits for the first one's
  // acknowledgement, which the kernel of a client that only reads puts off for 40 ms: so long was each HOLD.
  if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const bool bound = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, kBacklog) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (bound) return fd;
  if (fd >= 0) close(fd);
  std::string fix = "name another address with " + options.flag;
  if (error == EADDRINUSE) {
    fix = fmt::format(
        "another process has this port: stop it ('ss -ltnp sport = :{}' names it), or choose another one "
        "with {} ({}:0 takes any free port)",
        options.port, options.flag, options.host);
  } else if (error == EACCES) {
    fix = "ports below 1024 need privileges: choose a higher one with " + options.flag;
  }
  return fail(ErrorKind::invalid,
              fmt::format("cannot listen on {}: {}: {}", place, std::strerror(error), fix));
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char port[8] = "0";
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    getnameinfo(reinterpret_cast<sockaddr*>(&address), size, nullptr, 0, port, sizeof port, NI_NUMERICSERV);
  }
  return static_cast<std::uint16_t>(std::atoi(port));
}

}  // namespace

struct Server::Impl {
  ServerOptions options;
  Handler handler;
  std::uint16_t port = 0;
  event_base* base = nullptr;
  evhttp* http = nullptr;
  int wake_fd = -1;
  EventPtr wake;
  struct Repeated {
    std::function<void()> task;
    EventPtr timer;
  };
  std::list<Repeated> repeated;
  std::thread thread;

  std::mutex mutex;  // Guards the two below.
  std::deque<std::function<void()>> tasks;
  bool stopping = false;

  ~Impl() {
    if (thread.joinable()) {
      {
        const std::lock_guard lock(mutex);
        stopping = true;
      }
      poke();
      thread.join();
    }
    tasks.clear();
    repeated.clear();
    wake.reset();
    if (http != nullptr) evhttp_free(http);
    if (base != nullptr) event_base_free(base);
    if (wake_fd >= 0) close(wake_fd);
  }

  void poke() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_fd, &one, sizeof one);
  }

  void run_tasks() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read_bytes = ::read(wake_fd, &count, sizeof count);
    std::deque<std::function<void()>> ready;
    bool stop = false;
    {
      const std::lock_guard lock(mutex);
      ready.swap(tasks);
      stop = stopping;
    }
    for (const auto& task : ready) task();
    if (!stop) return;
    // Connections end on this thread, so that streams learn of it where they live.
    evhttp_free(std::exchange(http, nullptr));
    event_base_loopbreak(base);
  }

  void handle(evhttp_request* raw) {
    EvExchange exchange(raw, options.write_timeout);
    const Request request = read_request(raw);
    handler(request, exchange);
    if (!exchange.answered()) exchange.reply(500, "text/plain; charset=utf-8", "no answer\n");
  }

  Status open() {
    const Result<int> fd = listen_on(options);
    if (!fd) return std::unexpected(fd.error());
    port = port_of(*fd);
    base = event_base_new();
    http = evhttp_new(base);
    evhttp_set_max_headers_size(http, static_cast<ev_ssize_t>(options.header_bytes_max));
    evhttp_set_max_body_size(http, static_cast<ev_ssize_t>(options.body_bytes_max));
    evhttp_set_timeout(http, static_cast<int>(options.idle_timeout.count()));
    evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
                                         EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
    evhttp_set_default_content_type(http, nullptr);
    if (options.tls != nullptr) evhttp_set_bevcb(http, &secure_connection, options.tls.get());
    evhttp_set_gencb(
        http, [](evhttp_request* raw, void* self) { static_cast<Impl*>(self)->handle(raw); }, this);
    evhttp_bound_socket* const bound = evhttp_accept_socket_with_handle(http, *fd);
    if (bound == nullptr) {
      close(*fd);
      return fail(ErrorKind::internal, fmt::format("cannot accept connections on port {}", port));
    }
    evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), &pause_accepting);
    wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_fd < 0) return fail(ErrorKind::internal, fmt::format("no eventfd: {}", std::strerror(errno)));
    wake.reset(event_new(
        base, wake_fd, EV_READ | EV_PERSIST,
        [](int, short, void* self) { static_cast<Impl*>(self)->run_tasks(); }, this));
    event_add(wake.get(), nullptr);
    thread = std::thread([this] {
      // A client that left shows as EPIPE on the write; the signal would end the whole process.
      sigset_t broken_pipe;
      sigemptyset(&broken_pipe);
      sigaddset(&broken_pipe, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
      event_base_dispatch(base);
    });
    return {};
  }
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, Handler handler) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->handler = std::move(handler);
  if (const Status opened = impl->open(); !opened) return std::unexpected(opened.error());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const noexcept { return impl_->port; }

void Server::post(std::function<void()> task) {
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) return;
    impl_->tasks.push_back(std::move(task));
  }
  impl_->poke();
}

void Server::every(std::chrono::milliseconds interval, std::function<void()> task) {
  Impl* impl = impl_.get();
  post([impl, interval, task = std::move(task)] {
    Impl::Repeated& added = impl->repeated.emplace_back(Impl::Repeated{task, nullptr});
    added.timer.reset(event_new(
        impl->base, -1, EV_PERSIST,
        [](int, short, void* self) { static_cast<Impl::Repeated*>(self)->task(); }, &added));
    const timeval period{static_cast<time_t>(interval.count() / 1000),
                         static_cast<suseconds_t>(interval.count() % 1000 * 1000)};
    event_add(added.timer.get(), &period);
  });
}

}  // namespace ringshift::http
