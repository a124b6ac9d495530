// What an operator's word does beside a resize: which candidate may be admitted, and the marks of instances
// that were drained, which no policy admits. For the command line and the admin API. Blocking: a few
// requests.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "membership/report.h"

namespace ringshift::membership {

// The candidate as the member it would be. not_found: there is no such candidate; stale: it cannot be one as
// it is, and why.
[[nodiscard]] Result<topology::Member> admissible(const Report& report, std::string_view id);

// What the leading controller told last. not_found: the cluster has no `discovery`, or nobody has looked yet.
[[nodiscard]] Result<Report> read_report(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                         std::string_view cluster);

// Says to the leading controller that the held list which `report` tells of is right, and waits until it has
// heard that. stale: nothing is held, or another list by now; retryable: no controller took it up in time.
[[nodiscard]] Status confirm_held(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                  const Report& report, std::string_view by);
// What stands in the key meanwhile: what it is about, as Report::trouble has it. "" for what is no such word.
[[nodiscard]] std::string confirmed_of(std::string_view json);

// Sets or takes away marks right before the controller is asked, and undoes that when it refuses.
class DrainMarks {
 public:
  // `by`: who says so. On failure nothing was changed.
  [[nodiscard]] Status set(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                           const std::vector<std::string>& ids, bool drained, std::string_view by);
  void undo(coord::Coordinator& coordinator);

 private:
  std::vector<coord::Op> before_;
};

}  // namespace ringshift::membership
