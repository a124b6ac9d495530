// The figures that a plan rests on: each is given, measured, or assumed, and says which, so that a plan
// always comes out. Pure. Shared by `plan`, `resize start` and `member`.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "cli/live_figures.h"
#include "cli/plan_report.h"
#include "plan/forecast/forecast.h"

namespace ringshift::cli {

struct GivenFigures {
  std::optional<std::uint64_t> keys, value_bytes, rate, rate_bytes;
  std::optional<double> qps, hit_rate, cold_hit_rate, origin_limit_qps;
  std::vector<double> steps;  // Empty: the default.
};

struct PlanBasis {
  plan::ForecastInputs in;
  std::vector<PlanFigure> figures;
};

// What is given counts before what was measured.
[[nodiscard]] PlanBasis plan_basis(const topology::Spec& from, const topology::Spec& to,
                                   const GivenFigures& given, const std::optional<LiveFigures>& live);

}  // namespace ringshift::cli
