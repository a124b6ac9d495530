// Whether a condition of `--abort-if` holds, by the figures that routers report once a second.
//
// hit_rate and origin_qps are taken over all routers and a sliding window of kFigureWindow; p99_ms is the
// worst router's last report. A figure that is not known (too few lookups, no report since) makes no
// condition hold: a registry that is away must not roll back a resize. A condition must hold in
// kSecondsThatTell looks, a second apart, one after the other.
//
// One thread. Time is given. Cost: O(routers) a look, kMaxLooks looks kept.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coord/coordinator.h"
#include "resize/controls.h"

namespace ringshift::resize {

inline constexpr std::chrono::seconds kFigureWindow{10};
inline constexpr std::chrono::milliseconds kLookEvery{1000};
inline constexpr int kSecondsThatTell = 3;
inline constexpr std::uint64_t kLookupsForAHitRate = 100;  // Within the window.
inline constexpr std::chrono::seconds kReportAge{5};       // An older p99 is not known.

// What routers did lately; a figure that is not known is absent.
struct RouterFigures {
  std::optional<double> hit_rate, p99_ms, origin_qps;
};

class AbortWatch {
 public:
  // Whether look() would look: that saves its caller the figures.
  [[nodiscard]] bool due(base::TimePoint now) const noexcept {
    return !begun_ || now - looked_at_ >= kLookEvery;
  }
  // `routers`: every routers/<id> as it stands. `origin`: the registry's key `origin`, in which an operator's
  // program may write the origin's queries a second; absent, the routers' misses count.
  // True at most once in kLookEvery: only then figures() and broken() are new.
  bool look(base::TimePoint now, const std::map<std::string, coord::KeyValue>& routers,
            const std::optional<coord::KeyValue>& origin, const std::vector<Condition>& conditions);

  [[nodiscard]] const RouterFigures& figures() const noexcept { return figures_; }
  // "hit_rate 0.83 < 0.9 for 3 s": the first condition that has held for long enough; "" when none has.
  [[nodiscard]] const std::string& broken() const noexcept { return broken_; }

 private:
  static constexpr std::size_t kMaxLooks = 32;
  struct Look {
    base::TimePoint at;
    std::uint64_t hits = 0, misses = 0;  // Since the look before.
  };
  struct Router {
    std::uint64_t hits = 0, misses = 0;
    coord::Revision revision = 0;
    base::TimePoint reported_at{};
    double p99_ms = -1;
  };
  void count(base::TimePoint now, const std::map<std::string, coord::KeyValue>& routers);
  void count_origin(base::TimePoint now, const std::optional<coord::KeyValue>& origin);
  [[nodiscard]] std::optional<double> value(Condition::Figure figure) const;

  bool begun_ = false;
  base::TimePoint looked_at_{};
  std::deque<Look> looks_;
  std::map<std::string, Router> routers_;
  coord::Revision origin_revision_ = 0;
  base::TimePoint origin_at_{};
  std::optional<double> origin_qps_;
  RouterFigures figures_;
  std::vector<int> held_;  // By condition: looks in a row.
  std::string broken_;
};

}  // namespace ringshift::resize
