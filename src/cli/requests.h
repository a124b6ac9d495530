// Who asks the controller, and the asking itself (resize/ask.h) by its short names.
#pragma once
#include <string>

#include "resize/ask.h"

namespace ringshift::cli {

using resize::ask_controller;
using resize::kControllerAnswer;
using resize::read_status;

// "ann@host", for the log.
[[nodiscard]] std::string who_asks();

}  // namespace ringshift::cli
