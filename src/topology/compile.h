// A placement and its members made ready for lookups.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "placement/peers/server.h"
#include "placement/peers/settings.h"
#include "placement/placement.h"
#include "ringshift/topology.h"

namespace ringshift::topology {

// `index_of` gives what the placement answers for an id. REQUIRES: validated.
[[nodiscard]] placement::Placement compile_placement(
    const Placement& placement, const std::vector<Member>& members,
    const std::function<placement::MemberIndex(std::string_view)>& index_of);

// A placement that was compiled before, and from what. `index_of` gave what it answers
// for an id, and kNoMember for an unknown one.
struct Former {
  std::shared_ptr<const placement::Placement> compiled;
  const Placement& placement;
  const std::vector<Member>& members;
  std::function<placement::MemberIndex(std::string_view)> index_of;
};

// The same placement as compile_placement(): the former's own where nothing changed, a ring merged out of the
// former's where few members did, else compiled anew.
[[nodiscard]] std::shared_ptr<const placement::Placement> compile_from(
    std::span<const Former> formers, const Placement& placement, const std::vector<Member>& members,
    const std::function<placement::MemberIndex(std::string_view)>& index_of);

// The members and options as a peer's placement takes them.
[[nodiscard]] placement::peers::Options peer_options(const Placement& placement);
[[nodiscard]] std::vector<placement::peers::Server> peer_servers(
    const std::vector<Member>& members,
    const std::function<placement::MemberIndex(std::string_view)>& index_of);

}  // namespace ringshift::topology
