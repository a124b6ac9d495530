#include "cli/registry_flags.h"

#include <CLI/CLI.hpp>

namespace ringshift::cli {

void RegistryFlags::add_to(CLI::App& command, bool cluster_required) {
  command.add_option("--registry", registry, "URL of the registry or of etcd; several: separated by commas")
      ->envname("RINGSHIFT_REGISTRY")
      ->capture_default_str();
  command.add_option("--namespace", name_space, "Namespace of the cluster")
      ->envname("RINGSHIFT_NAMESPACE")
      ->capture_default_str();
  CLI::Option* name_option =
      command.add_option("--cluster", cluster, "Name of the cluster")->envname("RINGSHIFT_CLUSTER");
  if (cluster_required) name_option->required();
}

Result<std::unique_ptr<coord::Coordinator>> RegistryFlags::connect() const {
  coord::Options options;
  for (std::size_t begin = 0; begin <= registry.size();) {
    const std::size_t end = std::min(registry.find(',', begin), registry.size());
    if (end > begin) options.endpoints.push_back(registry.substr(begin, end - begin));
    begin = end + 1;
  }
  return coord::connect(std::move(options));
}

}  // namespace ringshift::cli
