// The admin port of a process: a table of paths over one HTTP server. /metrics, /healthz and /readyz are
// there from the start; whoever has more to show adds it.
//
// It listens on loopback only. What a web page of somebody else's makes a browser ask is refused: by a name
// that is made to point here (Host must be a loopback address) or from another origin (Origin, where there is
// one, must be this very port).
// HEAD is answered as GET without the body; an unknown path by 404, a known one with another method by 405,
// both in words. The longest path wins; one that ends in '/' stands for all below it. Thread rule: add(),
// collect() and the like from any thread, also while it serves; handlers run on the server's thread and must
// be short; those of add_slow() run on one of kWorkers threads, at most kQueued wait, and what is beyond is
// answered 503. The destructor waits for those at work: what they use must outlive this.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/server.h"
#include "telemetry/exposition.h"

namespace ringshift::admin {

// What a slow handler answers.
struct Answer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

class Listener {
 public:
  static constexpr std::size_t kWorkers = 4;
  static constexpr std::size_t kQueued = 64;
  struct Options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;               // 0: any free one.
    std::string flag = "--admin-listen";  // For messages.
  };
  using Collector = std::function<void(telemetry::Exposition&)>;
  // Of Request::header, a slow handler can ask for Authorization, Content-Type, Accept-Language and Accept.
  using SlowHandler = std::function<Answer(const http::Request&)>;

  // Serves when it returns.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> start(const Options& options);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // GET stands for HEAD, too. A second handler of the same method and path takes the first one's place.
  void add(std::string method, std::string path, http::Handler handler);
  void add_slow(std::string method, std::string path, SlowHandler handler);
  // Adds to /metrics. Runs on the server's thread: it reads counters and waits for nobody.
  void collect(Collector collector);
  // Adds a condition of /readyz, which is 200 while all hold and 503 with their words else. With none of them
  // it is 503: the process has not started yet.
  void ready_if(std::function<Status()> condition);

  [[nodiscard]] std::string url() const;          // http://host:port
  [[nodiscard]] http::Server& server() noexcept;  // For streams: post() and every().

 private:
  struct Impl;
  explicit Listener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::admin
