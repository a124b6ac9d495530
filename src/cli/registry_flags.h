// Which cluster of which registry: the flags of every command that speaks to one.
#pragma once
#include <memory>
#include <string>

#include "coord/coordinator.h"
#include "coord/keys.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

// Of --cluster and --namespace: "" or what is wrong, as CLI::Option::check() wants it. They are parts of
// keys.
[[nodiscard]] std::string check_name_flag(const std::string& name);

struct RegistryFlags {
  std::string registry = "http://127.0.0.1:7379";  // Several: separated by commas.
  std::string name_space{coord::kDefaultNamespace};
  std::string cluster;
  std::string ca, certificate, key;  // Of https://.
  std::string auth_file;             // See coord/credentials.h.

  // --registry, --namespace and --cluster, with their environment variables.
  void add_to(CLI::App& command, bool cluster_required);
  // Endpoints, who we are, and whom we trust.
  [[nodiscard]] Result<coord::Options> options() const;
  [[nodiscard]] Result<std::unique_ptr<coord::Coordinator>> connect() const;
  // --registry, --registry-auth-file and those of TLS alone: for commands that are about no cluster.
  void add_connection_to(CLI::App& command);
  [[nodiscard]] coord::ClusterKeys keys() const { return {name_space, cluster}; }
};

}  // namespace ringshift::cli
