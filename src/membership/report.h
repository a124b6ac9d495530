// What the leading controller makes of the instances it sees: the value of the `membership` key, for
// `ringshift member candidates`, the admin API, `ringshift doctor`, and the leader after this one. Pure
// values.
//
// Times are Unix milliseconds of the leader's clock, for people: the policy itself counts on a steady clock.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "membership/policy.h"
#include "ringshift/error.h"

namespace ringshift::membership {

inline constexpr std::size_t kCandidatesTold =
    1000;  // A registry's value is bounded, a source's list is not.

struct Report {
  std::string source;                 // "registry", "file /etc/cache.yaml"
  std::string trouble;                // "" while the source is well.
  std::int64_t trouble_since_ms = 0;  // When the list that stands was what is, last; 0 while it is.
  bool held = false;                  // The trouble: the source answers, and the guard does not believe it.
  std::string last_error;             // Why the last change by policy was refused; "" when it was not.
  bool admit_auto = false;
  // The last change that the policy made, or was refused; `member` is "" before the first one.
  struct Change {
    std::string member;
    bool joins = false;  // Else it leaves.
    std::int64_t at_ms = 0;
    bool operator==(const Change&) const = default;
  } last_change;
  std::int64_t cooldown_until_ms = 0;  // 0: it is over, or a resize runs.
  std::set<std::string> seen;
  std::vector<Candidate> candidates;
  struct GoneMember {
    std::string id;
    std::string waits_for, code;    // As Gone's.
    std::int64_t since_ms = 0;      // 0: told by a leader that did not say.
    std::int64_t leaves_at_ms = 0;  // At the earliest; 0: not by itself, or nobody knows.
    bool ejected = false;
    bool operator==(const GoneMember&) const = default;
  };
  std::vector<GoneMember> gone;
  std::vector<Elsewhere> elsewhere;
  std::uint64_t candidates_more = 0;  // Beyond kCandidatesTold.
};
[[nodiscard]] std::string to_json(const Report& report);
// What an earlier version wrote is read, too: what it did not say is left out.
[[nodiscard]] Result<Report> parse_report(std::string_view json);

// The same without moments and what counts down: two reports of one essence say the same.
[[nodiscard]] std::string essence(Report report);

// Moments that are reckoned anew each second tremble: `before` stands unless the new one is this far off.
inline constexpr std::int64_t kSameMomentMs = 3000;
[[nodiscard]] constexpr std::int64_t same_moment(std::int64_t before, std::int64_t now) noexcept {
  const std::int64_t apart = now > before ? now - before : before - now;
  return before != 0 && now != 0 && apart < kSameMomentMs ? before : now;
}

}  // namespace ringshift::membership
