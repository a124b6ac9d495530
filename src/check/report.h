// A verdict for people and for programs.
#pragma once
#include <string>
#include <vector>

#include "check/judge.h"
#include "check/operation.h"

namespace ringshift::check {

// The run that was judged.
struct RunInfo {
  std::uint64_t seed = 0;
  std::vector<std::string> proxies;  // Operation::proxy names them.
  double seconds = 0;
  std::uint64_t errors = 0;                 // Answers that were errors of no known meaning.
  std::vector<std::string> error_examples;  // A few distinct ones.
  std::uint64_t reconnects = 0;
  std::uint64_t keys_left = 0;  // That could not be removed.
  std::string key_prefix;       // Of the run's keys; "" when read from a file.
};
[[nodiscard]] RunInfo info_of(const History& history, std::uint64_t seed);

// A line for each operation: a bar from its invocation to its return in the order of all these instants (not
// to scale), client, proxy, times in ms from the culprit's invocation, what it did and got. The culprit's
// line begins with ">".
[[nodiscard]] std::vector<std::string> picture(const std::vector<Operation>& operations, std::size_t culprit,
                                               const std::vector<std::string>& proxies);

// "clean", "violated", or "inconclusive": nothing wrong was seen, but not everything could be judged.
[[nodiscard]] const char* verdict(const Judgement& result) noexcept;
// Verdict, figures, and the first violations in full.
[[nodiscard]] std::string to_text(const Judgement& result, const RunInfo& run);
// One line: {verdict, seed, seconds, operations, by_kind, unknown, not_executed, errors, error_examples,
// reconnects, keys, keys_left, lost_writes, stale_reads, resurrected, invented, inconclusive, violations:
// [{kind, key, why, of, operations: [{client, proxy, invoked_ms, returned_ms, operation, culprit}], picture,
// excerpt}]}
[[nodiscard]] std::string to_json(const Judgement& result, const RunInfo& run);

}  // namespace ringshift::check
