// A history's verdict for people and for programs.
#pragma once
#include <string>
#include <vector>

#include "tests/history/operation.h"

namespace ringshift::history {

struct Judgement;

// One key's operations around `culprit`, one a line, times in milliseconds relative to its invocation.
[[nodiscard]] std::vector<std::string> excerpt(const std::vector<const Operation*>& operations,
                                               const Operation& culprit);
// Verdict, figures, and the first violations in full.
[[nodiscard]] std::string to_text(const Judgement& result, const History& history, std::uint64_t seed);
// {seed, operations, unknown, not_executed, errors, error_examples, reconnects, keys, lost_writes,
// stale_reads,
//  resurrected, invented, inconclusive, violations: [{kind, key, why, excerpt}]}, one line.
[[nodiscard]] std::string to_json(const Judgement& result, const History& history, std::uint64_t seed);

}  // namespace ringshift::history
