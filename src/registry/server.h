// The embedded registry: a subset of etcd 3.4's v3 JSON API over one SQLite file, on one thread of its own.
//
// It runs beside whatever else the process does; clients, our own included, speak to it by HTTP. Without
// authentication it listens on loopback only, and answers no request that a web page made. With it, every
// endpoint but those that routes() calls open asks for a token whose role allows what is asked (rights.h).
// No secret is in a log, an error or the database. Destroying it ends every connection; what was acknowledged
// is on the disk.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

  bool auth = false;  // Tokens are asked for. Without an admin's token one is made: admin_token_file().
  bool new_admin_token = false;  // Makes one although there is one: that was lost.
  // TLS when `tls_certificate` is named; with `client_ca` clients show a certificate of it, or may.
  std::string tls_certificate{}, tls_key{}, client_ca{};
  bool client_certificates_required = true;
  bool open_to_the_network = false;    // Listens beyond loopback though tokens or TLS are missing.
  double requests_per_second = 5'000;  // Of each token; 0: without a bound.
  std::size_t watches_per_token = 10'000;
  std::int64_t audit_rows = 100'000, audit_days = 400;  // What the audit keeps.
};

// What an endpoint asks of who calls it, when there is authentication.
enum class Need : std::uint8_t {
  nothing,   // Health, version, and where a name and a password are asked for.
  identity,  // A token; what it may do there depends on the keys and leases that it names.
  admin,
};
struct RouteInfo {
  std::string_view method, path;
  Need need = Need::admin;
};

class Server {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const Options& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::string url() const;  // http://host:port, or https
  // Where the admin's token is that this start made, a line for --registry-auth-file; "" when it made none.
  [[nodiscard]] const std::string& admin_token_file() const noexcept;
  // Reads the certificates anew, for the connections to come. Any thread.
  [[nodiscard]] Status reload();
  // Every endpoint there is.
  [[nodiscard]] static std::vector<RouteInfo> routes();
  // Any thread; waits for a write that is under way.
  void collect(telemetry::Exposition& page) const;

 private:
  struct Impl;
  friend struct HandlersForTest;  // The endpoints without a socket: tests/fuzz/registry_api_fuzz.cpp.
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::registry
