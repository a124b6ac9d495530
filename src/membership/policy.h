// Who may join a cluster and who must leave it, by the spec's `discovery`.
//
// Pure: what is seen and the time go in, what is to be done comes out; what must be remembered between two
// calls is in Memory. Time is a steady clock's, and only time that was watched counts: a call that comes late
// counts as kLongestLook, so neither a jump of the clock nor a pause of the controller makes anybody leave.
//
// Invariants (tests/unit/membership): at most one change at a time, and none within the cool-down of the last
// one or while a resize runs; nobody leaves before he was seen gone for all of `after`, while more than
// `at_most` are gone, while the source is in trouble, or below `floor`; nobody joins who does not match, is
// drained or retired, or is not steadily ready. A member whose instance was never seen is not gone: it is no
// business of the policy. Cost: O(members + instances), once a second.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "discovery/source.h"
#include "ringshift/discovery.h"
#include "ringshift/topology.h"

namespace ringshift::membership {

inline constexpr base::Duration kLongestLook = std::chrono::seconds(5);
inline constexpr base::Duration kSteady =
    std::chrono::seconds(10);  // Ready for so long, or for the cool-down.

// What is kept from one call to the next. A new leader begins with `seen` alone.
struct Memory {
  std::set<std::string> seen;                      // Members whose instance was ready once.
  std::map<std::string, base::Duration> gone_for;  // Of those, who is gone, and for how long.
  std::map<std::string, base::Duration> ready_for;
  std::optional<base::TimePoint> looked_at;
  base::Duration quiet_for{0};  // Since the last change, or since we lead.
};

struct Situation {
  const topology::DiscoverySpec& discovery;
  const topology::Spec& spec;  // In force.
  bool resizing = false;       // Or a request waits.
  bool source_well = true;     // It answered last time.
  const std::vector<discovery::Instance>& instances;
  const std::set<std::string>& drained;  // By an operator's word.
};

struct Candidate {
  topology::Member member;  // As it would be: weight and zone by the spec's rules.
  discovery::InstanceState state = discovery::InstanceState::ready;
  std::string why_not;    // Why no operator can admit it as it is; "" when he can.
  std::string waits_for;  // Why it is not admitted by itself now; "" when it is.
  bool operator==(const Candidate&) const = default;
};

struct Gone {
  std::string id;
  base::Duration since{0};
  std::string waits_for;  // Why it does not leave now; "" when it does.
};

struct Decision {
  std::vector<Candidate> candidates;  // By id.
  std::vector<Gone> gone;             // By id.
  std::optional<topology::Member> admit;
  std::optional<std::string> remove;  // Never both.
};

[[nodiscard]] Decision decide(const Situation& now, base::TimePoint at, Memory& memory);
// A change was made, or was tried and refused: the cool-down begins.
void changed(Memory& memory);

// What `instance` would be as a member.
[[nodiscard]] topology::Member as_member(const topology::DiscoverySpec& discovery,
                                         const discovery::Instance& instance);
// Why `instance` may not become a member at all; "" when it may.
[[nodiscard]] std::string unfit(const Situation& now, const discovery::Instance& instance);

}  // namespace ringshift::membership
