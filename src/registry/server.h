// The embedded registry: a subset of etcd 3.4's v3 JSON API over one SQLite file, on one thread of its own.
//
// It runs beside whatever else the process does; clients, our own included, speak to it by HTTP. Without
// authentication it listens on loopback only, and answers no request that a web page made.
// Destroying it ends every connection; what was acknowledged is on the disk.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "ringshift/error.h"

namespace ringshift::telemetry {
class Exposition;
}

namespace ringshift::registry {

struct Options {
  std::string listen_host = "127.0.0.1";
  std::uint16_t port = 7379;  // 0: any free one.
  std::string database;       // Path of the SQLite file; created when absent, its directory is not.
  std::int64_t retain_revisions = 20'000;  // See store::Options.
};

class Server {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const Options& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::string url() const;  // http://host:port
  // Any thread; waits for a write that is under way.
  void collect(telemetry::Exposition& page) const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::registry
