// The flags of every command that speaks to a registry.
#pragma once
#include "cli/registry_router.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_registry_flags(CLI::App& command, RegistryFlags& flags);  // --registry, --cluster, --namespace

}  // namespace ringshift::cli
