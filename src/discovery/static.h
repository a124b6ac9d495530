// A list that stands in the spec or on the command line: told once.
#pragma once
#include <memory>

#include "discovery/options.h"

namespace ringshift::discovery {

[[nodiscard]] std::unique_ptr<Source> make_static_source(Options options);

}  // namespace ringshift::discovery
