#include "tests/history/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/history/check.h"

namespace ringshift::history {
namespace {

constexpr std::size_t kBefore = 16, kAfter = 8;  // Operations shown around the culprit.
constexpr std::size_t kShown = 5;                // Violations shown in full.

}  // namespace

std::vector<std::string> excerpt(const std::vector<const Operation*>& operations, const Operation& culprit) {
  const auto found = std::ranges::find(operations, &culprit);
  const auto at = static_cast<std::size_t>(found - operations.begin());
  std::size_t end = at + 1;
  while (end < operations.size() && end < at + kAfter + 1) ++end;
  std::vector<std::string> lines;
  const auto ms = [&](std::int64_t t) { return static_cast<double>(t - culprit.invoked) / 1e6; };
  for (std::size_t i = at > kBefore ? at - kBefore : 0; i < end; ++i) {
    const Operation& op = *operations[i];
    const std::string until = op.outcome == Outcome::unknown ? fmt::format("{:>10}", "?")
                                                             : fmt::format("{:10.3f}", ms(op.returned));
    lines.push_back(fmt::format("{} [{:10.3f} .. {}] client {:<2} {}", i == at ? ">" : " ", ms(op.invoked),
                                until, op.client, describe(op)));
  }
  return lines;
}

std::string to_text(const Judgement& result, const History& history, std::uint64_t seed) {
  std::string out = fmt::format(
      "{}: {} operations on {} keys, {} of unknown outcome, {} not executed, {} errors, {} reconnects (seed "
      "{})\n",
      result.clean() ? "clean" : "VIOLATED", result.operations, result.keys, result.unknown,
      result.not_executed, result.errors, history.reconnects, seed);
  for (const std::string& example : history.error_examples) out += "  error answer: " + example + "\n";
  if (result.clean()) return out;
  out += fmt::format("  lost writes {}, stale reads {}, resurrected {}, invented {}, inconclusive {}\n",
                     result.lost_writes, result.stale_reads, result.resurrected, result.invented,
                     result.inconclusive);
  for (std::size_t i = 0; i < result.violations.size() && i < kShown; ++i) {
    const Violation& violation = result.violations[i];
    out += fmt::format("\n{} on key {}: {}\n  times in ms from the offending operation (>)\n",
                       to_string(violation.kind), violation.key, violation.why);
    for (const std::string& line : violation.excerpt) out += "  " + line + "\n";
  }
  if (result.violations.size() > kShown)
    out += fmt::format("\n... and {} more keys\n", result.violations.size() - kShown);
  return out;
}

std::string to_json(const Judgement& result, const History& history, std::uint64_t seed) {
  nlohmann::json violations = nlohmann::json::array();
  for (const Violation& v : result.violations) {
    violations.push_back(
        {{"kind", to_string(v.kind)}, {"key", v.key}, {"why", v.why}, {"excerpt", v.excerpt}});
  }
  const nlohmann::json out = {{"seed", seed},
                              {"operations", result.operations},
                              {"unknown", result.unknown},
                              {"not_executed", result.not_executed},
                              {"errors", result.errors},
                              {"error_examples", history.error_examples},
                              {"reconnects", history.reconnects},
                              {"keys", result.keys},
                              {"lost_writes", result.lost_writes},
                              {"stale_reads", result.stale_reads},
                              {"resurrected", result.resurrected},
                              {"invented", result.invented},
                              {"inconclusive", result.inconclusive},
                              {"violations", violations}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ringshift::history
