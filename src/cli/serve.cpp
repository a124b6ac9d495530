// ringshift serve: registry, controller and proxy in one process.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <memory>

#include "cli/admin_api.h"
#include "cli/admin_flags.h"
#include "cli/cli.h"
#include "cli/client_flags.h"
#include "cli/deployment.h"
#include "cli/log_flags.h"
#include "cli/server.h"
#include "cli/spec_file.h"
#include "cli/tls_flags.h"

namespace ringshift::cli {
namespace {

struct Flags {
  DeploymentOptions options;
  std::string spec;
  ListenFlags listen;
  MemberFlags members;
  LogFlags log;
  AdminFlags admin;
  AdminApiFlags api;
};

int run_serve(Flags& flags) {
  flags.log.apply();
  const auto spec = read_spec(flags.spec);
  if (!spec) {
    report(spec.error().message);
    return kFailed;
  }
  std::error_code error;
  std::filesystem::create_directories(flags.options.data_dir, error);
  if (error) {
    report(fmt::format("--data {}: {}", flags.options.data_dir, error.message()));
    return kFailed;
  }
  flags.options.cluster = spec->cluster;
  const auto tls = flags.listen.apply(flags.options.proxy);
  if (!tls) {
    report(tls.error().message);
    return kBadUsage;
  }
  const auto access = flags.members.open();
  if (!access) {
    report(access.error().message);
    return kFailed;
  }
  flags.options.proxy.member_access = *access;
  flags.options.proxy_listen = flags.options.proxy.listen;
  const Signals signals{SIGTERM, SIGINT, SIGHUP};
  auto admin = flags.admin.open();
  if (!admin) {
    report(admin.error().message);
    return kFailed;
  }
  auto tokens = flags.api.open(flags.admin.wanted() ? flags.options.data_dir : "");
  if (!tokens) {
    report(tokens.error().message);
    return kFailed;
  }
  const auto deployment = Deployment::start(flags.options, *spec);
  if (!deployment) {
    report(deployment.error().message);
    return kFailed;
  }
  announce("registry", (*deployment)->registry_url());
  announce_listeners("proxy", (*deployment)->listening());
  (*deployment)->show(admin->get());
  show_certificates(admin->get(), tls->get(), access->get());
  (*deployment)->show_api(admin->get(), "serve", *std::move(tokens));
  announce_admin(admin->get());
  while (signals.wait() == SIGHUP) reload_secrets("serve", tls->get(), access->get());
  (*deployment)->end_actions();
  admin->reset();  // Before what it shows.
  return kDone;
}

}  // namespace

void add_serve(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->options.data_dir = "ringshift-data";
  flags->options.proxy_threads = 0;
  DeploymentOptions& options = flags->options;
  CLI::App* command =
      app.add_subcommand("serve", "Registry, controller and proxy of one cluster in one process");
  command->add_option("--spec", flags->spec, "The cluster's spec; used when the registry has none yet")
      ->required()
      ->type_name("FILE");
  command->add_option("--data", options.data_dir, "Folder of the registry's database; created when absent")
      ->type_name("DIR")
      ->envname("RINGSHIFT_DATA")
      ->capture_default_str();
  flags->listen.add_to(*command, options.proxy_listen);
  flags->members.add_to(*command);
  command->add_option("--registry-listen", options.registry_listen, "Where the registry listens, on loopback")
      ->type_name("HOST:PORT")
      ->envname("RINGSHIFT_REGISTRY_LISTEN")
      ->capture_default_str();
  command->add_option("--threads", options.proxy_threads, "The proxy's worker threads; 0: one for each core")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  flags->admin.add_to(*command, kAdminDefault);
  flags->api.add_to(*command, "DATA/admin.token, made at the first start");
  add_client_flags(*command, options.proxy);
  flags->log.add_to(*command);
  command->footer(
      "Examples:\n"
      "  ringshift serve --spec four.yaml --data /var/lib/ringshift\n"
      "  redis-cli -p 6380 set greeting hello\n"
      "  ringshift resize start --cluster cache --spec five.yaml");
  command->callback([flags] {
    if (const int status = run_serve(*flags); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
