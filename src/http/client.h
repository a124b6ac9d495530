// An HTTP client: blocking requests over kept connections, and one-way streams that can be cancelled.
//
// Thread-safe; each request borrows a connection from a small pool, so that threads do not wait for one
// another. Failures of the transport are `retryable` and name the URL, but for TLS that the two sides will
// never agree on (`denied`: an unknown CA, a wrong name, a certificate that is missing or out of date); any
// HTTP status is an answer, not a failure. Headers are in no message: they may hold secrets. Bounds: the
// timeout, the size of an answer, the connections kept.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::http {

inline constexpr std::size_t kAnswerBytesMax = 64U << 20;
inline constexpr std::size_t kIdleConnectionsMax = 8;
inline constexpr std::size_t kHeadersMax = 64;  // That are kept of a StreamCall's answer.

// How https:// is spoken. Files are read anew for each new connection, so that a renewed one is taken up.
struct ClientTls {
  std::string ca;                // Who signs the servers' certificates, PEM; "": the system's CAs.
  std::string certificate, key;  // Our own, for servers that ask for one; PEM, both or neither.
};

struct Call {
  std::string method = "POST";
  std::string url;
  std::vector<std::string> headers;  // "Name: value"; without a Content-Type it is JSON.
  std::string body;
  std::chrono::milliseconds timeout{3000};
  ClientTls tls{};
};

struct Answer {
  int status = 0;
  std::string body;
  std::int64_t date = 0;  // The server's clock in Unix seconds, as its Date header says; 0: it says none.
};

// Whether the request certainly never reached a server (no connection), so that another may be asked.
struct TransportError {
  Error error;
  bool unsent = false;
};

class Client {
 public:
  Client();
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] std::expected<Answer, TransportError> send(const Call& call);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One long answer. run() blocks its thread; cancel() may come from any other and ends run() at once, also
// when it comes first.
class StreamCall {
 public:
  StreamCall();
  ~StreamCall();
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // Hands on bytes as they come, until the server ends (its status is the result), `on_data` says false or
  // cancel() is called (0 is the result). The timeout bounds connecting alone, or with `whole` everything.
  [[nodiscard]] std::expected<int, TransportError> run(const Call& call,
                                                       const std::function<bool(std::string_view)>& on_data,
                                                       bool whole = false);
  void cancel();
  // When nothing has come for `after`, and each time that long has gone by since, run() asks `go_on` on its
  // own thread; false ends it as on_data's does. A server that hangs keeps its connections. Before run().
  void on_silence(std::chrono::milliseconds after, std::function<bool()> go_on);
  // Of the last answer, "" when it had none of that name. The thread of run().
  [[nodiscard]] std::string header(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::http
