// Rates out of the counters that routers report once a second.
//
// A report has no clock of its own: the time is when it came here. Routers also report with each topology
// that they apply, so that two reports may be milliseconds apart; a rate is taken over kShortest at least.
// Plain values; one thread. Bounds: kReportsKept reports of a router.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "coord/router_record.h"

namespace ringshift::admin {

using SteadyTime = std::chrono::steady_clock::time_point;

struct RouterRates {
  double requests = 0, hits = 0, misses = 0, errors = 0, bytes_in = 0, bytes_out = 0,
         keys_pulled = 0;  // A second.
};

struct MemberRates {
  double requests = 0, hits = 0, misses = 0, errors = 0, timeouts = 0;  // A second, of all routers.
  std::uint64_t in_flight = 0;
  double p99_ms = -1;  // The highest of the routers; -1: not known.
};

class RouterHistory {
 public:
  static constexpr std::size_t kReportsKept = 16;
  static constexpr std::chrono::milliseconds kShortest{800}, kSmooth{2600}, kStale{5000};
  using Record = std::shared_ptr<const coord::RouterRecord>;

  void add(Record record, SteadyTime at);
  [[nodiscard]] const coord::RouterRecord& last() const { return *reports_.back().record; }
  [[nodiscard]] bool empty() const noexcept { return reports_.empty(); }
  // Whether it has reported of late.
  [[nodiscard]] bool fresh(SteadyTime now) const;
  // Over about `window`; nullopt before there are two reports so far apart, or when the last one is stale.
  [[nodiscard]] std::optional<RouterRates> rates(SteadyTime now, std::chrono::milliseconds window) const;
  // Adds its part of each member's rates.
  void add_members(SteadyTime now, std::map<std::string, MemberRates>& members) const;

 private:
  struct Report {
    SteadyTime at;
    Record record;
  };
  // The report that a rate over `window` begins with; null when there is none.
  [[nodiscard]] const Report* base_of(std::chrono::milliseconds window) const;

  std::deque<Report> reports_;
};

}  // namespace ringshift::admin
