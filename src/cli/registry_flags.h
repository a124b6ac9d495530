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

struct RegistryFlags {
  std::string registry = "http://127.0.0.1:7379";  // Several: separated by commas.
  std::string name_space{coord::kDefaultNamespace};
  std::string cluster;
  std::string auth_file;  // See coord/credentials.h.

  // --registry, --namespace and --cluster, with their environment variables.
  void add_to(CLI::App& command, bool cluster_required);
  [[nodiscard]] Result<std::unique_ptr<coord::Coordinator>> connect() const;
  [[nodiscard]] coord::ClusterKeys keys() const { return {name_space, cluster}; }
};

}  // namespace ringshift::cli
