// The arithmetic of a drill: from seconds to means, worst seconds, standard errors, the time to recover, and
// whether a promise was kept. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringshift::drill {

struct Second {
  std::uint64_t requests = 0, gets = 0, hits = 0, errors = 0, shed = 0, cache_errors = 0;
  std::uint64_t origin_asked = 0, origin_timeouts = 0, updates = 0, lost = 0, stale = 0, late = 0;
  double p99_ms = 0, origin_p99_ms = 0;

  // No GET at all counts as none answered.
  [[nodiscard]] double hit_rate() const {
    return gets == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(gets);
  }
};

struct Span {
  std::size_t seconds = 0;
  double hit_rate = 0, hit_rate_min = 0;  // Over all, and of the lowest second. 0 without a second.
  double gets_per_second = 0;
  double origin_qps = 0;
  std::uint64_t origin_max = 0;  // In the worst second.
  std::uint64_t requests = 0, errors = 0, shed = 0, cache_errors = 0, origin_timeouts = 0, updates = 0,
                lost = 0, stale = 0, late = 0;
};
[[nodiscard]] Span summary(std::span<const Second> seconds);

// Of a share p counted over n draws: sqrt(p (1 - p) / n).
[[nodiscard]] double standard_error(double p, double n);

inline constexpr double kHitRateSlack = 0.01, kStandardErrors = 3;
inline constexpr double kOriginMeanSlack = 1.05, kOriginWorstSlack = 1.10;

// The lowest hit rate of one second that still counts as steady.
[[nodiscard]] double hit_rate_floor(const Span& steady);
// The most queries in one second that still count as steady: a tenth above, and three times the square root
// that chance allows.
[[nodiscard]] double origin_ceiling(const Span& steady);

struct Recovery {
  double seconds = 0;     // Until the last second that was not steady has passed; 0: there was none.
  bool recovered = true;  // The last kSteadySeconds were steady.
};
inline constexpr std::size_t kSteadySeconds = 3;
// `after` begins with the change.
[[nodiscard]] Recovery recovery(const Span& steady, std::span<const Second> after);

// How quiet the machine was.
struct Quiet {
  double others = 0;  // Processor time of other programs, as a share of the machine.
  double stolen = 0;  // By the hypervisor.
  double late = 0;    // Of the requests in seconds without a change, those begun late.
};
// Why the machine was too noisy to judge by; empty when it was not.
[[nodiscard]] std::vector<std::string> noise(const Quiet& quiet);

// kept, broken, or not judged: a figure that chance or a busy machine may have spoilt.
enum class Judged : std::uint8_t { kept, broken, unjudged };
struct Promise {
  std::string name;  // For programs.
  std::string text;  // With the figures.
  Judged judged = Judged::kept;
};

struct PromiseInput {
  Span steady, during;
  Span control_steady, control;  // The same seconds of the control run. Empty: there was none.
  double hit_rate_min_after = 1;
  std::uint64_t lost_writes = 0, stale_reads = 0, keys_misplaced = 0;
  bool noisy = false;
  bool keeps_every_key = true;  // False: a member died with its keys, and no hit rate can be kept.
};
// What ringshift promises about a resize.
[[nodiscard]] std::vector<Promise> promises(const PromiseInput& input);

// One of eight bars for each value, between `low` and `high`.
[[nodiscard]] std::string sparkline(std::span<const double> values, double low, double high);

}  // namespace ringshift::drill
