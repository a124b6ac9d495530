#include "registry/server.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "registry/server_impl.h"
#include "ringshift_version.h"
#include "telemetry/exposition.h"

namespace ringshift::registry {
namespace {

constexpr std::chrono::milliseconds kTick{100};  // Leases, closed streams.
constexpr std::chrono::seconds kAccessTick{1};   // Streams whose token has ended.
constexpr std::chrono::seconds kProgressInterval{60};
constexpr std::int64_t kDaySeconds = 86'400;
// kRequestBytesMax in base64, and the words around it. Held for anybody who sends it, before he is asked who
// he is.
constexpr std::size_t kBodyBytesMax = 4U << 20;
constexpr std::size_t kUncounted = kVerbs.size();

// Each watch and each client has a connection: as many as the hard limit lets us have.
void raise_open_files() {
  constexpr rlim_t kWanted = 2 * kWatchesMax;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWanted) return;
  limit.rlim_cur = std::min(kWanted, limit.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

// The host part of a Host header.
std::string host_of(std::string header) {
  if (header.starts_with('[')) return header.substr(1, header.find(']') - 1);
  return header.substr(0, header.find(':'));
}

}  // namespace

// Every endpoint, and what it asks of its caller.
const std::vector<Server::Impl::Route>& Server::Impl::table() {
  static const std::vector<Route> kRoutes = {
      {"GET", "/health", Need::nothing, nullptr, &Impl::health, kUncounted},
      {"GET", "/version", Need::nothing, nullptr, &Impl::version, kUncounted},
      {"POST", "/v3/kv/range", Need::identity, &Impl::range, nullptr, 0},
      {"POST", "/v3/kv/put", Need::identity, &Impl::put, nullptr, 1, Disk::written},
      {"POST", "/v3/kv/deleterange", Need::identity, &Impl::remove, nullptr, 2, Disk::written},
      {"POST", "/v3/kv/txn", Need::identity, &Impl::txn, nullptr, 3, Disk::written},
      {"POST", "/v3/kv/compaction", Need::admin, &Impl::compaction, nullptr, 4},
      {"POST", "/v3/lease/grant", Need::identity, &Impl::grant, nullptr, 5, Disk::written},
      {"POST", "/v3/lease/keepalive", Need::identity, &Impl::keep_alive, nullptr, 6, Disk::untouched},
      {"POST", "/v3/lease/revoke", Need::identity, &Impl::revoke, nullptr, 7, Disk::written},
      // etcd 3.4 answers these three under /v3/kv/lease as well.
      {"POST", "/v3/kv/lease/revoke", Need::identity, &Impl::revoke, nullptr, 7, Disk::written},
      {"POST", "/v3/lease/timetolive", Need::identity, &Impl::time_to_live, nullptr, 8},
      {"POST", "/v3/kv/lease/timetolive", Need::identity, &Impl::time_to_live, nullptr, 8},
      {"POST", "/v3/lease/leases", Need::identity, &Impl::leases, nullptr, 9},
      {"POST", "/v3/kv/lease/leases", Need::identity, &Impl::leases, nullptr, 9},
      {"POST", "/v3/maintenance/status", Need::identity, &Impl::status, nullptr, 10},
      {"POST", "/v3/watch", Need::identity, nullptr, &Impl::open_watch, kWatchVerb},
      {"POST", "/v3/auth/authenticate", Need::nothing, &Impl::authenticate, nullptr, 12},
      {"POST", "/ringshift/v1/token/create", Need::admin, &Impl::token_create, nullptr, 13},
      {"POST", "/ringshift/v1/token/list", Need::admin, &Impl::token_list, nullptr, 14},
      {"POST", "/ringshift/v1/token/rotate", Need::admin, &Impl::token_rotate, nullptr, 15},
      {"POST", "/ringshift/v1/token/revoke", Need::admin, &Impl::token_revoke, nullptr, 16},
      {"POST", "/ringshift/v1/audit", Need::admin, &Impl::read_audit, nullptr, 17},
      {"POST", "/ringshift/v1/backup", Need::admin, nullptr, &Impl::backup, kBackupVerb},
  };
  return kRoutes;
}

std::vector<RouteInfo> Server::routes() {
  std::vector<RouteInfo> all;
  for (const Impl::Route& route : Impl::table()) all.push_back({route.method, route.path, route.need});
  return all;
}

void Server::Impl::count(std::size_t verb, int status) {
  if (verb >= kVerbs.size()) return;
  // 503: the disk refused (full, say); other errors are the caller's.
  std::atomic<std::uint64_t>& n = answered[verb][status < 400 ? 0 : status < 500 ? 1 : 2];
  n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Server::Impl::log_failure(const Error& error) {
  if (error.kind != ErrorKind::overloaded && error.kind != ErrorKind::internal) return;
  base::log(base::LogLevel::error, "{}", error.message);
}

// A page in a browser on this machine could post here, and by a name of its own that points to 127.0.0.1
// even read the answer. It says where it comes from, in Origin, or whom it asks, in Host. With authentication
// it would need a token first, which no page has; the browser's certificate is not enough (admission.cpp).
bool Server::Impl::from_elsewhere(const http::Request& request) const {
  if (options.auth) return false;
  if (request.header("Origin")) return true;
  if (!http::is_loopback(options.listen_host)) return false;
  const std::optional<std::string> host = request.header("Host");
  return host && !http::is_loopback(host_of(*host));
}

void Server::Impl::health(const http::Request&, http::Exchange& exchange, const Caller&) {
  exchange.reply(200, kText, R"({"health":"true"})");
}

void Server::Impl::version(const http::Request&, http::Exchange& exchange, const Caller&) {
  exchange.reply(200, kJson,
                 fmt::format(R"({{"etcdserver":"{0}","etcdcluster":"{0}","ringshift":"{1}"}})", kEtcdVersion,
                             RINGSHIFT_VERSION));
}

void Server::Impl::handle(const http::Request& request, http::Exchange& exchange) {
  if (from_elsewhere(request)) {
    const ErrorAnswer elsewhere =
        error_answer(403, 7,
                     "this registry has no authentication: it answers local programs "
                     "only, not web pages or other hosts' names");
    return exchange.reply(elsewhere.status, kJson, elsewhere.body);
  }
  for (const Route& route : table()) {
    if (route.path != request.path) continue;
    const bool head = route.method == "GET" && request.method == "HEAD";
    if (request.method != route.method && !head) return exchange.reply(405, kText, "Method Not Allowed\n");
    Caller caller;
    caller.peer = request.peer;
    if (const auto refused = admit(request, route, caller)) {
      if (refused->status == 401) exchange.add_header("WWW-Authenticate", "Bearer");
      if (refused->status == 429) exchange.add_header("Retry-After", "1");
      return refuse(exchange, route.name, *refused);
    }
    return answer(request, exchange, route, caller);
  }
  exchange.reply(404, kText, "Not Found\n");
}

void Server::Impl::refuse(http::Exchange& exchange, std::size_t name, const ErrorAnswer& error) {
  count(name, error.status);
  exchange.reply(error.status, kJson, error.body);
}

void Server::Impl::answer(const http::Request& request, http::Exchange& exchange, const Route& route,
                          const Caller& caller) {
  if (route.disk == Disk::read) end_group();  // What is told is on the disk.
  if (route.whole != nullptr) return (this->*route.whole)(request, exchange, caller);
  const bool grouped = route.disk == Disk::written && begin_group();
  ErrorAnswer error{0, {}};
  std::string body = (this->*route.verb)(request.body, caller, error);
  if (error.status == 403 && caller.who != nullptr) {
    denied[1].fetch_add(1, std::memory_order_relaxed);
    audit_denied(caller, route.path, error.body);
  }
  if (grouped) {
    waiting.push_back({exchange.defer(), route.name, std::move(error), std::move(body)});
    if (waiting.size() >= kGroupMax) end_group();
    return;
  }
  if (error.status != 0) {
    refuse(exchange, route.name, error);
  } else {
    count(route.name, 200);
    exchange.reply(200, kJson, body);
  }
  hub->flush();
}

bool Server::Impl::begin_group() {
  if (group_open) return true;
  if (const Status begun = store->begin_group(); !begun) return false;  // The write will say why.
  group_open = true;
  if (http != nullptr) http->post([this] { end_group(); });  // Without a socket the caller ends it.
  return true;
}

void Server::Impl::end_group() {
  if (!group_open) return;
  group_open = false;
  const Status ended = store->end_group();
  if (!ended) log_failure(ended.error());
  for (Waiting& one : std::exchange(waiting, {})) {
    if (!ended && one.error.status == 0) one.error = to_answer(ended.error());
    count(one.name, one.error.status);
    if (one.error.status != 0) {
      one.exchange->reply(one.error.status, kJson, one.error.body);
    } else {
      one.exchange->reply(200, kJson, one.body);
    }
  }
  hub->flush();
}

void Server::Impl::tick() {
  end_group();
  const Status expired = store->expire();
  if (!expired && !expiry_failing) base::log(base::LogLevel::error, "leases: {}", expired.error().message);
  expiry_failing = !expired;  // Said once, tried again at every tick.
  hub->flush();
  hub->sweep();
  forget_sent();
  watches.store(hub->size(), std::memory_order_relaxed);
}

Status Server::Impl::open() {
  if (!http::is_loopback(options.listen_host) && !options.open_to_the_network &&
      !(options.auth && !options.tls_certificate.empty())) {
    return fail(ErrorKind::denied, fmt::format("the registry will not listen on {} without both "
                                               "authentication and TLS: anybody who reaches it could "
                                               "change the cluster, or read its tokens; give --auth, "
                                               "--tls-cert and --tls-key, or listen on 127.0.0.1 "
                                               "(--insecure-open-to-the-network does it all the same)",
                                               options.listen_host));
  }
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return fail(ErrorKind::invalid, "TLS needs both --tls-cert FILE and --tls-key FILE");
  }
  if (options.tls_certificate.empty() && !options.client_ca.empty()) {
    return fail(ErrorKind::invalid, "--client-ca needs TLS: give --tls-cert FILE and --tls-key FILE");
  }
  if (!options.tls_certificate.empty()) {
    using Clients = net::TlsContext::ClientCertificates;
    const Clients clients = options.client_ca.empty()              ? Clients::none
                            : options.client_certificates_required ? Clients::required
                                                                   : Clients::optional;
    auto context =
        net::TlsContext::server({options.tls_certificate, options.tls_key, options.client_ca, clients});
    if (!context) return std::unexpected(context.error());
    tls = *std::move(context);
  }
  if (const Status ready = open_state(); !ready) return ready;
  raise_open_files();
  http::ServerOptions http_options;
  http_options.host = options.listen_host;
  http_options.port = options.port;
  http_options.tls = tls;
  http_options.body_bytes_max = kBodyBytesMax;
  auto listening = http::Server::start(
      http_options,
      [this](const http::Request& request, http::Exchange& exchange) { handle(request, exchange); });
  if (!listening) {
    Error error = listening.error();
    if (!admin_token_file.empty())
      error.message += fmt::format(" (a new admin's token is in {} all the same)", admin_token_file);
    return std::unexpected(std::move(error));
  }
  http = *std::move(listening);
  http->every(kTick, [this] { tick(); });
  http->every(kProgressInterval, [this] {
    end_group();
    hub->send_progress();
  });
  if (book == nullptr) return {};
  http->every(kAccessTick,
              [this] { hub->end_unless([this](const WatchHub::Owner& owner) { return may_go_on(owner); }); });
  http->every(kProgressInterval, [this] {
    end_group();
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t oldest =
        std::chrono::duration_cast<std::chrono::seconds>(now).count() - options.audit_days * kDaySeconds;
    if (const Status trimmed = store->trim_audit(options.audit_rows, oldest); !trimmed)
      log_failure(trimmed.error());
  });
  return {};
}

Status Server::Impl::open_state() {
  auto opened = store::Store::open({options.database, options.retain_revisions, nullptr});
  if (!opened) return std::unexpected(opened.error());
  store = *std::move(opened);
  // A copy that was cut off, with the process that made it.
  for (const char* suffix : {"", "-wal", "-journal"})
    ::unlink((options.database + std::string(kBackupCopy) + suffix).c_str());
  limit.emplace(options.requests_per_second);
  if (options.auth) {
    if (const Status ready = open_book(); !ready) return ready;
  }
  hub = std::make_unique<WatchHub>(*store, [this] { end_group(); });
  store->set_listener([this](const std::vector<store::Event>& events, store::Revision revision) {
    hub->committed(events, revision);
  });
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
  for (std::size_t why = 0; why < kDenials.size(); ++why) {
    page.counter("ringshift_registry_denied_total",
                 "Requests refused for who asked: without a token, not in its role, beyond its limit",
                 static_cast<double>(impl_->denied[why].load(std::memory_order_relaxed)),
                 {{"reason", kDenials[why]}});
  }
  page.gauge("ringshift_registry_watches", "Watches that are open",
             static_cast<double>(impl_->watches.load(std::memory_order_relaxed)));
  impl_->store->collect(page);
}

std::string Server::url() const {
  const std::string& host = impl_->options.listen_host;
  const char* scheme = impl_->tls == nullptr ? "http" : "https";
  return host.find(':') == std::string::npos ? fmt::format("{}://{}:{}", scheme, host, port())
                                             : fmt::format("{}://[{}]:{}", scheme, host, port());
}

const std::string& Server::admin_token_file() const noexcept { return impl_->admin_token_file; }

Status Server::reload() { return impl_->tls == nullptr ? Status() : impl_->tls->reload(); }

}  // namespace ringshift::registry
