// ringshift proxy: the data plane alone.
#include "proxy/proxy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <utility>

#include "cli/admin_flags.h"
#include "cli/cli.h"
#include "cli/client_flags.h"
#include "cli/handover.h"
#include "cli/log_flags.h"
#include "cli/proxy_config.h"
#include "cli/registry_router.h"
#include "cli/server.h"
#include "cli/spec_file.h"
#include "cli/tls_flags.h"

namespace ringshift::cli {
namespace {

using Holder = proxy::Proxy::Holder;

struct Flags {
  proxy::Options options;
  std::string spec;
  RegistryFlags registry;
  ListenFlags listen;
  MemberFlags members;
  AdminFlags admin;
  std::shared_ptr<net::TlsContext> tls;
  std::shared_ptr<backend::MemberAccess> member_access;
  int wait_seconds = 30;
  int request_timeout_ms = 1000;
  int connect_timeout_ms = 1000;
  int shutdown_grace_ms = 5000;
  int drain_timeout_ms = 30000;
  std::string handover, topology_cache;
  LogFlags log;
  ConfigFlags config;
  const CLI::App* command = nullptr;
};

// Where the proxy's snapshots come from.
struct Source {
  std::shared_ptr<Holder> holder;
  proxy::Authority* authority = nullptr;
  std::function<void(proxy::Proxy&)> on_started = [](proxy::Proxy&) {};
  std::function<void(proxy::Proxy&)> on_hangup = [](proxy::Proxy&) {};
  std::function<void(proxy::Proxy&)> on_stopping = [](proxy::Proxy&) {};
};

// Serves until SIGTERM or SIGINT. Gives the exit status.
int serve(const Flags& flags, const Source& source) {
  const Signals signals{SIGTERM, SIGINT, SIGHUP};
  proxy::Options options = flags.options;
  auto handover = Handover::begin(flags.handover, options);
  if (!handover) {
    report(handover.error().message);
    return kFailed;
  }
  auto admin = (*handover)->takes_over() ? nullptr : flags.admin.open();
  if (!admin) {
    report(admin.error().message);
    return kFailed;
  }
  auto started = proxy::Proxy::start(options, source.holder, source.authority);
  if (!started) {
    report(started.error().message);
    return kFailed;
  }
  proxy::Proxy& proxy = **started;
  source.on_started(proxy);
  if (const Status serving = (*handover)->serving(proxy); !serving) {
    report(serving.error().message);
    source.on_stopping(proxy);
    return kFailed;
  }
  if ((*handover)->takes_over()) admin = flags.admin.open_after_predecessor();
  show_proxy(admin->get(), proxy);
  show_certificates(admin->get(), flags.tls.get(), flags.member_access.get());
  announce_listeners("proxy", proxy.listening());
  announce_admin(admin->get());
  while (signals.wait() == SIGHUP) {
    reload_secrets("proxy", flags.tls.get(), flags.member_access.get());
    source.on_hangup(proxy);
  }
  admin->reset();  // A successor waits for its port.
  // Until the last client has gone we follow the topology and acknowledge it, as before.
  drain(proxy, signals, options, **handover);
  source.on_stopping(proxy);
  proxy.stop(std::chrono::milliseconds(0));
  handover->reset();
  return kDone;
}

// Reads the spec anew. Revisions count the accepted changes; a bad file changes nothing.
void reload(const std::string& path, Holder& holder, proxy::Proxy& proxy) {
  const auto refuse = [&](const std::string& why) {
    base::log(base::LogLevel::error, "proxy: the spec was not changed: {}", why);
  };
  const auto received = std::chrono::steady_clock::now();
  auto spec = read_spec(path);
  if (!spec) return refuse(spec.error().message);
  const auto current = holder.load();
  if (*spec == current->topology().spec) {
    base::log(base::LogLevel::info, "proxy: {} says what is served already", path);
    return;
  }
  if (const Status follows = topology::check_succession(current->topology().spec, *spec, false); !follows) {
    return refuse(follows.error().message);
  }
  topology::Topology next;
  next.spec = std::move(*spec);
  auto snapshot =
      topology::Snapshot::compile(std::move(next), {0, current->version.revision + 1}, current.get());
  if (!snapshot) return refuse(snapshot.error().message);
  coord::log_topology(**snapshot, "proxy: ");
  if (holder.publish(std::move(*snapshot), received)) proxy.notify();
}

int serve_static(const Flags& flags) {
  auto snapshot = load_spec_snapshot(flags.spec);
  if (!snapshot) {
    report(snapshot.error().message);
    return kFailed;
  }
  coord::log_topology(**snapshot, "proxy: ");
  Source source;
  source.holder = std::make_shared<Holder>(std::move(*snapshot));
  source.on_hangup = [&flags, &holder = *source.holder](proxy::Proxy& proxy) {
    reload(flags.spec, holder, proxy);
  };
  return serve(flags, source);
}

int serve_registry(Flags& flags) {
  // A new life is a new router: what its predecessor left in flight at the members must be told apart.
  flags.options.router_id = unique_id(flags.options.router_id);
  const Signals signals{SIGTERM, SIGINT, SIGHUP};  // Before the link's threads start.
  auto router =
      RegistryRouter::start(flags.registry, flags.options.router_id, std::chrono::seconds(flags.wait_seconds),
                            topology_cache_file(flags.topology_cache, flags.registry));
  if (!router) {
    report(router.error().message);
    return kFailed;
  }
  Source source;
  source.holder = (*router)->holder();
  source.authority = router->get();
  source.on_started = [&](proxy::Proxy& proxy) { (*router)->attach(proxy); };
  source.on_stopping = [&](proxy::Proxy&) { (*router)->detach(); };
  return serve(flags, source);
}

int run_proxy(Flags& flags) {
  const bool configured = !flags.config.file.empty();
  if (flags.config.check && !configured) {
    report("--check is about the file of --config: name it");
    return kBadUsage;
  }
  if (!configured && flags.spec.empty() == flags.registry.cluster.empty()) {
    report(flags.spec.empty()
               ? "say --spec FILE for a static cluster, --cluster NAME to follow a registry, or --config "
                 "FILE for the proxy's own file"
               : "--spec and --cluster exclude each other: a static cluster follows no "
                 "registry (is RINGSHIFT_CLUSTER set?)");
    return kBadUsage;
  }
  flags.log.apply();
  auto tls = flags.listen.apply(flags.options);
  if (!tls) {
    report(tls.error().message);
    return kBadUsage;
  }
  auto access = flags.members.open();
  if (!access) {
    report(access.error().message);
    return kFailed;
  }
  flags.tls = std::move(*tls);
  flags.member_access = std::move(*access);
  flags.options.member_access = flags.member_access;
  flags.options.request_timeout = std::chrono::milliseconds(flags.request_timeout_ms);
  flags.options.connect_timeout = std::chrono::milliseconds(flags.connect_timeout_ms);
  flags.options.shutdown_grace = std::chrono::milliseconds(flags.shutdown_grace_ms);
  flags.options.drain_timeout = std::chrono::milliseconds(flags.drain_timeout_ms);
  if (configured) {
    return serve_config(flags.config,
                        {*flags.command, flags.options, flags.handover, flags.spec, flags.registry,
                         std::chrono::seconds(flags.wait_seconds),
                         [&flags] { reload_secrets("proxy", flags.tls.get(), flags.member_access.get()); },
                         flags.admin, flags.tls.get(), flags.topology_cache});
  }
  return flags.spec.empty() ? serve_registry(flags) : serve_static(flags);
}

}  // namespace

void add_proxy(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  // Two proxies of one machine must not be taken for one.
  char host[256] = "proxy";
  (void)gethostname(host, sizeof(host) - 1);
  flags->options.router_id = fmt::format("{}-{}", host, getpid());
  proxy::Options& options = flags->options;
  CLI::App* command = app.add_subcommand("proxy", "Serve Redis clients from the members of a cluster");
  flags->command = command;
  flags->config.add_to(*command);
  command->add_option("--spec", flags->spec, "The cluster's spec: a static cluster; SIGHUP reads it anew")
      ->type_name("FILE");
  flags->registry.add_to(*command, /*cluster_required=*/false);
  command
      ->add_option("--wait-seconds", flags->wait_seconds, "How long to wait for the cluster's first topology")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  command
      ->add_option(
          "--topology-cache", flags->topology_cache,
          "Where the last settled topology is kept, for a start while the registry does not answer: a "
          "FILE, or a DIR/ with a file for each cluster; none: not at all [systemd's StateDirectory "
          "when the unit has one, else none]")
      ->type_name("FILE")
      ->envname("RINGSHIFT_TOPOLOGY_CACHE");
  flags->listen.add_to(*command, options.listen);
  flags->members.add_to(*command);
  command->add_option("--threads", options.threads, "Worker threads; 0: one for each core")
      ->envname("RINGSHIFT_THREADS")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command->add_option("--id", options.router_id, "This router's id; the members see it as a client name")
      ->capture_default_str();
  command->add_option("--request-timeout-ms", flags->request_timeout_ms, "Longest wait for a member's reply")
      ->check(CLI::Range(1, 3600000))
      ->capture_default_str();
  command->add_option("--connect-timeout-ms", flags->connect_timeout_ms, "Longest wait for a connection")
      ->check(CLI::Range(1, 3600000))
      ->capture_default_str();
  command->add_option("--shutdown-grace-ms", flags->shutdown_grace_ms, "Longest wait for answers at the end")
      ->check(CLI::Range(0, 3600000))
      ->capture_default_str();
  command
      ->add_option(
          "--handover", flags->handover,
          "Takes over from the proxy that serves at this socket, which then drains; with none there an "
          "ordinary start. We listen there for our own successor")
      ->type_name("PATH")
      ->envname("RINGSHIFT_HANDOVER");
  command
      ->add_option("--drain-timeout-ms", flags->drain_timeout_ms,
                   "Longest wait for clients to go once a successor serves")
      ->check(CLI::Range(0, 86400000))
      ->capture_default_str();
  flags->admin.add_to(*command, "none");
  add_client_flags(*command, options);
  flags->log.add_to(*command);
  command->footer(
      "Examples:\n"
      "  ringshift proxy --spec cluster.yaml\n"
      "  ringshift proxy --registry http://127.0.0.1:7379 --cluster cache\n"
      "  ringshift proxy --registry http://127.0.0.1:7379 --cluster cache --topology-cache "
      "/var/lib/ringshift/\n"
      "  ringshift proxy --spec cluster.yaml --listen 0.0.0.0:6380 --threads 4\n"
      "  ringshift proxy --spec cluster.yaml --tls-listen 0.0.0.0:6390 --tls-cert proxy.pem --tls-key "
      "proxy.key\n"
      "  ringshift proxy --config proxy.yaml --check\n"
      "  ringshift proxy --config proxy.yaml --handover /run/ringshift/handover.sock\n"
      "  redis-cli -p 6380 set greeting hello");
  command->callback([flags] {
    if (const int status = run_proxy(*flags); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
