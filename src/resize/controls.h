// When a resize may go on, and when it must not: durations, windows of time and conditions, as operators
// write them and as the checkpoint keeps them.
//
// Pure functions but for the local time zone, which is the process's (TZ). Nothing here blocks. What cannot
// be read is refused with the value and the fix, before the resize begins.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "ringshift/error.h"

namespace ringshift::resize {

using UnixMs =
    std::int64_t;  // Milliseconds since 1970: comparable between controllers, unlike a steady clock.

[[nodiscard]] UnixMs unix_now();
// "2026-11-30T02:00:00+01:00", in the local time zone; "" for 0.
[[nodiscard]] std::string local_time(UnixMs at);

// As base::parse_duration: "60s", "1h30m".
using base::kMaxDuration;
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);
[[nodiscard]] std::string duration_text(std::chrono::milliseconds duration);  // "1m 30s"

// In which steps may begin and keys are moved. Either daily, from one minute of the local day to another
// (past midnight when `to` is the smaller one), or between two moments; 0 is no bound.
struct Window {
  int from_minute = -1, to_minute = -1;  // Both -1, or both 0..1439 and different.
  UnixMs not_before = 0, not_after = 0;
  [[nodiscard]] bool always() const noexcept { return from_minute < 0 && not_before == 0 && not_after == 0; }
  bool operator==(const Window&) const = default;
};

// `at` and `until`: "", "HH:MM" or RFC 3339 ("2026-12-01T02:00:00Z"). Both as HH:MM: every day. One alone as
// HH:MM: the next such time after `now`; `until` beside a full `at`: the next one after that.
[[nodiscard]] Result<Window> make_window(std::string_view at, std::string_view until, UnixMs now);
[[nodiscard]] bool is_open(const Window& window, UnixMs now);
// When a closed window opens; 0: never again.
[[nodiscard]] UnixMs opens_at(const Window& window, UnixMs now);
// When an open window closes; 0: never.
[[nodiscard]] UnixMs closes_at(const Window& window, UnixMs now);
[[nodiscard]] std::string to_text(const Window& window);  // "02:00 to 06:00 every day"; "" when always.

// "hit_rate<0.9": the resize rolls back when this holds.
struct Condition {
  enum class Figure { hit_rate, p99_ms, origin_qps };
  Figure figure = Figure::hit_rate;
  bool below = false;  // <, else >
  double limit = 0;
  [[nodiscard]] bool holds(double value) const noexcept { return below ? value < limit : value > limit; }
  bool operator==(const Condition&) const = default;
};
inline constexpr std::size_t kMaxConditions = 16;
[[nodiscard]] std::string_view name(Condition::Figure figure);
[[nodiscard]] std::string to_text(const Condition& condition);                // "hit_rate<0.9"
[[nodiscard]] std::string to_text(const std::vector<Condition>& conditions);  // Separated by commas.
[[nodiscard]] Result<std::vector<Condition>> parse_conditions(std::string_view text);

}  // namespace ringshift::resize
