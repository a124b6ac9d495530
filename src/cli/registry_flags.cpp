#include "cli/registry_flags.h"

#include <CLI/CLI.hpp>

namespace ringshift::cli {

void add_registry_flags(CLI::App& command, RegistryFlags& flags) {
  command.add_option("--registry", flags.url, "The registry or etcd")
      ->type_name("URL[,URL...]")
      ->envname("RINGSHIFT_REGISTRY")
      ->capture_default_str();
  command.add_option("--cluster", flags.cluster, "The cluster's name")->envname("RINGSHIFT_CLUSTER")->required();
  command.add_option("--namespace", flags.name_space, "The cluster's namespace")
      ->envname("RINGSHIFT_NAMESPACE")
      ->capture_default_str();
}

}  // namespace ringshift::cli
