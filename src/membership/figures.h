// What the policy shows to Prometheus. Counters are this process's.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "discovery/source.h"
#include "membership/policy.h"

namespace ringshift::telemetry {
class Exposition;
}

namespace ringshift::membership {

struct Figures {
  bool in_force = false;                // We lead, and there is a policy: else only the counters are shown.
  bool trouble = false;                 // The source does not answer, or what it says is held.
  std::optional<base::Duration> age{};  // Since it last answered plausibly; nothing before it ever did.
  bool held = false;
  std::uint64_t ready = 0, unhealthy = 0, draining = 0;    // Instances.
  std::uint64_t candidates = 0, impossible = 0, gone = 0;  // Impossible: candidates that nobody can admit.
  std::uint64_t admitted = 0, removed = 0, refused = 0;
};

// Counts what was seen and decided; the rest of `figures` stays.
void count(Figures& figures, const Situation& situation, const Decision& decision);
void collect(telemetry::Exposition& page, const Figures& figures, const std::string& cluster);

}  // namespace ringshift::membership
