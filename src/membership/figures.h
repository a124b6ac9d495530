// What the policy shows to Prometheus: its source, the guard before it, candidates, members that are gone,
// and the changes it made.
//
// The runner's thread writes after each look, a scrape reads from another thread: thread-safe. Nothing is
// shown while there is no policy, or another controller leads. The counters are of the process.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "membership/policy.h"

namespace ringshift::telemetry {
class Exposition;
}

namespace ringshift::membership {

enum class Outcome : std::uint8_t { admitted, removed, refused };

class PolicyFigures {
 public:
  // One look.
  struct Look {
    std::string source_kind;
    bool source_answers = false, held = false;
    double source_age_seconds = 0;           // How long the list that stands has not been what is.
    std::array<std::size_t, 3> instances{};  // By discovery::InstanceState.
    std::size_t fit = 0, unfit = 0;          // Candidates.
    std::size_t gone = 0, elsewhere = 0;     // Members.
  };
  void looked(Look look);
  void rests();  // No policy, or another one leads.
  void count(Outcome outcome);

  void collect(telemetry::Exposition& page, const std::string& cluster) const;

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::optional<Look> look_;
  std::array<std::uint64_t, 3> changes_{};  // By Outcome.
};

}  // namespace ringshift::membership
