// What a drill found, and the forms in which it is shown.
//
//   drill.cpp         options, the strategies one after another
//   drill_run.cpp     one strategy under the load
//   drill_live.cpp    the line on the terminal while it runs
//   drill_report.cpp  figures, promises, the table, the account in words
//   drill_json.cpp    JSON (DESIGN: `drill --json`)
//   drill_html.cpp    one page with charts
//   drill_svg.cpp     the picture
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/drill_run.h"

namespace ringshift::cli::drilling {

// `during` begins with the change, and lasts alike for all: as long as the live resize took (without one, at
// most kDuringSeconds). The worst second of a switch is looked for in all seconds after it; of ringshift and
// of the control run in `during`, so that these two are compared over as many seconds.
struct Figures {
  drill::Span steady, during, after, rest;  // rest: all since the change.
  double hit_rate_min = 0;
  std::uint64_t origin_max = 0;
  drill::Recovery recovery;
  double p99_before = 0, p99_during = 0, p99_after = 0;
  double origin_p99_before = 0, origin_p99_during = 0, origin_p99_after = 0;
};
inline constexpr std::size_t kDuringSeconds = 15;

struct Report {
  Options options;
  std::string origin;             // "SQLite 3.40.1"
  std::vector<Outcome> outcomes;  // Of the strategies, in the order of their runs; the last may be cut short.
  std::optional<Outcome> control;  // As ringshift, without a resize.
  std::vector<std::string> noise;  // Why the machine was too noisy; empty when it was not.
  std::string interrupted;         // Why strategies are missing; empty when none is.
  double seconds = 0;              // The whole drill.

  [[nodiscard]] std::size_t during_seconds() const;
  [[nodiscard]] Figures figures(const Outcome& outcome) const;
  [[nodiscard]] const Outcome* find(std::string_view name) const;
  [[nodiscard]] std::vector<drill::Promise> promises() const;
  // False when a promise was broken, or a run failed.
  [[nodiscard]] bool sound() const;
  void look_for_noise();  // Fills `noise`.
};

[[nodiscard]] std::string load_in_words(const Report& report);
[[nodiscard]] std::vector<std::string> account(
    const Report& report);  // What happened, a sentence or two each.
[[nodiscard]] std::string table(const Report& report);
[[nodiscard]] std::string json(const Report& report);
[[nodiscard]] std::string html(const Report& report);
[[nodiscard]] std::string svg(const Report& report);

}  // namespace ringshift::cli::drilling
