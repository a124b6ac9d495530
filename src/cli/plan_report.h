// A forecast for people (tables with units) and for machines (one JSON object). Prints to standard output.
#pragma once
#include <string>
#include <vector>

#include "plan/forecast/forecast.h"

namespace ringshift::cli {

// A figure that a forecast rests on, as it is printed.
struct PlanFigure {
  std::string name;    // As in JSON: "hit_rate".
  double value = 0;    // NaN: there is none.
  std::string source;  // given | measured | assumed | spec
  std::string text;    // The value for people.
  std::string note;    // Where it was measured; how to give it.
};

struct PlanReport {
  const plan::ForecastInputs& in;
  const plan::Forecast& out;
  std::vector<PlanFigure> figures;
  bool carried_over = false;  // The placement's state was taken over from the spec in force.
};

void print_plan(const PlanReport& report);
// Without figures of keys, bytes and traffic: only which share goes where.
void print_plan_shares(const PlanReport& report);
void print_plan_json(const PlanReport& report);

}  // namespace ringshift::cli
