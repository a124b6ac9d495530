// `ringshift registry`: the embedded registry alone, until a signal.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>

#include "cli/admin_flags.h"
#include "cli/cli.h"
#include "cli/log_flags.h"
#include "cli/registry_copy.h"
#include "cli/server.h"
#include "http/server.h"
#include "registry/server.h"

namespace ringshift::cli {
namespace {

struct Flags {
  std::string listen = "127.0.0.1:7379";
  std::string data = "ringshift-registry.db";
  LogFlags log;
  AdminFlags admin;
};

void serve(const Flags& flags) {
  const Signals signals{SIGTERM, SIGINT};  // Before any thread starts.
  const auto address = http::parse_host_port(flags.listen);
  if (!address) {
    report("--listen: " + address.error().message);
    throw CLI::RuntimeError(kBadUsage);
  }
  flags.log.apply();
  auto admin = flags.admin.open();
  if (!admin) {
    report(admin.error().message);
    throw CLI::RuntimeError(kFailed);
  }
  auto server = registry::Server::start({address->host, address->port, flags.data});
  if (!server) {
    report(server.error().message);
    throw CLI::RuntimeError(kFailed);
  }
  const std::string host =
      address->host.find(':') == std::string::npos ? address->host : "[" + address->host + "]";
  announce("registry", fmt::format("{}:{}", host, (*server)->port()));
  if (*admin != nullptr) {
    (*admin)->collect([&registry = **server](telemetry::Exposition& page) { registry.collect(page); });
    (*admin)->ready_if([] { return Status{}; });
  }
  announce_admin(admin->get());
  static_cast<void>(signals.wait());
  admin->reset();  // Before what it shows.
}

}  // namespace

void add_registry(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("registry", "Keep cluster state in one SQLite file, with the etcd v3 JSON API");
  command->add_option("--listen", flags->listen, "Address, on loopback; port 0 takes any free one")
      ->envname("RINGSHIFT_REGISTRY_LISTEN")
      ->capture_default_str();
  command->add_option("--data", flags->data, "The SQLite file; created when absent")
      ->envname("RINGSHIFT_REGISTRY_DATA")
      ->capture_default_str();
  flags->log.add_to(*command);
  flags->admin.add_to(*command, "none");
  command->footer(
      "Examples:\n"
      "  ringshift registry --data /var/lib/ringshift/registry.db\n"
      "  ringshift registry --listen 127.0.0.1:0 --data test.db     any free port; the first line says "
      "which\n"
      "  curl -s http://127.0.0.1:7379/health\n"
      "An etcd cluster (3.4 or later) or a ZooKeeper ensemble (3.6 or later) can take its place: point "
      "--registry\n"
      "of the other commands at it.");
  add_registry_copy(*command);
  command->callback([flags, command] {
    if (command->get_subcommands().empty()) serve(*flags);
  });
}

}  // namespace ringshift::cli
