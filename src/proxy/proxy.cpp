#include "proxy/proxy.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "net/address.h"
#include "proxy/hot_keys.h"
#include "proxy/proxy_impl.h"
#include "proxy/worker.h"

namespace ringshift::proxy {
namespace {

// Our workers share their port (SO_REUSEPORT), and so would a second proxy started by mistake, silently: each
// would get some of the clients. A bind without sharing tells.
Status check_port_is_free(const std::string& listen) {
  const auto endpoint = net::parse_endpoint(listen);
  if (!endpoint) return std::unexpected(endpoint.error());
  if (!endpoint->unix_path.empty() || endpoint->port == 0) return {};
  const auto addresses = net::resolve(*endpoint);
  if (!addresses) return std::unexpected(addresses.error());
  const net::SocketAddress& address = addresses->front();
  const int fd = ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};  // The listener will say why.
  const int on = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // Old connections may linger.
  const bool taken = ::bind(fd, address.get(), address.size) != 0 && errno == EADDRINUSE;
  ::close(fd);
  if (!taken) return {};
  return fail(ErrorKind::retryable,
              "cannot listen on " + listen +
                  ": the port is in use; stop the other process or choose another --listen");
}

// What Listener::address() will tell; "" when it cannot be known.
std::string bound_address(const std::string& listen) {
  const auto endpoint = net::parse_endpoint(listen);
  if (!endpoint || (endpoint->unix_path.empty() && endpoint->port == 0)) return {};
  const auto addresses = net::resolve(*endpoint);
  return addresses ? addresses->front().text() : std::string();
}

}  // namespace

std::vector<net::Descriptor> Proxy::Impl::inherited(const std::string& listen) const {
  if (!shared.options.inherited) return {};
  const auto found = shared.options.inherited->find(bound_address(listen));
  if (found == shared.options.inherited->end()) return {};
  return std::exchange(found->second, {});
}

Status Proxy::Impl::listen() {
  std::vector<std::pair<const Options::Listen*, std::vector<net::Descriptor>>> taken_over;
  for (std::size_t l = 0; l < shared.listening.size(); ++l) {
    Options::Listen& at = shared.listening[l];
    std::vector<net::Descriptor>& sockets = taken_over.emplace_back(&at, inherited(at.address)).second;
    const bool is_unix = at.address.starts_with("unix:");
    if (sockets.empty()) {
      if (const Status free = check_port_is_free(at.address); !free) return free;
    }
    for (std::size_t i = 0; i < workers.size(); ++i) {
      const bool one_for_all = is_unix && i > 0;
      const Status listens = i < sockets.size() && !one_for_all
                                 ? workers[i]->listen_on(at, std::move(sockets[i]))
                                 : workers[i]->listen(at, one_for_all ? workers[0].get() : nullptr);
      if (!listens) return listens;
      // The port that the first one got is the port of all.
      if (i == 0) at.address = workers[0]->listener(l).address();
    }
  }
  // A predecessor with more threads had more sockets. All accept from them: nobody else would.
  for (const auto& [at, sockets] : taken_over) {
    for (const net::Descriptor& socket : sockets) {
      for (const auto& worker : workers) {
        if (!socket) break;  // It went to a worker above.
        if (const Status listens = worker->listen_on(*at, net::duplicate(socket)); !listens) return listens;
      }
    }
  }
  shared.address = shared.listening[0].address;
  return {};
}

void Proxy::Impl::worker_applied(std::size_t worker, std::size_t cluster, topology::Version version) {
  const std::lock_guard lock(applied_mutex);
  AppliedTopology& of = applied[cluster];
  // A worker's drains may end out of order; the newest counts, since it covers the older ones.
  of.by_worker[worker] = std::max(of.by_worker[worker], version);
  const topology::Version lowest = *std::ranges::min_element(of.by_worker);
  if (lowest <= of.reported) return;
  of.reported = lowest;
  note_applied(cluster, lowest);
  if (of.callback) of.callback(lowest);
}

namespace {

void make_room_for_clients(Shared& shared) {
  std::size_t members = 0;
  for (const ServedCluster& cluster : shared.clusters) members += cluster.holder->load()->members().size();
  shared.open_files.emplace(
      OpenFiles::Needs{shared.options.threads, members, /*listeners=*/shared.listening.size()});
  const std::size_t wanted = shared.options.max_clients;
  const std::size_t room = shared.open_files->room_for(wanted);
  if (room == wanted) return;
  shared.settings.max_clients.set(static_cast<std::int64_t>(room));
  const std::size_t reserved = shared.open_files->reserved();
  base::log(base::LogLevel::warning,
            "proxy: maxclients has been reduced from {} to {}: of all files that may be open {} are kept for "
            "members and listeners; for {} clients raise the limit (ulimit -Hn, LimitNOFILE=) to {}",
            wanted, room, reserved, wanted, wanted + reserved);
}

}  // namespace

Proxy::Proxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Proxy::~Proxy() { stop(); }

Result<std::unique_ptr<Proxy>> Proxy::start(Options options, std::shared_ptr<Holder> holder,
                                            Authority* authority) {
  std::vector<ServedCluster> clusters;
  clusters.push_back({"", std::move(holder), authority});
  return start(std::move(options), std::move(clusters));
}

Result<std::unique_ptr<Proxy>> Proxy::start(Options options, std::vector<ServedCluster> clusters,
                                            RouteTable routes) {
  Rules rules;
  rules.routes = std::move(routes);
  return start(std::move(options), std::move(clusters), std::move(rules));
}

Result<std::unique_ptr<Proxy>> Proxy::start(Options options, std::vector<ServedCluster> clusters,
                                            Rules rules) {
  for (const ServedCluster& cluster : clusters) {
    const topology::Spec& spec = cluster.holder->load()->topology().spec;
    if (spec.protocol == topology::Protocol::redis) continue;
    return fail(ErrorKind::invalid, "cluster '" + spec.cluster +
                                        "' is memcached's; the proxy serves Redis only (protocol: redis)");
  }
  if (options.threads == 0) options.threads = std::max(1U, std::thread::hardware_concurrency());
  std::vector<Options::Listen> listening{{options.listen, options.listen_tls}};
  listening.insert(listening.end(), options.also_listen.begin(), options.also_listen.end());
  for (const Options::Listen& at : listening) {
    if (at.tls && !options.tls) {
      return fail(ErrorKind::invalid, "listener " + at.address + ": TLS needs a certificate and its key");
    }
  }
  auto impl = std::make_unique<Impl>(std::move(options));
  Impl& self = *impl;
  self.shared.clusters = std::move(clusters);
  for (ServedCluster& cluster : self.shared.clusters) {
    cluster.hot_keys = std::make_shared<HotKeyBoard>();
    cluster.moving_keys = std::make_shared<HotKeyBoard>();
    cluster.members = std::make_shared<backend::MemberBoard>();
  }
  self.shared.rules = std::make_shared<const RulesInForce>(std::move(rules));
  self.shared.address = listening[0].address;
  self.shared.listening = std::move(listening);
  make_room_for_clients(self.shared);
  self.shared.applied = [&self](std::size_t worker, std::size_t cluster, topology::Version version) {
    self.worker_applied(worker, cluster, version);
  };
  self.shared.stats = [&self] {
    telemetry::Totals totals{};
    for (const auto& worker : self.workers) worker->counters().add_to(totals);
    // These are counted where the reply is known to be a member's: see backend/member_counters.h.
    for (const ServedCluster& cluster : self.shared.clusters) {
      const backend::MemberSums sums = cluster.members->all();
      totals[static_cast<std::size_t>(telemetry::Counter::get_hits)] += sums.hits();
      totals[static_cast<std::size_t>(telemetry::Counter::get_misses)] += sums.misses();
    }
    return totals;
  };
  self.applied.resize(self.shared.clusters.size());
  for (AppliedTopology& of : self.applied) of.by_worker.resize(self.shared.options.threads);
  for (std::size_t i = 0; i < self.shared.options.threads; ++i) {
    self.workers.push_back(std::make_unique<Worker>(i, self.shared));
    self.shared.workers.push_back(self.workers.back().get());
  }
  if (const Status listens = self.listen(); !listens) return std::unexpected(listens.error());
  if (self.shared.options.inherited) self.shared.options.inherited->clear();  // We do not listen on the rest.
  for (const auto& worker : self.workers) {
    self.threads.emplace_back([&worker = *worker] { worker.run(); });
  }
  return std::unique_ptr<Proxy>(new Proxy(std::move(impl)));
}

const std::string& Proxy::address() const noexcept { return impl_->shared.address; }

const std::vector<Options::Listen>& Proxy::listening() const noexcept { return impl_->shared.listening; }

void Proxy::set_rules(Rules rules) {
  auto in_force = std::make_shared<const RulesInForce>(std::move(rules));
  for (const auto& worker : impl_->workers) {
    worker->post([&worker = *worker, in_force] { worker.adopt(in_force); });
  }
}

void Proxy::notify() {
  for (const auto& worker : impl_->workers) worker->post([&worker = *worker] { worker.adopt_newest(); });
}

void Proxy::set_on_applied(std::function<void(topology::Version)> callback, std::size_t cluster) {
  const std::lock_guard lock(impl_->applied_mutex);
  AppliedTopology& of = impl_->applied[cluster];
  of.callback = std::move(callback);
  if (of.callback && of.reported != topology::Version{}) of.callback(of.reported);
}

telemetry::Totals Proxy::stats() const { return impl_->shared.stats(); }

std::size_t Proxy::max_clients() const noexcept {
  return static_cast<std::size_t>(impl_->shared.settings.max_clients.get());
}

std::map<std::string, std::string> Proxy::members_down(std::size_t cluster) {
  std::map<std::string, std::string> all;
  const std::lock_guard lock(impl_->down->mutex);
  for (std::size_t i = 0; i < impl_->workers.size(); ++i) {
    Down::OfWorker& of = impl_->down->of[{i, cluster}];
    all.insert(of.said.begin(), of.said.end());
    if (of.asked) continue;  // It is busy: one question at a time.
    of.asked = impl_->workers[i]->write_to([down = impl_->down, i, cluster, &worker = *impl_->workers[i]] {
      auto said = worker.members_down(cluster);
      const std::lock_guard answer(down->mutex);
      down->of[{i, cluster}] = {false, std::move(said)};
    });
  }
  return all;
}

Proxy::Sampled Proxy::sampled_times() const {
  Sampled all;
  for (const auto& worker : impl_->workers) {
    worker->admin().sampled.add_to(all.times);
    all.micros += worker->admin().sampled_micros.load(std::memory_order_relaxed);
  }
  return all;
}

std::map<std::string, backend::MemberSums, std::less<>> Proxy::member_sums(std::size_t cluster) const {
  return impl_->shared.clusters[cluster].members->members();
}

Proxy::HotKeys Proxy::hot_keys(std::size_t cluster, std::size_t most) const {
  return impl_->shared.clusters[cluster].hot_keys->top(most);
}

Proxy::HotKeys Proxy::moving_keys(std::size_t cluster, std::size_t most) const {
  return impl_->shared.clusters[cluster].moving_keys->top(most);
}

// A socket counts once, however many workers accept from it.
net::ListeningSockets Proxy::sockets() const {
  net::ListeningSockets sockets;
  std::set<std::uint64_t> known;
  const std::lock_guard lock(impl_->listeners_mutex);
  if (impl_->closing) return sockets;
  for (const auto& worker : impl_->workers) {
    for (const auto& listener : worker->listeners()) {
      net::Descriptor socket = listener->duplicate();
      if (!socket || !known.insert(net::socket_number(socket.get())).second) continue;
      sockets[listener->address()].push_back(std::move(socket));
    }
  }
  return sockets;
}

void Proxy::predecessor_left() {
  // One worker has the unix sockets' files; see Listener::share().
  impl_->workers[0]->post([&worker = *impl_->workers[0]] { worker.own_socket_files(); });
}

void Proxy::drain(base::TimePoint until, std::vector<std::string> passed_on) {
  impl_->close_listeners();
  for (const auto& worker : impl_->workers) {
    worker->post([&worker = *worker, until, passed_on] { worker.drain(until, passed_on); });
  }
}

bool Proxy::drained() const noexcept {
  const Shared& shared = impl_->shared;
  return shared.draining.load() == impl_->workers.size() && shared.clients.load() == 0;
}

std::size_t Proxy::clients() const noexcept { return impl_->shared.clients.load(); }

void Proxy::stop() { stop(impl_->shared.options.shutdown_grace); }

void Proxy::stop(std::chrono::milliseconds grace) {
  impl_->close_listeners();
  for (const auto& worker : impl_->workers) {
    worker->post([&worker = *worker, grace] { worker.stop_soon(grace); });
  }
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

}  // namespace ringshift::proxy
