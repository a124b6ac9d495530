// `ringshift proxy --config FILE`: several clusters behind one proxy, its users, routes and limits; SIGHUP
// reads the file anew, and what is wrong in it then changes nothing.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "cli/admin_flags.h"
#include "cli/registry_flags.h"
#include "proxy/proxy.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

struct ConfigFlags {
  std::string file;
  bool check = false;

  void add_to(CLI::App& command);
};

// What the command line says beside the file. `options` are its flags' values already; of those that were
// not given, neither by a flag nor by the environment, the file's are taken.
struct BesideConfig {
  const CLI::App& command;
  proxy::Options options;
  std::string handover;
  std::string spec;  // For a file without clusters: one of these.
  RegistryFlags registry;
  std::chrono::seconds patience{30};             // For a registry's first topology.
  std::function<void()> reload_secrets = [] {};  // Certificates and passwords, at SIGHUP.
  AdminFlags admin{};
  const net::TlsContext* tls = nullptr;  // Of the clients' listeners.
  std::string topology_cache{};          // Of several clusters: a directory.
};

// Serves until SIGTERM or SIGINT, or only checks. Gives the exit status.
[[nodiscard]] int serve_config(const ConfigFlags& flags, BesideConfig beside);

}  // namespace ringshift::cli
