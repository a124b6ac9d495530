// The figures that a plan rests on: each is given, measured, or assumed, and says which, so that a plan
// always comes out. Pure. Shared by `plan`, `resize start`, `member` and the admin API.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/forecast/forecast.h"
#include "resize/live_figures.h"

namespace ringshift::resize {

struct GivenFigures {
  std::optional<std::uint64_t> keys, value_bytes, rate, rate_bytes;
  std::optional<double> qps, hit_rate, cold_hit_rate, origin_limit_qps;
  std::vector<double> steps;  // Empty: the default.
};

// A figure that a forecast rests on, as it is printed.
struct PlanFigure {
  std::string name;    // As in JSON: "hit_rate".
  double value = 0;    // NaN: there is none.
  std::string source;  // given | measured | assumed | spec
  std::string text;    // The value for people.
  std::string note;    // Where it was measured; how to give it.
};

struct PlanBasis {
  plan::ForecastInputs in;
  std::vector<PlanFigure> figures;
};

// What is given counts before what was measured.
[[nodiscard]] PlanBasis plan_basis(const topology::Spec& from, const topology::Spec& to,
                                   const GivenFigures& given, const std::optional<LiveFigures>& live);

// A plan with all that it rests on.
struct PlanReport {
  const plan::ForecastInputs& in;
  const plan::Forecast& out;
  std::vector<PlanFigure> figures;
  bool carried_over = false;  // The placement's state was taken over from the spec in force.
};
// `plan --json` (DESIGN, section 9).
[[nodiscard]] std::string to_json(const PlanReport& report);

// What a start of a resize from `from` to `written` would do, with what the members say at a glance.
struct PlanPreview {
  PlanBasis basis;
  plan::Forecast out;
  bool carried_over = false;
  bool live = false;    // The members were asked, and have answered.
  std::string why_not;  // Why one of them did not answer; "" when none was asked.
  [[nodiscard]] PlanReport report() const { return {basis.in, out, basis.figures, carried_over}; }
};
// Blocking, with `ask_members`: a glance (live_figures.h). They need not answer.
[[nodiscard]] Result<PlanPreview> preview_plan(const topology::Spec& from, const topology::Spec& written,
                                               const GivenFigures& given, bool ask_members,
                                               std::shared_ptr<const backend::MemberAccess> access);

}  // namespace ringshift::resize
