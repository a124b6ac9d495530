// A forecast for people (tables with units) and for machines (one JSON object). Prints to standard output.
#pragma once
#include "resize/plan_figures.h"

namespace ringshift::cli {

using resize::PlanFigure;
using resize::PlanReport;

void print_plan(const PlanReport& report);
// Without figures of keys, bytes and traffic: only which share goes where.
void print_plan_shares(const PlanReport& report);
void print_plan_json(const PlanReport& report);

}  // namespace ringshift::cli
