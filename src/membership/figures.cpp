#include "membership/figures.h"

#include <string_view>

#include "telemetry/exposition.h"

namespace ringshift::membership {
namespace {

constexpr std::array<std::string_view, 3> kStates = {"ready", "unhealthy", "draining"};
constexpr std::array<std::string_view, 3> kOutcomes = {"admitted", "removed", "refused"};

double as_double(std::uint64_t n) { return static_cast<double>(n); }

}  // namespace

void PolicyFigures::looked(Look look) {
  const std::lock_guard lock(mutex_);
  look_ = std::move(look);
}

void PolicyFigures::rests() {
  const std::lock_guard lock(mutex_);
  look_.reset();
}

void PolicyFigures::count(Outcome outcome) {
  const std::lock_guard lock(mutex_);
  ++changes_[static_cast<std::size_t>(outcome)];
}

void PolicyFigures::collect(telemetry::Exposition& page, const std::string& cluster) const {
  std::optional<Look> look;
  std::array<std::uint64_t, 3> changes{};
  {
    const std::lock_guard lock(mutex_);
    look = look_;
    changes = changes_;
  }
  if (!look) return;
  const telemetry::Exposition::Labels of = {{"cluster", cluster}};
  page.gauge("ringshift_membership_source_healthy", "Whether the source of instances answers",
             look->source_answers ? 1 : 0, {{"cluster", cluster}, {"source", look->source_kind}});
  page.gauge("ringshift_membership_source_age_seconds",
             "How long the list of instances that the policy goes by has not been what the source says",
             look->source_age_seconds, {{"cluster", cluster}, {"source", look->source_kind}});
  page.gauge("ringshift_membership_guard_holding",
             "1 while the source shows a list that is held for being implausible", look->held ? 1 : 0, of);
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    page.gauge("ringshift_membership_instances", "Instances in the list that the policy goes by",
               as_double(look->instances[i]), {{"cluster", cluster}, {"state", kStates[i]}});
  }
  page.gauge("ringshift_membership_candidates", "Instances that are no members", as_double(look->fit),
             {{"cluster", cluster}, {"fit", "yes"}});
  page.gauge("ringshift_membership_candidates", "Instances that are no members", as_double(look->unfit),
             {{"cluster", cluster}, {"fit", "no"}});
  page.gauge("ringshift_membership_members_gone", "Members whose instance was ready and is not any more",
             as_double(look->gone), of);
  page.gauge("ringshift_membership_members_elsewhere",
             "Members whose instance says another address than the topology has", as_double(look->elsewhere),
             of);
  for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
    page.counter("ringshift_membership_changes_total",
                 "Changes of the members by policy, that were made or refused, since the process started",
                 as_double(changes[i]), {{"cluster", cluster}, {"outcome", kOutcomes[i]}});
  }
}

}  // namespace ringshift::membership
