// `ringshift registry`: the embedded registry alone, until a signal.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>

#include "cli/admin_flags.h"
#include "cli/cli.h"
#include "cli/log_flags.h"
#include "cli/registry_copy.h"
#include "cli/registry_more.h"
#include "cli/server.h"
#include "http/server.h"
#include "registry/server.h"

namespace ringshift::cli {
namespace {

struct Flags {
  registry::Options server;
  std::string listen = "127.0.0.1:7379";
  std::string data = "ringshift-registry.db";
  std::string client_certificates = "require";
  LogFlags log;
  AdminFlags admin;
};

void serve(const Flags& flags) {
  const Signals signals{SIGTERM, SIGINT, SIGHUP};  // Before any thread starts.
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
  registry::Options options = flags.server;
  options.listen_host = address->host;
  options.port = address->port;
  options.database = flags.data;
  options.client_certificates_required = flags.client_certificates == "require";
  if (options.open_to_the_network && !http::is_loopback(address->host)) {
    report(
        "warning: --insecure-open-to-the-network: whoever reaches this registry may read or change what it "
        "holds");
  }
  auto server = registry::Server::start(options);
  if (!server) {
    report(server.error().message);
    throw CLI::RuntimeError(kFailed);
  }
  if (const std::string& file = (*server)->admin_token_file(); !file.empty()) {
    report(fmt::format("a new admin's token is in {} (mode 0600): use it by --registry-auth-file", file));
  }
  const std::string host =
      address->host.find(':') == std::string::npos ? address->host : "[" + address->host + "]";
  announce("registry", fmt::format("{}:{}", host, (*server)->port()));
  if (*admin != nullptr) {
    (*admin)->collect([&registry = **server](telemetry::Exposition& page) { registry.collect(page); });
    (*admin)->ready_if([] { return Status{}; });
  }
  announce_admin(admin->get());
  while (signals.wait() == SIGHUP) {
    const Status read = (*server)->reload();
    if (read) {
      base::log(base::LogLevel::info, "registry: certificates read anew");
    } else {
      base::log(base::LogLevel::error, "registry: certificates stay as they were: {}", read.error().message);
    }
  }
  admin->reset();  // Before what it shows.
}

void add_access(CLI::App& command, Flags& flags) {
  registry::Options& options = flags.server;
  constexpr const char* kGroup = "Access";
  command
      .add_flag("--auth", options.auth,
                "Ask for tokens; the first start writes an admin's beside the database")
      ->envname("RINGSHIFT_REGISTRY_AUTH")
      ->group(kGroup);
  command
      .add_flag("--new-admin-token", options.new_admin_token,
                "Make another admin's token: the old one is lost")
      ->needs("--auth")
      ->group(kGroup);
  const auto file = [&](const char* flag, std::string& value, const char* text) {
    return command.add_option(flag, value, text)->type_name("FILE")->group(kGroup);
  };
  file("--tls-cert", options.tls_certificate,
       "Serve by TLS: the certificate with its chain (PEM); SIGHUP reads it anew");
  file("--tls-key", options.tls_key, "Its key (PEM, not encrypted)");
  file("--client-ca", options.client_ca, "Who signs clients' certificates");
  command
      .add_option("--client-certs", flags.client_certificates,
                  "With --client-ca: require one of every client, or verify it when there is one")
      ->check(CLI::IsMember({"require", "verify"}))
      ->capture_default_str()
      ->needs("--client-ca")
      ->group(kGroup);
  command
      .add_flag("--insecure-open-to-the-network", options.open_to_the_network,
                "Listen beyond loopback without tokens or TLS: whoever reaches it may change the cluster")
      ->group(kGroup);
  command
      .add_option("--token-requests", options.requests_per_second,
                  "Requests a second of each token; 0: no limit")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--token-watches", options.watches_per_token, "Watches of each token")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--audit-rows", options.audit_rows, "Lines that the audit keeps")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000'000}))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--audit-days", options.audit_days, "Days that it keeps them")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{36'500}))
      ->capture_default_str()
      ->group(kGroup);
}

}  // namespace

void add_registry(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("registry", "Keep cluster state in one SQLite file, with the etcd v3 JSON API");
  command
      ->add_option("--listen", flags->listen,
                   "Address; beyond loopback with --auth and TLS alone; port 0 takes any free one")
      ->envname("RINGSHIFT_REGISTRY_LISTEN")
      ->capture_default_str();
  command->add_option("--data", flags->data, "The SQLite file; created when absent")
      ->envname("RINGSHIFT_REGISTRY_DATA")
      ->capture_default_str();
  add_access(*command, *flags);
  flags->log.add_to(*command);
  flags->admin.add_to(*command, "none");
  command->footer(
      "Examples:\n"
      "  ringshift registry --data /var/lib/ringshift/registry.db\n"
      "  ringshift registry --listen 127.0.0.1:0 --data test.db     any free port; the first line says "
      "which\n"
      "  curl -s http://127.0.0.1:7379/health\n"
      "  ringshift registry --auth --listen 10.0.0.5:7379 --tls-cert registry.pem --tls-key registry.key\n"
      "An etcd cluster (3.4 or later) or a ZooKeeper ensemble (3.6 or later) can take its place: point "
      "--registry\n"
      "of the other commands at it.");
  add_registry_copy(*command);
  add_registry_more(*command);
  command->callback([flags, command] {
    if (command->get_subcommands().empty()) serve(*flags);
  });
}

}  // namespace ringshift::cli
