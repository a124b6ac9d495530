// From a forecast's figures to a word and a sentence.
#pragma once
#include "plan/forecast/forecast.h"

namespace ringshift::plan {

inline constexpr double kTight = 0.9;  // Above this part of a limit there is room, but it is worth a look.

// Fills in cold, live, verdict and reason from all the rest.
void judge(const ForecastInputs& in, Forecast& out);

}  // namespace ringshift::plan
