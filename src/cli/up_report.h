// The outcome of `ringshift up`: what was measured, as a table for people and as one JSON object.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "drill/census.h"
#include "drill/load.h"
#include "drill/recorder.h"

namespace ringshift::cli {

struct UpReport {
  drill::Census census_before, census_after;
  std::string joined;            // The member that came.
  double moved_share = 0;        // Of the keyspace, by the exact diff of the two placements.
  double minimum_share = 0;      // The least that any balanced placement could move.
  std::uint64_t keys_moved = 0;  // As the mover counts.
  double duration_seconds = 0;
  double hold_ms_max = 0;
  std::uint64_t steps = 0;
  drill::StageFigures before, during, after;
  drill::Verdicts verdicts;
  drill::LoadOptions load;
  std::size_t nodes_before = 0, nodes_after = 0;

  // Each promise with whether it was kept, in words a person can check against the figures.
  [[nodiscard]] std::vector<std::pair<std::string, bool>> promises() const;
  // Nothing acknowledged was lost, nothing old was read, every key is where its owner is.
  [[nodiscard]] bool sound() const;
  [[nodiscard]] std::string table() const;
  [[nodiscard]] std::string json() const;
};

}  // namespace ringshift::cli
