// What one member says of itself, asked over one connection with commands that change nothing: those that
// write are sent in a form that cannot (SET with XX of a key that is not there, RESTORE of what is no dump).
//
// The connection is named as ours, so that it does not keep a resize from starting. Blocking: about 25 round
// trips, and one for each page of the sample. Failure: a member that is away has `unreachable` set and the
// rest empty; a command that is refused is in `refused`.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/access.h"
#include "resize/members.h"
#include "ringshift/snapshot.h"

namespace ringshift::doctor {

inline constexpr int kSamplePages = 10;  // Of a thousand keys each.
inline constexpr std::size_t kExamplesKept = 3;

struct Refused {
  std::string command, error;
};

struct MemberFacts {
  topology::Member member;
  std::string unreachable;  // "" when it answered.
  double round_trip_ms = 0;
  std::string info;              // The text of INFO.
  std::vector<Refused> refused;  // Of what a resize needs.
  std::string write_refused;     // OOM, MISCONF, READONLY ...: it takes no writes of anybody.
  std::string save;              // CONFIG GET save; "" also when that is not allowed.
  std::optional<std::vector<resize::ClientEntry>> clients;
  std::optional<std::int64_t> clock_ahead_ms;  // Of this machine's.
  std::optional<std::string> stamp;            // "": it has none.
  std::uint64_t keys = 0;                      // All of them.
  std::uint64_t keys_sampled = 0, keys_elsewhere = 0;
  std::vector<std::string> examples;  // Of keys that belong elsewhere.
};

// `snapshot` null: nothing is known of placement, and no keys are sampled.
[[nodiscard]] MemberFacts examine(const topology::Member& member, const topology::Snapshot* snapshot,
                                  std::shared_ptr<const backend::MemberAccess> access);

// All of them, in order; a bounded number at a time.
[[nodiscard]] std::vector<MemberFacts> examine_all(
    const std::vector<topology::Member>& members, const topology::Snapshot* snapshot,
    const std::shared_ptr<const backend::MemberAccess>& access);

// Whether an error says that the server takes no writes now (full, disk, replica), rather than that we may
// not send the command.
[[nodiscard]] bool refuses_all_writes(std::string_view error) noexcept;

}  // namespace ringshift::doctor
