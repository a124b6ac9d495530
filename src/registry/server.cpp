#include "registry/server.h"

#include <fmt/format.h>

#include <array>
#include <atomic>

#include "base/log.h"
#include "http/server.h"
#include "registry/answer.h"
#include "registry/request.h"
#include "registry/watch_hub.h"
#include "ringshift_version.h"
#include "store/errors.h"
#include "store/store.h"
#include "telemetry/exposition.h"

namespace ringshift::registry {
namespace {

constexpr std::chrono::milliseconds kTick{100};  // Leases, closed streams.
constexpr std::chrono::seconds kProgressInterval{60};
constexpr char kEtcdVersion[] = "3.4.0";  // The API level that we speak.
constexpr char kJson[] = "application/json";
constexpr char kText[] = "text/plain; charset=utf-8";

// Of /metrics. kRoutes name them by their place.
constexpr std::array<std::string_view, 12> kVerbs = {
    "range",           "put",          "delete_range",     "txn",          "compaction", "lease_grant",
    "lease_keepalive", "lease_revoke", "lease_timetolive", "lease_leases", "status",     "watch"};
constexpr std::size_t kWatchVerb = 11;
// Refused: what was asked is wrong, or not so (any more). Failed: we could not.
constexpr std::array<std::string_view, 3> kOutcomes = {"ok", "refused", "failed"};

// The host part of a Host header.
std::string host_of(std::string header) {
  if (header.starts_with('[')) return header.substr(1, header.find(']') - 1);
  return header.substr(0, header.find(':'));
}

}  // namespace

struct Server::Impl {
  Options options;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<WatchHub> hub;
  bool expiry_failing = false;
  // Written by the server's thread, read by any.
  std::array<std::array<std::atomic<std::uint64_t>, kOutcomes.size()>, kVerbs.size()> answered{};
  std::atomic<std::size_t> watches{0};
  std::unique_ptr<http::Server> http;  // Last: its thread uses all above.

  using Verb = std::string (Impl::*)(const std::string& body, ErrorAnswer& error);
  struct Route {
    std::string_view path;
    Verb verb;
    std::size_t name;  // In kVerbs.
  };
  void count(std::size_t verb, int status) {
    // 503: the disk refused (full, say); other errors are the caller's.
    std::atomic<std::uint64_t>& n = answered[verb][status < 400 ? 0 : status < 500 ? 1 : 2];
    n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  static const Route kRoutes[];

  [[nodiscard]] Header header(store::Revision revision) const { return {store->cluster_id(), revision}; }

  // The answer of `run(request)` in JSON, or the error of parsing or running.
  template <class Request, class Run>
  std::string answer(const Result<Request>& request, ErrorAnswer& error, Run run) {
    if (!request) {
      error = to_answer(request.error());
      return {};
    }
    const auto result = run(*request);
    if (!result) {
      error = to_answer(result.error());
      if (result.error().kind == ErrorKind::overloaded || result.error().kind == ErrorKind::internal) {
        base::log(base::LogLevel::error, "{}", result.error().message);
      }
      return {};
    }
    return to_json(header(result->revision), *result);
  }

  std::string range(const std::string& body, ErrorAnswer& error) {
    return answer(parse_range(body), error, [&](const auto& r) { return store->range(r); });
  }
  std::string put(const std::string& body, ErrorAnswer& error) {
    return answer(parse_put(body), error, [&](const auto& r) { return store->put(r); });
  }
  std::string remove(const std::string& body, ErrorAnswer& error) {
    return answer(parse_delete(body), error, [&](const auto& r) { return store->remove(r); });
  }
  std::string txn(const std::string& body, ErrorAnswer& error) {
    return answer(parse_txn(body), error, [&](const auto& r) { return store->txn(r); });
  }
  std::string compaction(const std::string& body, ErrorAnswer& error) {
    return simple(parse_compaction(body), error, [&](store::Revision r) -> Result<std::string> {
      if (const auto done = store->compact(r); !done) return std::unexpected(done.error());
      return std::string();
    });
  }

  // As answer(), for what is not a store result: `run` gives the fields after the header.
  template <class Request, class Run>
  std::string simple(const Result<Request>& request, ErrorAnswer& error, Run run) {
    if (!request) {
      error = to_answer(request.error());
      return {};
    }
    const Result<std::string> fields = run(*request);
    if (!fields) {
      error = to_answer(fields.error());
      return {};
    }
    return to_json(header(store->revision()), *fields);
  }

  std::string grant(const std::string& body, ErrorAnswer& error) {
    return simple(parse_lease(body), error, [&](const LeaseRequest& r) -> Result<std::string> {
      const auto lease = store->grant(r.ttl_seconds, r.id);
      if (!lease) return std::unexpected(lease.error());
      return number_field("ID", lease->id) + number_field("TTL", lease->granted_seconds);
    });
  }
  std::string keep_alive(const std::string& body, ErrorAnswer& error) {
    const std::string inner =
        simple(parse_lease(body), error, [&](const LeaseRequest& r) -> Result<std::string> {
          const auto lease = store->keep_alive(r.id);
          if (!lease && lease.error().kind != ErrorKind::not_found) return std::unexpected(lease.error());
          // A lease that is gone is no error in etcd: the TTL is missing.
          return number_field("ID", r.id) + (lease ? number_field("TTL", lease->remaining_seconds) : "");
        });
    return inner.empty() ? inner : "{\"result\":" + inner + "}\n";
  }
  std::string revoke(const std::string& body, ErrorAnswer& error) {
    return simple(parse_lease(body), error, [&](const LeaseRequest& r) -> Result<std::string> {
      if (const auto done = store->revoke(r.id); !done) return std::unexpected(done.error());
      return std::string();
    });
  }
  std::string time_to_live(const std::string& body, ErrorAnswer& error) {
    return simple(parse_lease(body), error, [&](const LeaseRequest& r) -> Result<std::string> {
      const auto lease = store->time_to_live(r.id, r.keys);
      if (!lease && lease.error().kind != ErrorKind::not_found) return std::unexpected(lease.error());
      if (!lease) return number_field("ID", r.id) + number_field("TTL", -1);
      return number_field("ID", r.id) + number_field("TTL", lease->remaining_seconds) +
             number_field("grantedTTL", lease->granted_seconds) + key_list(lease->keys);
    });
  }
  std::string leases(const std::string& body, ErrorAnswer& error) {
    return simple(parse_lease(body), error, [&](const LeaseRequest&) -> Result<std::string> {
      std::string list;
      for (const store::LeaseId id : store->leases()) {
        list += fmt::format("{}{{\"ID\":\"{}\"}}", list.empty() ? ",\"leases\":[" : ",", id);
      }
      return list.empty() ? list : list + "]";
    });
  }
  std::string status(const std::string& body, ErrorAnswer& error) {
    return simple(parse_lease(body), error, [&](const LeaseRequest&) -> Result<std::string> {
      const auto bytes = store->bytes();
      if (!bytes) return std::unexpected(bytes.error());
      const store::Revision revision = store->revision();
      return fmt::format(R"(,"version":"{}","dbSize":"{}","leader":"{}","raftIndex":"{}","raftTerm":"1",)"
                         R"("raftAppliedIndex":"{}","dbSizeInUse":"{}")",
                         kEtcdVersion, *bytes, store->cluster_id(), revision, revision, *bytes);
    });
  }

  void handle(const http::Request& request, http::Exchange& exchange);
  void open_watch(const http::Request& request, http::Exchange& exchange);
  void post(const http::Request& request, http::Exchange& exchange, const Route& route);
  [[nodiscard]] bool from_elsewhere(const http::Request& request) const;
  void tick();
  Status open();
};

const Server::Impl::Route Server::Impl::kRoutes[] = {
    {"/v3/kv/range", &Impl::range, 0},
    {"/v3/kv/put", &Impl::put, 1},
    {"/v3/kv/deleterange", &Impl::remove, 2},
    {"/v3/kv/txn", &Impl::txn, 3},
    {"/v3/kv/compaction", &Impl::compaction, 4},
    {"/v3/lease/grant", &Impl::grant, 5},
    {"/v3/lease/keepalive", &Impl::keep_alive, 6},
    {"/v3/lease/revoke", &Impl::revoke, 7},
    {"/v3/kv/lease/revoke", &Impl::revoke, 7},  // etcd 3.4 answers these three under /v3/kv/lease as well.
    {"/v3/lease/timetolive", &Impl::time_to_live, 8},
    {"/v3/kv/lease/timetolive", &Impl::time_to_live, 8},
    {"/v3/lease/leases", &Impl::leases, 9},
    {"/v3/kv/lease/leases", &Impl::leases, 9},
    {"/v3/maintenance/status", &Impl::status, 10},
};

// A page in a browser on this machine could post here, and by a name of its own that points to 127.0.0.1
// even read the answer. It says where it comes from, in Origin, or whom it asks, in Host.
bool Server::Impl::from_elsewhere(const http::Request& request) const {
  if (request.header("Origin")) return true;
  const std::optional<std::string> host = request.header("Host");
  return host && !http::is_loopback(host_of(*host));
}

void Server::Impl::handle(const http::Request& request, http::Exchange& exchange) {
  if (from_elsewhere(request)) {
    const ErrorAnswer denied = error_answer(403, 7,
                                            "this registry has no authentication: it answers local programs "
                                            "only, not web pages or other hosts' names");
    return exchange.reply(denied.status, kJson, denied.body);
  }
  const bool get = request.method == "GET" || request.method == "HEAD";
  if (request.path == "/health" || request.path == "/version") {
    if (!get) return exchange.reply(405, kText, "Method Not Allowed\n");
    if (request.path == "/health") return exchange.reply(200, kText, R"({"health":"true"})");
    return exchange.reply(200, kJson,
                          fmt::format(R"({{"etcdserver":"{0}","etcdcluster":"{0}","ringshift":"{1}"}})",
                                      kEtcdVersion, RINGSHIFT_VERSION));
  }
  if (request.path == "/v3/watch") {
    if (request.method != "POST") return exchange.reply(405, kText, "Method Not Allowed\n");
    return open_watch(request, exchange);
  }
  for (const Route& route : kRoutes) {
    if (route.path != request.path) continue;
    if (request.method != "POST") return exchange.reply(405, kText, "Method Not Allowed\n");
    return post(request, exchange, route);
  }
  exchange.reply(404, kText, "Not Found\n");
}

void Server::Impl::post(const http::Request& request, http::Exchange& exchange, const Route& route) {
  ErrorAnswer error{0, {}};
  const std::string body = (this->*route.verb)(request.body, error);
  count(route.name, error.status);
  if (error.status != 0) {
    exchange.reply(error.status, kJson, error.body);
  } else {
    exchange.reply(200, kJson, body);
  }
  hub->flush();
}

void Server::Impl::open_watch(const http::Request& request, http::Exchange& exchange) {
  const auto commands = parse_watch(request.body);
  if (!commands) {
    const ErrorAnswer error = error_answer(500, 2, commands.error().message);
    count(kWatchVerb, 400);  // What etcd calls 500 here is the client's fault.
    return exchange.reply(error.status, kJson, error.body);
  }
  if (hub->size() + commands->size() > kWatchesMax) {
    const ErrorAnswer error =
        error_answer(429, 8, fmt::format("this registry serves at most {} watches: close some", kWatchesMax));
    count(kWatchVerb, error.status);
    return exchange.reply(error.status, kJson, error.body);
  }
  count(kWatchVerb, 200);
  hub->add(exchange.stream(kJson), *commands);
}

void Server::Impl::tick() {
  const Status expired = store->expire();
  if (!expired && !expiry_failing) base::log(base::LogLevel::error, "leases: {}", expired.error().message);
  expiry_failing = !expired;  // Said once, tried again at every tick.
  hub->flush();
  hub->sweep();
  watches.store(hub->size(), std::memory_order_relaxed);
}

Status Server::Impl::open() {
  if (!http::is_loopback(options.listen_host)) {
    return fail(
        ErrorKind::denied,
        fmt::format(
            "the registry will not listen on {}: it has no authentication and no TLS yet, and anybody who "
            "reaches it could change the cluster; listen on 127.0.0.1, or use an etcd cluster",
            options.listen_host));
  }
  auto opened = store::Store::open({options.database, options.retain_revisions, nullptr});
  if (!opened) return std::unexpected(opened.error());
  store = *std::move(opened);
  hub = std::make_unique<WatchHub>(*store);
  store->set_listener([this](const std::vector<store::Event>& events, store::Revision revision) {
    hub->committed(events, revision);
  });
  http::ServerOptions http_options;
  http_options.host = options.listen_host;
  http_options.port = options.port;
  auto listening = http::Server::start(
      http_options,
      [this](const http::Request& request, http::Exchange& exchange) { handle(request, exchange); });
  if (!listening) return std::unexpected(listening.error());
  http = *std::move(listening);
  http->every(kTick, [this] { tick(); });
  http->every(kProgressInterval, [this] { hub->send_progress(); });
  return {};
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (const Status opened = impl->open(); !opened) return std::unexpected(opened.error());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const noexcept { return impl_->http->port(); }

void Server::collect(telemetry::Exposition& page) const {
  for (std::size_t verb = 0; verb < kVerbs.size(); ++verb) {
    for (std::size_t outcome = 0; outcome < kOutcomes.size(); ++outcome) {
      page.counter("ringshift_registry_requests_total",
                   "Requests answered, by what was asked and how it went",
                   static_cast<double>(impl_->answered[verb][outcome].load(std::memory_order_relaxed)),
                   {{"verb", kVerbs[verb]}, {"outcome", kOutcomes[outcome]}});
    }
  }
  page.gauge("ringshift_registry_watches", "Watches that are open",
             static_cast<double>(impl_->watches.load(std::memory_order_relaxed)));
  impl_->store->collect(page);
}

std::string Server::url() const {
  const std::string& host = impl_->options.listen_host;
  return host.find(':') == std::string::npos ? fmt::format("http://{}:{}", host, port())
                                             : fmt::format("http://[{}]:{}", host, port());
}

}  // namespace ringshift::registry
