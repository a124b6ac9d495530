// What the leading controller makes of the instances it sees: the value of the `membership` key, for
// `ringshift member candidates` and for the leader after this one. Pure values.
#pragma once
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
  std::string source;      // "registry", "file /etc/cache.yaml"
  std::string trouble;     // "" while the source is well.
  std::string last_error;  // Why the last change by policy was refused; "" when it was not.
  bool admit_auto = false;
  std::set<std::string> seen;
  std::vector<Candidate> candidates;
  struct GoneMember {
    std::string id;
    std::string waits_for;
    bool operator==(const GoneMember&) const = default;
  };
  std::vector<GoneMember> gone;
  std::uint64_t candidates_more = 0;  // Beyond kCandidatesTold.
};
[[nodiscard]] std::string to_json(const Report& report);
[[nodiscard]] Result<Report> parse_report(std::string_view json);

}  // namespace ringshift::membership
