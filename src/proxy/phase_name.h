// The phase of a resize as INFO and /metrics name it.
#pragma once
#include <string_view>

#include "ringshift/topology.h"

namespace ringshift::proxy {

// "none" when no resize runs.
inline std::string_view phase_name(const topology::Topology& topology) noexcept {
  if (!topology.resize) return "none";
  switch (topology.resize->phase) {
    case topology::Phase::prep:
      return "prep";
    case topology::Phase::hold:
      return "hold";
    case topology::Phase::dual:
      return "dual";
  }
  return "none";
}

}  // namespace ringshift::proxy
