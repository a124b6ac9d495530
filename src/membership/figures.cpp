#include "membership/figures.h"

#include <algorithm>

#include "telemetry/exposition.h"

namespace ringshift::membership {

using discovery::InstanceState;

void count(Figures& figures, const Situation& situation, const Decision& decision) {
  const auto in_state = [&](InstanceState state) {
    return static_cast<std::uint64_t>(
        std::ranges::count(situation.instances, state, &discovery::Instance::state));
  };
  figures.ready = in_state(InstanceState::ready);
  figures.unhealthy = in_state(InstanceState::unhealthy);
  figures.draining = in_state(InstanceState::draining);
  figures.candidates = decision.candidates.size();
  figures.impossible = static_cast<std::uint64_t>(
      std::ranges::count_if(decision.candidates, [](const Candidate& c) { return !c.why_not.empty(); }));
  figures.gone = decision.gone.size();
}

void collect(telemetry::Exposition& page, const Figures& figures, const std::string& cluster) {
  const telemetry::Exposition::Labels of{{"cluster", cluster}};
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  constexpr const char* kChanges = "ringshift_membership_changes_total";
  constexpr const char* kChangesHelp = "What the policy did: members admitted, removed, and requests refused";
  page.counter(kChanges, kChangesHelp, number(figures.admitted),
               {{"cluster", cluster}, {"kind", "admitted"}});
  page.counter(kChanges, kChangesHelp, number(figures.removed), {{"cluster", cluster}, {"kind", "removed"}});
  page.counter(kChanges, kChangesHelp, number(figures.refused), {{"cluster", cluster}, {"kind", "refused"}});
  if (!figures.in_force) return;
  page.gauge("ringshift_membership_source_trouble",
             "1 while the source does not answer, or its list is held: the policy changes nothing meanwhile",
             figures.trouble ? 1 : 0, of);
  if (figures.age) {
    page.gauge("ringshift_membership_source_age_seconds",
               "How old the list of instances is; 0 while its source answers and nothing is held",
               std::chrono::duration<double>(*figures.age).count(), of);
  }
  page.gauge("ringshift_membership_source_held",
             "1 while a list that is empty or lost more than half is held until that stays so",
             figures.held ? 1 : 0, of);
  constexpr const char* kInstances = "ringshift_membership_instances";
  constexpr const char* kInstancesHelp = "Instances that the source shows, by state";
  page.gauge(kInstances, kInstancesHelp, number(figures.ready), {{"cluster", cluster}, {"state", "ready"}});
  page.gauge(kInstances, kInstancesHelp, number(figures.unhealthy),
             {{"cluster", cluster}, {"state", "unhealthy"}});
  page.gauge(kInstances, kInstancesHelp, number(figures.draining),
             {{"cluster", cluster}, {"state", "draining"}});
  page.gauge("ringshift_membership_candidates", "Instances that are no members", number(figures.candidates),
             of);
  page.gauge("ringshift_membership_candidates_impossible", "Of those, who cannot become one as it is",
             number(figures.impossible), of);
  page.gauge("ringshift_membership_gone_members", "Members whose instance was ready once and is not any more",
             number(figures.gone), of);
}

}  // namespace ringshift::membership
