// Members that are gone for good: which of them a resize can do without, and in how small steps.
//
// Nothing is ever asked of a lost member: no stamp, no fence, no transfer. Its keys are given up slice by
// slice: HOLD, as for every change of owner, and then their destination has them, empty. So a lost member may
// only be a *source*: what must come to it, or be kept by it, has no home. docs/protocol.md says why this is
// safe when it was not gone after all. Pure.
#pragma once
#include <string>
#include <vector>

#include "ringshift/topology.h"

namespace ringshift::resize {

inline constexpr double kLostStepPercent =
    1;  // So much of the keyspace at once, unless other steps are asked.

[[nodiscard]] bool is_lost(const topology::Topology& topology, const std::string& member);
// Of all that a resize deals with, those that something can be asked of. Without a resize: all members.
[[nodiscard]] std::vector<topology::Member> living_members(const topology::Topology& topology);
[[nodiscard]] std::vector<topology::Member> without_lost(std::vector<topology::Member> members,
                                                         const std::vector<std::string>& lost);

// Whether a resize can be ended without `lost`: forward when no key has to come to one of them, back when
// none has come from one of them. Else the reason, for an operator.
[[nodiscard]] Status check_forward(const topology::Topology& topology, const std::vector<std::string>& lost);
[[nodiscard]] Status check_back(const topology::Topology& topology, const std::vector<std::string>& lost,
                                bool opened);

// `steps` as far as they are in `done` or `active`, and from there on in steps of kLostStepPercent.
[[nodiscard]] std::vector<double> finer_steps(const std::vector<double>& steps,
                                              const topology::SliceSet& touched);

// Sorted, each once, as the topology document has them.
[[nodiscard]] std::vector<std::string> sorted_ids(std::vector<std::string> ids);

}  // namespace ringshift::resize
