// Who may join a cluster and who must leave it, by the spec's `discovery`.
//
// Pure: what is seen and the time go in, what is to be done comes out; what must be remembered between two
// calls is in Memory. Time is a steady clock's, and only time that was watched counts: a call that comes late
// counts as kLongestLook, so neither a jump of the clock nor a pause of the controller makes anybody leave.
//
// Invariants (tests/unit/membership): at most one change at a time, and none within the cool-down of the last
// one or while a resize runs; nobody leaves before he was seen gone for all of `after`, while more than
// `at_most` are gone, while the source is in trouble, or below `floor`; nobody joins who does not match, is
// drained or retired, or is not steadily ready; nobody is ejected where consistency is strict, nobody more
// while more than `at_most` are gone or the source is in trouble, and never below `floor`. A member whose
// instance was never seen is not gone: it is no business of the policy. Cost: O(members + instances), once a
// second.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "discovery/source.h"
#include "ringshift/discovery.h"
#include "ringshift/topology.h"

namespace ringshift::membership {

inline constexpr base::Duration kLongestLook = std::chrono::seconds(5);
inline constexpr base::Duration kSteady =
    std::chrono::seconds(10);                         // Ready for so long, or for the cool-down.
inline constexpr std::uint64_t kRefusalsKept = 1024;  // Older ones are forgotten.

// What is kept from one call to the next. A new leader begins with `seen` alone.
struct Memory {
  std::set<std::string> seen;                      // Members whose instance was ready once.
  std::map<std::string, base::Duration> gone_for;  // Of those, who is gone, and for how long.
  std::map<std::string, base::Duration> ready_for;
  std::set<std::string> ejected;  // Members whose keys the next ones take; a new leader knows these, too.
  std::optional<base::TimePoint> looked_at;
  base::Duration quiet_for{0};  // Since the last change, or since we lead.
  // Whose change was refused, and when in the order of refusals: everybody else comes before him.
  std::map<std::string, std::uint64_t> refused;
  std::uint64_t refusals = 0;
};

struct Situation {
  const topology::DiscoverySpec& discovery;
  const topology::Spec& spec;  // In force.
  bool resizing = false;       // Or a request waits.
  bool source_well = true;     // It answered last time.
  const std::vector<discovery::Instance>& instances;
  const std::set<std::string>& drained;  // By an operator's word.
};

// Why something is not done: a word for programs (kReasonCodes) and a sentence for people.
struct Reason {
  std::string code, text;
  [[nodiscard]] bool empty() const noexcept { return text.empty(); }
};
inline constexpr std::string_view kReasonCodes[] = {
    // Why an instance can be no member.
    "id_invalid", "id_no_match", "address_invalid", "address_no_match", "namespace_no_match", "protocol",
    "retired", "address_taken",
    // What one that can be waits for.
    "operator", "drained", "not_ready", "member_gone", "not_steady", "one_at_a_time",
    // What a member that is gone waits for.
    "never", "too_many", "floor", "counting",
    // What both wait for.
    "source", "resize", "cooldown"};

struct Candidate {
  topology::Member member;  // As it would be: weight and zone by the spec's rules.
  discovery::InstanceState state = discovery::InstanceState::ready;
  std::string why_not;    // Why no operator can admit it as it is; "" when he can.
  std::string waits_for;  // Why it is not admitted by itself now; "" when it is.
  std::string code;       // Of `why_not`, else of `waits_for`.
  bool operator==(const Candidate&) const = default;
};

struct Gone {
  std::string id;
  base::Duration since{0};
  std::string waits_for;                    // Why it does not leave now; "" when it does.
  std::string code;                         // Of `waits_for`.
  std::optional<base::Duration> leaves_in;  // At the earliest; nullopt: not by itself, or nobody knows.
  bool ejected = false;                     // The next members take its keys meanwhile.
};

// A member whose instance says that it is somewhere else: routers still ask the member's address.
struct Elsewhere {
  std::string id, member_address, instance_address;
  bool operator==(const Elsewhere&) const = default;
};

struct Decision {
  std::vector<Candidate> candidates;  // By id.
  std::vector<Gone> gone;             // By id.
  std::vector<Elsewhere> elsewhere;   // By id.
  base::Duration cooldown_left{0};    // Before the policy may change something; 0 while a resize runs.
  std::optional<topology::Member> admit;
  std::optional<std::string> remove;  // Never both.
  std::set<std::string> ejected;      // Whose keys the next members take, as of now.
};

[[nodiscard]] Decision decide(const Situation& now, base::TimePoint at, Memory& memory);
// What was decided about `id` was done, or was tried and refused: the cool-down begins. One who is refused
// again and again does not stand in the way of the others, who have their turn before him.
void changed(Memory& memory, const std::string& id, bool done);

// What `instance` would be as a member.
[[nodiscard]] topology::Member as_member(const topology::DiscoverySpec& discovery,
                                         const discovery::Instance& instance);
// Members' ids by their addresses, as topology::canonical_address() spells them.
using MembersAt = std::unordered_map<std::string, std::string_view>;
// Why `instance` may not become a member at all; empty when it may.
[[nodiscard]] Reason unfit(const Situation& now, const discovery::Instance& instance,
                           const MembersAt& members);

}  // namespace ringshift::membership
