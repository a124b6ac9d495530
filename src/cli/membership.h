// The membership policy beside a controller: what `controller` and `serve` start.
#pragma once
#include <memory>
#include <string>

#include "cli/registry_flags.h"
#include "membership/runner.h"

namespace ringshift::cli {

// Runs until it is destroyed. `coordinator` must outlive it.
[[nodiscard]] std::unique_ptr<membership::Runner> start_membership(
    coord::Coordinator& coordinator, const RegistryFlags& registry, std::string controller_id,
    std::shared_ptr<const backend::MemberAccess> access);

}  // namespace ringshift::cli
