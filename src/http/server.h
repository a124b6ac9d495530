// An HTTP/1.1 server for the control plane, on one thread of its own.
//
// Every handler, stream and timer belongs to that thread; only post(), port() and the destructor may be used
// from others. A handler answers before it returns, or turns its exchange into a stream or a deferred reply,
// which live on.
// Bounds: headers, body, what a slow reader leaves unread, an idle connection's life. Streams have no idle
// timeout (a watch may be silent for days) but one for a reader that takes nothing.
// A handler that blocks holds up everybody: keep to short work, and defer() what takes longer.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/certificates.h"
#include "ringshift/error.h"

namespace ringshift::net {
class TlsContext;
}

namespace ringshift::http {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one.
  std::size_t header_bytes_max = 16U << 10;
  std::size_t body_bytes_max = 8U << 20;
  std::chrono::seconds idle_timeout{120};
  std::chrono::seconds write_timeout{30};  // A reader that takes nothing for so long is cut.
  std::string flag = "--listen";           // What chooses the address, for the messages of start().
  // A server's context: then every connection is TLS. Its reload() holds for the connections that come after.
  std::shared_ptr<net::TlsContext> tls;
};

struct Request {
  std::string method;  // "GET", "POST", ...
  std::string path;    // Decoded, without the query.
  std::string query;   // Raw, without '?'.
  std::string body;
  std::function<std::optional<std::string>(const std::string& name)> header;
  std::string peer;  // The client's address, without its port.
  // What the client showed and our authority vouches for; nullopt when it showed none, or without TLS.
  // Whether it has ended since is for the caller to see. Null where no server made the request.
  std::function<std::optional<net::CertificateFacts>()> certificate{};
};

// A reply that goes on. Destroying it ends the reply.
class Stream {
 public:
  virtual ~Stream() = default;
  // False when the client is gone.
  virtual bool write(std::string_view chunk) = 0;
  // Bytes written that the client has not taken yet.
  [[nodiscard]] virtual std::size_t backlog() const = 0;
  [[nodiscard]] virtual bool closed() const = 0;
  // Called once when the client goes; the stream may be destroyed from a later task, not inside.
  virtual void on_closed(std::function<void()> callback) = 0;
  // Called each time all that was written is taken.
  virtual void on_drained(std::function<void()> callback) = 0;
};

// A reply that is still to come, from a later task on the server's thread. Destroying it without one says
// 500.
class Deferred {
 public:
  virtual ~Deferred() = default;
  virtual void add_header(const std::string& name, const std::string& value) = 0;
  // Once. Nothing happens when the client is gone.
  virtual void reply(int status, std::string_view content_type, std::string_view body) = 0;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void reply(int status, std::string_view content_type, std::string_view body) = 0;
  virtual void add_header(const std::string& name, const std::string& value) = 0;  // Before the reply.
  [[nodiscard]] virtual std::unique_ptr<Stream> stream(std::string_view content_type) = 0;
  [[nodiscard]] virtual std::unique_ptr<Deferred> defer() = 0;
};

using Handler = std::function<void(const Request&, Exchange&)>;

class Server {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const ServerOptions& options, Handler handler);
  ~Server();  // Ends every connection and the thread. Streams that are still held become closed.
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  // Runs `task` on the server's thread, in the order of posting. Dropped when the server is ending.
  void post(std::function<void()> task);
  // Runs `task` on the server's thread, again and again.
  void every(std::chrono::milliseconds interval, std::function<void()> task);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whether `host` is this machine alone: 127.0.0.0/8, ::1 or localhost.
[[nodiscard]] bool is_loopback(std::string_view host) noexcept;

// "host:port" or "[v6]:port" into its parts; invalid names the value and the form.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
[[nodiscard]] Result<HostPort> parse_host_port(std::string_view text);

}  // namespace ringshift::http
