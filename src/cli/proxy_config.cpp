#include "cli/proxy_config.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/handover.h"
#include "cli/registry_router.h"
#include "cli/server.h"
#include "cli/spec_file.h"
#include "cli/tls_flags.h"
#include "config/proxy_file.h"

namespace ringshift::cli {
namespace {

using config::ClusterSource;
using config::ProxyFile;
using Holder = proxy::Proxy::Holder;
using Snapshot = std::shared_ptr<const topology::Snapshot>;

bool given(const CLI::App& command, const char* option) {
  const CLI::Option* found = command.get_option_no_throw(option);
  return found != nullptr && found->count() > 0;
}

Result<ProxyFile> load(const std::string& path) {
  auto text = read_text(path);
  if (!text) return std::unexpected(text.error());
  return config::parse_proxy_file(*text, path, read_text);
}

// The file's settings where the command line has none.
void merge(const CLI::App& command, const ProxyFile& file, proxy::Options& options) {
  const auto take = [&](const char* flag, const auto& value, auto& out) {
    if (value && !given(command, flag)) out = static_cast<std::remove_reference_t<decltype(out)>>(*value);
  };
  if (!file.listen.empty() && !given(command, "--listen")) {
    // With --tls-listen alone, that one is the first.
    std::size_t next = 0;
    if (!options.listen_tls) options.listen = file.listen[next++];
    for (; next < file.listen.size(); ++next) options.also_listen.push_back({file.listen[next]});
  }
  take("--threads", file.threads, options.threads);
  take("--id", file.id, options.router_id);
  take("--request-timeout-ms", file.request_timeout, options.request_timeout);
  take("--connect-timeout-ms", file.connect_timeout, options.connect_timeout);
  take("--shutdown-grace-ms", file.shutdown_grace, options.shutdown_grace);
  take("--drain-timeout-ms", file.drain_timeout, options.drain_timeout);
  take("--slow-log-ms", file.slow_log, options.slow_log);
  take("--allow-flush", file.allow_flush, options.allow_flush);
  take("--max-clients", file.max_clients, options.max_clients);
  take("--max-client-output", file.cut_output_bytes, options.cut_output_bytes);
  // These have no flag.
  const auto set = [](const auto& value, auto& out) {
    if (value) out = static_cast<std::remove_reference_t<decltype(out)>>(*value);
  };
  set(file.hold_timeout, options.hold_timeout);
  set(file.max_in_flight, options.max_in_flight);
  set(file.max_output_bytes, options.max_output_bytes);
  set(file.max_member_queue_bytes, options.max_member_queue_bytes);
}

// The settings that only a start applies.
bool same_process(const ProxyFile& a, const ProxyFile& b) {
  const auto of = [](const ProxyFile& f) {
    return std::tie(f.listen, f.threads, f.id, f.request_timeout, f.connect_timeout, f.hold_timeout,
                    f.shutdown_grace, f.drain_timeout, f.handover, f.slow_log, f.allow_flush, f.max_clients,
                    f.max_in_flight, f.max_output_bytes, f.cut_output_bytes, f.max_member_queue_bytes);
  };
  return of(a) == of(b);
}

class Service {
 public:
  Service(std::string path, BesideConfig beside) : path_(std::move(path)), beside_(std::move(beside)) {}

  // The file, with the command line's cluster if it has none.
  Result<ProxyFile> read() const {
    auto file = load(path_);
    if (!file) return file;
    const bool by_flags = !beside_.spec.empty() || !beside_.registry.cluster.empty();
    if (file->clusters.empty() != by_flags) {
      return fail(ErrorKind::invalid,
                  by_flags ? fmt::format("{} has clusters, so --spec and --cluster have no place (is "
                                         "RINGSHIFT_CLUSTER set?)",
                                         path_)
                           : fmt::format("{} has no clusters: name them there, or say --spec FILE or "
                                         "--cluster NAME",
                                         path_));
    }
    if (by_flags) {
      ClusterSource source;
      source.spec = beside_.spec;
      if (source.spec.empty()) {
        source.registry = beside_.registry.registry;
        source.name_space = beside_.registry.name_space;
        source.name_there = beside_.registry.cluster;
      }
      file->clusters.push_back(std::move(source));
    }
    return file;
  }

  Status check() const {
    const auto file = read();
    if (!file) return std::unexpected(file.error());
    for (const ClusterSource& source : file->clusters) {
      if (source.spec.empty()) continue;
      if (const auto snapshot = load_spec_snapshot(source.spec); !snapshot) {
        return std::unexpected(snapshot.error());
      }
    }
    return {};
  }

  Status start() {
    auto file = read();
    if (!file) return std::unexpected(file.error());
    file_ = std::move(*file);
    merge(beside_.command, file_, beside_.options);
    if (file_.handover && !given(beside_.command, "--handover")) beside_.handover = *file_.handover;
    for (const ClusterSource& source : file_.clusters) {
      if (!source.registry.empty()) {
        // A new life is a new router: see `ringshift proxy --cluster`.
        beside_.options.router_id = unique_id(beside_.options.router_id);
        break;
      }
    }
    if (const Status right = check_topology_cache(); !right) return right;
    std::vector<proxy::ServedCluster> served;
    for (const ClusterSource& source : file_.clusters) {
      auto cluster = open(source);
      if (!cluster) return std::unexpected(cluster.error());
      served.push_back({source.name, cluster->holder, cluster->router.get()});
      clusters_.push_back(std::move(*cluster));
    }
    auto handover = Handover::begin(beside_.handover, beside_.options);
    if (!handover) return std::unexpected(handover.error());
    auto admin = (*handover)->takes_over() ? nullptr : beside_.admin.open();
    if (!admin) return std::unexpected(admin.error());
    auto started = proxy::Proxy::start(beside_.options, std::move(served), file_.rules);
    beside_.options.inherited.reset();
    if (!started) return std::unexpected(started.error());
    proxy_ = std::move(*started);
    for (std::size_t i = 0; i < clusters_.size(); ++i) {
      if (clusters_[i].router) clusters_[i].router->attach(*proxy_, i);
    }
    handover_ = std::move(*handover);
    const Status serving = handover_->serving(*proxy_);
    if (!serving) {
      detach();
      return serving;
    }
    admin_ = handover_->takes_over() ? beside_.admin.open_after_predecessor() : std::move(*admin);
    show_proxy(admin_.get(), *proxy_);
    show_certificates(admin_.get(), beside_.tls, beside_.options.member_access.get());
    return serving;
  }

  [[nodiscard]] const proxy::Proxy& proxy() const { return *proxy_; }
  [[nodiscard]] const admin::Listener* admin() const { return admin_.get(); }

  // Until the last client has gone we follow the topologies and acknowledge them, as before.
  void stop(const Signals& signals) {
    admin_.reset();  // A successor waits for its port.
    drain(*proxy_, signals, beside_.options, *handover_);
    detach();
    proxy_->stop(std::chrono::milliseconds(0));
    handover_.reset();
  }

  // All of it or nothing.
  Status reload() {
    auto next = read();
    if (!next) return std::unexpected(next.error());
    if (const Status same = same_clusters(*next); !same) return same;
    std::vector<Snapshot> snapshots(clusters_.size());
    for (std::size_t i = 0; i < clusters_.size(); ++i) {
      if (clusters_[i].router) continue;
      auto snapshot = newer(next->clusters[i], *clusters_[i].holder);
      if (!snapshot) return std::unexpected(snapshot.error());
      snapshots[i] = std::move(*snapshot);
    }
    if (!same_process(file_, *next)) {
      base::log(base::LogLevel::warning,
                "proxy: {}: listen, threads, id, timeouts, bounds, slow_log_ms and allow_flush are taken at "
                "the next start",
                path_);
    }
    for (std::size_t i = 0; i < clusters_.size(); ++i) {
      if (snapshots[i] == nullptr) continue;
      coord::log_topology(*snapshots[i], fmt::format("proxy: cluster {}: ", next->clusters[i].name));
      (void)clusters_[i].holder->publish(std::move(snapshots[i]));
    }
    proxy_->notify();
    proxy_->set_rules(next->rules);
    file_ = std::move(*next);
    base::log(base::LogLevel::info, "proxy: {} was read anew: {} users, {} limits", path_,
              file_.rules.users.all().size(), file_.rules.limits.size());
    return {};
  }

 private:
  struct Cluster {
    std::shared_ptr<Holder> holder;
    std::unique_ptr<RegistryRouter> router;  // Null: a static cluster.
  };

  void detach() {
    for (Cluster& cluster : clusters_) {
      if (cluster.router) cluster.router->detach();
    }
  }

  // Two clusters in one file would overwrite each other.
  Status check_topology_cache() const {
    std::map<std::string, std::string> cluster_of;
    for (const ClusterSource& source : file_.clusters) {
      if (source.registry.empty()) continue;
      RegistryFlags flags = beside_.registry;
      if (!source.name_space.empty()) flags.name_space = source.name_space;
      flags.cluster = source.name_there;
      const std::string file = topology_cache_file(beside_.topology_cache, flags);
      const auto [before, is_first] = cluster_of.try_emplace(file, source.name);
      if (file.empty() || is_first) continue;
      return fail(ErrorKind::invalid,
                  fmt::format("--topology-cache {} would be the file of the clusters '{}' and '{}': name a "
                              "directory, with '/' at its end",
                              beside_.topology_cache, before->second, source.name));
    }
    return {};
  }

  Result<Cluster> open(const ClusterSource& source) const {
    Cluster cluster;
    if (!source.spec.empty()) {
      auto snapshot = load_spec_snapshot(source.spec);
      if (!snapshot) return std::unexpected(snapshot.error());
      coord::log_topology(**snapshot,
                          fmt::format("proxy: cluster {}: ", (*snapshot)->topology().spec.cluster));
      cluster.holder = std::make_shared<Holder>(std::move(*snapshot));
      return cluster;
    }
    RegistryFlags flags = beside_.registry;
    flags.registry = source.registry;
    if (!source.name_space.empty()) flags.name_space = source.name_space;
    flags.cluster = source.name_there;
    auto router = RegistryRouter::start(flags, beside_.options.router_id, beside_.patience,
                                        topology_cache_file(beside_.topology_cache, flags));
    if (!router) return std::unexpected(router.error());
    cluster.router = std::move(*router);
    cluster.holder = cluster.router->holder();
    return cluster;
  }

  Status same_clusters(const ProxyFile& next) const {
    bool same = next.clusters.size() == file_.clusters.size();
    for (std::size_t i = 0; same && i < next.clusters.size(); ++i) {
      ClusterSource of_next = next.clusters[i];
      // Another file may say it from now on.
      if (!of_next.spec.empty() && !file_.clusters[i].spec.empty()) of_next.spec = file_.clusters[i].spec;
      same = of_next == file_.clusters[i];
    }
    if (same) return {};
    return fail(ErrorKind::invalid, fmt::format("{}: clusters can be added, removed, reordered or moved to "
                                                "another registry only by a restart",
                                                path_));
  }

  // Null: the spec says what is served already. Revisions count the accepted changes.
  static Result<Snapshot> newer(const ClusterSource& source, const Holder& holder) {
    auto spec = read_spec(source.spec);
    if (!spec) return std::unexpected(spec.error());
    const auto current = holder.load();
    if (*spec == current->topology().spec) return nullptr;
    const Status follows = topology::check_succession(current->topology().spec, *spec, false);
    if (!follows) return std::unexpected(follows.error());
    topology::Topology next;
    next.spec = std::move(*spec);
    return topology::Snapshot::compile(std::move(next), {0, current->version.revision + 1}, current.get());
  }

  const std::string path_;
  BesideConfig beside_;
  ProxyFile file_;
  std::vector<Cluster> clusters_;
  std::unique_ptr<proxy::Proxy> proxy_;  // Goes before the routers that it asks.
  std::unique_ptr<Handover> handover_;
  std::unique_ptr<admin::Listener> admin_;  // Last: it shows the proxy.
};

}  // namespace

void ConfigFlags::add_to(CLI::App& command) {
  command
      .add_option("--config", file,
                  "The proxy's file: clusters, users, routes, limits; flags and RINGSHIFT_* variables come "
                  "before it; SIGHUP reads it anew")
      ->type_name("FILE")
      ->envname("RINGSHIFT_CONFIG");
  command.add_flag("--check", check, "Only say whether the --config file, and the specs it names, are right");
}

int serve_config(const ConfigFlags& flags, BesideConfig beside) {
  const std::function<void()> reload_secrets = beside.reload_secrets;
  Service service(flags.file, std::move(beside));
  if (flags.check) {
    if (const Status right = service.check(); !right) {
      report(right.error().message);
      return kFailed;
    }
    fmt::print("{}: right\n", flags.file);
    return kDone;
  }
  const Signals signals{SIGTERM, SIGINT, SIGHUP};  // Before any thread.
  if (const Status started = service.start(); !started) {
    report(started.error().message);
    return kFailed;
  }
  announce_listeners("proxy", service.proxy().listening());
  announce_admin(service.admin());
  while (signals.wait() == SIGHUP) {
    reload_secrets();
    if (const Status reloaded = service.reload(); !reloaded) {
      base::log(base::LogLevel::error, "proxy: nothing was changed: {}", reloaded.error().message);
    }
  }
  service.stop(signals);
  return kDone;
}

}  // namespace ringshift::cli
