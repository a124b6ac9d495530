// What a change of a cluster will do, before it is done: who gets and gives what, whether there is room, how
// long it takes, and what the origin behind the cache feels, by a cold switch and by a live resize.
//
// Pure arithmetic over topology::diff and topology::shares. Keys, bytes and traffic are taken to be spread
// over a member's part of the keyspace evenly; where a member's own figures are given, they count for what it
// gives. What a figure means, and its formula: docs/plan.md. Cost: that of a diff and two shares.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/forecast/origin.h"
#include "ringshift/topology.h"

namespace ringshift::plan {

// What a member says of itself.
struct MemberFigures {
  std::string id;
  std::optional<double> keys;
  std::optional<double> used_memory;
  std::optional<double> max_memory;  // 0: it has no limit.
  std::optional<double> ops_per_second;
};

struct ForecastInputs {
  topology::Spec from, to;  // `to` as it would be in force: see edit.h.
  double keys = 0;          // Of the whole cluster.
  double value_bytes =
      0;  // What a key takes of a member's memory on average, its name and overhead included.
  Traffic traffic;
  std::optional<double> origin_limit_qps;  // What the origin bears.
  double keys_per_second = 0;              // The mover's bounds; both above 0.
  double bytes_per_second = 0;
  std::vector<double> steps;           // Percent of the keyspace; each above the one before, the last is 100.
  std::vector<MemberFigures> members;  // Those that are known, of either side.
};

struct PairForecast {
  std::string from, to;
  double share = 0;  // Of the whole keyspace.
  double keys = 0, bytes = 0;
  // Both are members before and after, with the same weight: a placement that moves the least has no such
  // pair.
  bool between_unchanged = false;
};

struct MemberForecast {
  std::string id;
  double share_before = 0, share_after = 0;  // Of the keyspace; 0 before it joins or after it left.
  double keys_before = 0, keys_after = 0;
  double ops_before = 0, ops_after = 0;  // Commands a second; measured, or its share of the lookups.
  double bytes_in = 0, bytes_out = 0;
  // Only where its memory is known. The peak is what `resize start` asks for: all that arrives, before
  // anything leaves.
  std::optional<double> used_memory, max_memory, memory_peak, memory_after;
  bool has_room = true;  // false: the peak is above max_memory, and something arrives.
};

struct StepForecast {
  double percent = 0;        // Of the keyspace, with all steps before it.
  std::uint32_t slices = 0;  // That this step moves.
  double cold_share = 0;     // f of this step: of all keys, those that change owner in it.
  double keys = 0, bytes = 0, seconds = 0;
  double cold_origin_qps =
      0;  // If this step's keys are not moved, and those of the steps before are warm again.
  double cold_extra_qps = 0;
  double cold_hit_rate = 0;
};

enum class Verdict { safe, caution, unsafe };
[[nodiscard]] const char* to_string(Verdict verdict) noexcept;

struct Judgement {
  Verdict verdict = Verdict::safe;
  std::string reason;  // A clause without a capital and without a full stop.
};

struct Forecast {
  double moved_share = 0, minimum_share = 0;
  bool exact = true;                   // The shares; false: from sampled keys.
  double between_unchanged_share = 0;  // Of the moved share: what a minimal placement would not move.
  double keys_to_move = 0, bytes_to_move = 0;
  double seconds = 0;
  bool bound_by_bytes = false;          // The byte rate is the slower one.
  std::vector<PairForecast> pairs;      // As topology::diff sorts them.
  std::vector<MemberForecast> members;  // Those of `from` in their order, then those that join.
  std::vector<StepForecast> steps;
  double origin_now = 0, origin_cold = 0, origin_live = 0;  // Lookups a second that reach the origin.
  double hit_rate_cold = 0;                                 // Of a cold switch of everything at once.
  std::optional<SafeStep> safe_step;                        // When a limit is given.
  std::vector<std::string> warnings;
  bool can_resize_live = true;  // false: memcached, consistency none, or an id with another address.
  Judgement cold, live;
  Verdict verdict = Verdict::safe;  // Of the live resize where that can be, else of the cold switch.
  std::string reason;               // One sentence, for both ways.
};

// Fails as `invalid` when a spec is invalid or a figure makes no sense (negative, a rate outside 0..1).
[[nodiscard]] Result<Forecast> forecast(const ForecastInputs& in);

}  // namespace ringshift::plan
