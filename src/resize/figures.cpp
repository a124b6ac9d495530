#include "resize/figures.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "coord/router_record.h"
#include "resize/cluster_view.h"
#include "telemetry/exposition.h"

namespace ringshift::resize {
namespace {

constexpr std::array<std::string_view, 7> kStates = {"idle",         "preparing", "running", "paused",
                                                     "rolling_back", "finished",  "failed"};
constexpr std::array<std::string_view, 3> kWaits = {"pause", "soak", "window"};
constexpr std::array<std::string_view, 4> kPhases = {"prep", "hold", "dual", "new"};

double whole(std::uint64_t n) { return static_cast<double>(n); }

bool same_progress(const ResizeStatus& a, const ResizeStatus& b) {
  return a.state == b.state && a.phase == b.phase && a.step == b.step && a.id == b.id &&
         a.keys_moved == b.keys_moved;
}

}  // namespace

void ControllerFigures::told(const ResizeStatus& status, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (!status_ || !same_progress(*status_, status)) moved_on_ = now;
  status_ = status;
}

void ControllerFigures::held(double milliseconds) {
  const std::lock_guard lock(mutex_);
  holds_.add(static_cast<std::int64_t>(milliseconds * 1000));
  hold_seconds_ += milliseconds / 1000;
}

void ControllerFigures::registry_answered(TimePoint now) {
  const std::lock_guard lock(mutex_);
  registry_answered_ = now;
}

void ControllerFigures::leads(bool yes) {
  const std::lock_guard lock(mutex_);
  leads_ = yes;
  if (!yes) status_.reset();
}

std::optional<double> ControllerFigures::registry_age_seconds(TimePoint now) const {
  const std::lock_guard lock(mutex_);
  if (!registry_answered_) return std::nullopt;
  return std::max(0.0, std::chrono::duration<double>(now - *registry_answered_).count());
}

void ControllerFigures::collect(telemetry::Exposition& page, const std::string& cluster,
                                TimePoint now) const {
  const std::optional<double> age = registry_age_seconds(now);
  telemetry::TimesTotals holds{};
  double hold_seconds = 0;
  bool leading = false;
  std::optional<ResizeStatus> status;
  double still = 0;
  {
    const std::lock_guard lock(mutex_);
    holds_.add_to(holds);
    hold_seconds = hold_seconds_;
    leading = leads_;
    status = status_;
    still = std::max(0.0, std::chrono::duration<double>(now - moved_on_).count());
  }
  page.gauge("ringshift_controller_leading", "Whether this controller leads its cluster", leading ? 1 : 0,
             {{"cluster", cluster}});
  if (age) {
    page.gauge("ringshift_controller_registry_age_seconds",
               "How long ago the registry answered this controller; about a second is usual", *age,
               {{"cluster", cluster}});
  }
  page.histogram(
      "ringshift_resize_hold_seconds",
      "How long commands of the keys concerned waited at a step, of the steps that this process led", holds,
      hold_seconds, {{"cluster", cluster}});
  if (leading && status) collect_resize(page, cluster, *status, still);
}

void ControllerFigures::collect_resize(telemetry::Exposition& page, const std::string& cluster,
                                       const ResizeStatus& s, double age_seconds) const {
  const telemetry::Exposition::Labels of = {{"cluster", cluster}};
  for (const std::string_view state : kStates) {
    page.gauge("ringshift_resize_state", "1 for the state of the last resize, 0 for the others",
               s.state == state ? 1 : 0, {{"cluster", cluster}, {"state", state}});
  }
  for (const std::string_view phase : kPhases) {
    page.gauge("ringshift_resize_phase", "1 for the phase of the present step, 0 for the others",
               s.phase == phase ? 1 : 0, {{"cluster", cluster}, {"phase", phase}});
  }
  for (const std::string_view reason : kWaits) {
    page.gauge("ringshift_resize_waiting",
               "1 for what the next step waits for as the operator wished, 0 for the others",
               s.waiting == reason ? 1 : 0, {{"cluster", cluster}, {"reason", reason}});
  }
  const bool under_way = s.state != "idle" && s.state != "finished" && s.state != "failed";
  page.gauge("ringshift_resize_step", "The present step of the last resize, from 1", whole(s.step), of);
  page.gauge("ringshift_resize_steps", "Steps of the last resize", whole(s.steps), of);
  page.gauge(
      "ringshift_resize_unchanged_seconds",
      "How long a resize has been under way without moving a key or coming to another phase; 0 when none "
      "is under way",
      under_way ? age_seconds : 0, of);
  page.counter("ringshift_resize_keys_moved_total", "Keys that the last resize moved, by mover and clients",
               whole(s.keys_moved), of);
  page.counter("ringshift_resize_bytes_moved_total", "Bytes of payload that the last resize moved",
               whole(s.bytes_moved), of);
  page.gauge("ringshift_resize_keys_left", "Keys that are still to be moved, an estimate",
             under_way ? whole(s.keys_to_move - std::min(s.keys_to_move, s.keys_moved)) : 0, of);
  page.gauge("ringshift_resize_keys_per_second", "Keys that are moved a second",
             under_way ? s.keys_per_second : 0, of);
  page.gauge("ringshift_resize_rate_limit_keys_per_second", "Keys that may be moved a second as configured",
             whole(s.rate), of);
  page.gauge("ringshift_resize_rate_in_force_keys_per_second",
             "Keys that the mover may move a second now, with regard to members and origin; 0 when it rests",
             s.rate_in_force, of);
  if (under_way && s.keys_per_second > 0) {
    page.gauge("ringshift_resize_eta_seconds",
               "When all keys are moved at the present rate; absent when unknown", s.eta_seconds, of);
  }
  page.counter("ringshift_resize_fenced_connections_total",
               "Connections that were killed because their router did not acknowledge a step",
               whole(s.fences), of);
  page.counter("ringshift_resize_mover_retries_total",
               "Batches and passes begun again because a member did not answer", whole(s.retries), of);
  page.counter("ringshift_resize_keys_verified_total", "Copies compared with their originals",
               whole(s.keys_verified), of);
  page.gauge("ringshift_resize_big_keys_waiting",
             "Keys of this step above limits.big_key_bytes, not moved yet", whole(s.big_keys_waiting), of);
  page.gauge("ringshift_resize_lost_members", "Members that the resize gives up", whole(s.lost.size()), of);
  page.gauge("ringshift_resize_last_error",
             "1 while the status has a last error: `ringshift resize status` says it",
             s.last_error.empty() ? 0 : 1, of);
  std::vector<PairProgress> pairs = s.pairs;
  std::ranges::stable_sort(pairs, [](const auto& a, const auto& b) { return a.moved > b.moved; });
  if (pairs.size() > kPairsShown) pairs.resize(kPairsShown);
  for (const PairProgress& pair : pairs) {
    const telemetry::Exposition::Labels labels = {{"cluster", cluster}, {"from", pair.from}, {"to", pair.to}};
    page.counter("ringshift_resize_pair_keys_moved_total",
                 "Keys that the mover moved from one member to another", whole(pair.moved), labels);
    page.counter("ringshift_resize_pair_bytes_moved_total",
                 "Bytes that the mover moved from one member to another", whole(pair.bytes), labels);
    page.gauge(
        "ringshift_resize_pair_keys_left",
        "Keys that are still to go from one member to another, an estimate; clients may move some of them",
        under_way ? whole(pair.left) : 0, labels);
  }
}

void collect_routers(telemetry::Exposition& page, const std::string& cluster, const ClusterView& view,
                     const coord::ClusterKeys& keys) {
  const std::optional<coord::KeyValue> topology = view.get(keys.topology());
  if (!topology) return;
  std::size_t routers = 0, behind = 0, digests = 0;
  std::map<coord::Revision, std::set<std::string>> seen;
  for (const auto& [key, kv] : view.under(keys.routers())) {
    const auto record = coord::parse_router_record(kv.value);
    if (!record) continue;
    ++routers;
    if (record->revision < topology->mod_revision) ++behind;
    if (!record->digest.empty()) seen[record->revision].insert(record->digest);
  }
  for (const auto& [revision, different] : seen) digests = std::max(digests, different.size());
  const telemetry::Exposition::Labels of = {{"cluster", cluster}};
  page.gauge("ringshift_cluster_topology_revision", "The revision of the topology in the registry",
             static_cast<double>(topology->mod_revision), of);
  page.gauge("ringshift_cluster_routers", "Routers that are registered", static_cast<double>(routers), of);
  page.gauge("ringshift_cluster_routers_behind", "Routers that have not applied the registry's topology yet",
             static_cast<double>(behind), of);
  page.gauge(
      "ringshift_cluster_digests",
      "Different digests that routers have of one topology version: more than 1 means that they place keys "
      "differently",
      static_cast<double>(digests), of);
}

}  // namespace ringshift::resize
