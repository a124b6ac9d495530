// The membership policy beside a controller: what `controller` and `serve` start.
#pragma once
#include <memory>
#include <string>

#include "admin/listener.h"
#include "cli/registry_flags.h"
#include "membership/runner.h"

namespace ringshift::cli {

// Runs until it is destroyed. `coordinator` must outlive it.
[[nodiscard]] std::unique_ptr<membership::Runner> start_membership(
    coord::Coordinator& coordinator, const RegistryFlags& registry, std::string controller_id,
    std::shared_ptr<const backend::MemberAccess> access);

// Its metrics, on the admin port; it must outlive the listener. A null listener: nothing.
void show_membership(admin::Listener* listener, const membership::Runner& runner, const std::string& cluster);

}  // namespace ringshift::cli
