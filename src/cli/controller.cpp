// ringshift controller: drives resizes. Several may run; one holds the cluster's lock.
#include "resize/controller.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>

#include "cli/admin_api.h"
#include "cli/admin_flags.h"
#include "cli/cli.h"
#include "cli/log_flags.h"
#include "cli/membership.h"
#include "cli/registry_router.h"
#include "cli/server.h"
#include "cli/tls_flags.h"

namespace ringshift::cli {
namespace {

struct Flags {
  RegistryFlags registry;
  MemberFlags members;
  AdminFlags admin;
  AdminApiFlags api;
  resize::ControllerOptions options;
  int fence_timeout_ms = 2000;
  LogFlags log;
};

int run_controller(Flags& flags) {
  flags.log.apply();
  flags.options.fence_timeout = std::chrono::milliseconds(flags.fence_timeout_ms);
  flags.options.id = unique_id(flags.options.id);
  const auto access = flags.members.open();
  if (!access) {
    report(access.error().message);
    return kFailed;
  }
  flags.options.member_access = *access;
  const Signals signals{SIGTERM, SIGINT, SIGHUP};
  auto admin = flags.admin.open();
  if (!admin) {
    report(admin.error().message);
    return kFailed;
  }
  auto tokens = flags.api.open("");
  if (!tokens) {
    report(tokens.error().message);
    return kFailed;
  }
  auto coordinator = flags.registry.connect();
  if (!coordinator) {
    report(coordinator.error().message);
    return kFailed;
  }
  resize::Controller controller(**coordinator, flags.registry.keys(), flags.options);
  const auto membership =
      start_membership(**coordinator, flags.registry, flags.options.id, flags.options.member_access);
  show_controller(admin->get(), controller, flags.registry.cluster);
  show_membership(admin->get(), *membership, flags.registry.cluster);
  show_certificates(admin->get(), nullptr, access->get());
  announce("controller", fmt::format("cluster {} at {}", flags.registry.cluster, flags.registry.registry));
  const auto api =
      show_api(admin->get(), **coordinator, flags.registry, "controller", *access, *std::move(tokens));
  announce_admin(admin->get());
  while (signals.wait() == SIGHUP) reload_secrets("controller", nullptr, access->get());
  (*coordinator)->hurry(coord::kHurry);
  if (api) api->stop();
  admin->reset();  // Before what it shows.
  return kDone;
}

}  // namespace

void add_controller(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  char host[256] = "controller";
  static_cast<void>(gethostname(host, sizeof(host) - 1));
  flags->options.id = fmt::format("{}-{}-controller", host, getpid());
  CLI::App* command = app.add_subcommand("controller", "Drive a cluster's resizes");
  flags->registry.add_to(*command, /*cluster_required=*/true);
  flags->members.add_to(*command);
  command->add_option("--id", flags->options.id, "This controller's id; a random suffix is added")
      ->capture_default_str();
  command
      ->add_option("--fence-timeout-ms", flags->fence_timeout_ms,
                   "How long a step waits for a router before its connections are killed at the members")
      ->check(CLI::Range(1, 600000))
      ->capture_default_str();
  flags->log.add_to(*command);
  flags->admin.add_to(*command, "none");
  flags->api.add_to(*command, "none: no actions");
  command->footer(
      "Examples:\n"
      "  ringshift controller --registry http://127.0.0.1:7379 --cluster cache\n"
      "  ringshift controller --cluster cache --fence-timeout-ms 500");
  command->callback([flags] {
    if (const int status = run_controller(*flags); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
