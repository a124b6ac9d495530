// `--handover PATH`: how a proxy takes the place of the one that runs, without a connection refused or an
// answer lost. Whoever serves listens at PATH, a unix socket of its user alone.
//
//   successor                          predecessor
//   connects to PATH            ->
//                               <-     its listening sockets (net/handover.h), then "end"
//   starts, accepts from them
//   "serving ADDRESS..."        ->     which addresses it took
//                               <-     "draining": accepts no more, answers what it has, exits with 0
//   puts its own socket at PATH
//
// Until "serving" the predecessor loses nothing by it: a successor that fails to start leaves it as it was.
// One successor at a time. With nobody at PATH it is an ordinary start. Start and end on the main thread; a
// thread of its own waits for the successor and ends the main thread's Signals::wait() by SIGTERM.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/server.h"
#include "net/handover.h"
#include "proxy/proxy.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

class Handover {
 public:
  // Asks whoever serves at `path` for his sockets, into `options`. An empty path: nothing of all this.
  [[nodiscard]] static Result<std::unique_ptr<Handover>> begin(std::string path, proxy::Options& options);
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  // `proxy` serves: the predecessor drains from now on, and our own successor may come. REQUIRES: `proxy`
  // outlives this.
  [[nodiscard]] Status serving(proxy::Proxy& proxy);

  // The addresses that a successor has, or is about to have; none: there is no successor.
  [[nodiscard]] std::vector<std::string> passed_on() const;
  // Somebody served before us: what he has beside his sockets (his admin port) is free soon after serving().
  [[nodiscard]] bool takes_over() const noexcept { return taken_ != nullptr; }
  [[nodiscard]] bool replaced() const noexcept { return replaced_; }  // It serves.

 private:
  explicit Handover(std::string path) : path_(std::move(path)) {}
  Status ask();
  Status tell(const proxy::Proxy& proxy);
  void wait_for_successor();
  void serve(int connection);
  [[nodiscard]] bool send_sockets(int connection);
  [[nodiscard]] bool says_that_it_takes_over(int connection) const;

  const std::string path_;
  net::Descriptor predecessor_;
  std::shared_ptr<net::ListeningSockets> taken_;
  std::vector<std::string> taken_addresses_;
  proxy::Proxy* proxy_ = nullptr;
  net::Descriptor listening_;
  std::atomic<bool> stopping_{false}, replaced_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> passed_on_;  // Guarded by mutex_.
  std::thread thread_;
};

// Lets the clients go: for drain_timeout when a successor serves, else for shutdown_grace; and for the latter
// from the next SIGTERM on. The caller detaches what the proxy reports to, and stops it with no further
// grace.
void drain(proxy::Proxy& proxy, const Signals& signals, const proxy::Options& options,
           const Handover& handover);

}  // namespace ringshift::cli
