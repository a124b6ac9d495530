// What a controller shows to Prometheus: whether it leads, the resize as it tells it, and the routers that it
// sees.
//
// The leader writes after each status it makes; a scrape reads from another thread. Figures that only the
// leader has are absent while another leads. Thread-safe. Cost: a copy of the status for each scrape.
#pragma once
#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "coord/keys.h"
#include "resize/status.h"
#include "telemetry/times.h"

namespace ringshift::telemetry {
class Exposition;
}

namespace ringshift::resize {

class ClusterView;

class ControllerFigures {
 public:
  static constexpr std::size_t kPairsShown = 1000;  // The largest.
  using TimePoint = std::chrono::steady_clock::time_point;

  // The leader's thread.
  void told(const ResizeStatus& status, TimePoint now);
  void held(double milliseconds);
  // The controller's threads.
  void registry_answered(TimePoint now);
  void leads(bool yes);

  // How long ago the registry answered; nullopt: never.
  [[nodiscard]] std::optional<double> registry_age_seconds(TimePoint now) const;
  void collect(telemetry::Exposition& page, const std::string& cluster, TimePoint now) const;

 private:
  void collect_resize(telemetry::Exposition& page, const std::string& cluster, const ResizeStatus& s,
                      double age_seconds) const;

  mutable std::mutex mutex_;
  // Guarded by mutex_:
  bool leads_ = false;
  std::optional<TimePoint> registry_answered_;
  std::optional<ResizeStatus> status_;
  TimePoint moved_on_{};  // When the state, the phase, the step or the keys moved last changed.
  double hold_seconds_ = 0;
  telemetry::Times holds_;
};

// The routers of the cluster as their records in the registry say: how many, how many behind, and how many
// different digests they have for one version.
void collect_routers(telemetry::Exposition& page, const std::string& cluster, const ClusterView& view,
                     const coord::ClusterKeys& keys);

}  // namespace ringshift::resize
