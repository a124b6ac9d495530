#include "check/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ringshift::check {
namespace {

constexpr std::size_t kShownViolations = 5;  // In full.
constexpr std::size_t kFew = 12;             // As many operations are "few": more are shown as they were.

// The picture of the few operations, or of what was around the culprit where they are not few.
std::vector<std::string> picture_of(const Violation& v, const RunInfo& run) {
  if (!v.operations.empty() && v.operations.size() <= kFew)
    return picture(v.operations, v.culprit, run.proxies);
  return picture(v.around, v.around_culprit, run.proxies);
}

std::string text_of(const Violation& v, const RunInfo& run) {
  std::string out = fmt::format("\n{} on key {}: {}\n", to_string(v.kind), v.key, v.why);
  if (v.around.empty()) return out;
  const bool few = !v.operations.empty() && v.operations.size() <= kFew;
  out += few ? fmt::format("  {} of its {} operations show it; times in ms from the offending one (>):\n",
                           v.operations.size(), v.of)
             : fmt::format("  {} of its {} operations, around the offending one (>); times in ms from it:\n",
                           v.around.size(), v.of);
  for (const std::string& line : picture_of(v, run)) out += "  " + line + "\n";
  return out;
}

nlohmann::json json_of(const Violation& v, const RunInfo& run) {
  nlohmann::json operations = nlohmann::json::array();
  const std::int64_t zero = v.operations.empty() ? 0 : v.operations[v.culprit].invoked;
  for (std::size_t i = 0; i < v.operations.size(); ++i) {
    const Operation& op = v.operations[i];
    nlohmann::json one = {{"client", op.client},
                          {"proxy", op.proxy < run.proxies.size() ? run.proxies[op.proxy] : ""},
                          {"invoked_ms", static_cast<double>(op.invoked - zero) / 1e6},
                          {"returned_ms", nullptr},
                          {"outcome", to_string(op.outcome)},
                          {"operation", describe(op)},
                          {"culprit", i == v.culprit}};
    if (op.outcome == Outcome::answered) one["returned_ms"] = static_cast<double>(op.returned - zero) / 1e6;
    operations.push_back(std::move(one));
  }
  return {{"kind", to_string(v.kind)},
          {"key", v.key},
          {"why", v.why},
          {"of", v.of},
          {"operations", std::move(operations)},
          {"picture", picture_of(v, run)},
          {"excerpt",
           v.around.empty() ? std::vector<std::string>{} : picture(v.around, v.around_culprit, run.proxies)}};
}

}  // namespace

RunInfo info_of(const History& history, std::uint64_t seed) {
  RunInfo run;
  run.seed = seed;
  run.errors = history.errors;
  run.error_examples = history.error_examples;
  run.reconnects = history.reconnects;
  return run;
}

const char* verdict(const Judgement& result) noexcept {
  return result.broken() > 0 ? "violated" : result.inconclusive > 0 ? "inconclusive" : "clean";
}

std::string to_text(const Judgement& result, const RunInfo& run) {
  const char* word = result.broken() > 0 ? "VIOLATED" : result.inconclusive > 0 ? "INCONCLUSIVE" : "clean";
  std::string out = fmt::format(
      "{}: {} operations on {} keys, {} of unknown outcome, {} not executed, {} errors, {} reconnects (seed "
      "{})\n",
      word, result.operations, result.keys, result.unknown, result.not_executed, run.errors, run.reconnects,
      run.seed);
  for (const std::string& example : run.error_examples) out += "  error answer: " + example + "\n";
  if (run.keys_left > 0) {
    out += fmt::format("  {} keys could not be removed; they begin with {}\n", run.keys_left, run.key_prefix);
  }
  if (result.clean()) return out;
  out += fmt::format(
      "  keys with a lost write {}, stale read {}, resurrected value {}, invented value {}; "
      "inconclusive {}\n",
      result.lost_writes, result.stale_reads, result.resurrected, result.invented, result.inconclusive);
  const std::size_t shown = std::min(result.violations.size(), kShownViolations);
  for (std::size_t i = 0; i < shown; ++i) out += text_of(result.violations[i], run);
  const std::uint64_t all = result.broken() + result.inconclusive;
  if (all > shown) out += fmt::format("\n... and {} more keys\n", all - shown);
  return out;
}

std::string to_json(const Judgement& result, const RunInfo& run) {
  nlohmann::json violations = nlohmann::json::array();
  for (const Violation& v : result.violations) violations.push_back(json_of(v, run));
  nlohmann::json by_kind;
  for (std::size_t i = 0; i < kKinds; ++i) {
    if (result.by_kind[i] > 0) by_kind[std::string(to_string(static_cast<Kind>(i)))] = result.by_kind[i];
  }
  const nlohmann::json out = {{"verdict", verdict(result)},
                              {"seed", run.seed},
                              {"seconds", run.seconds},
                              {"operations", result.operations},
                              {"by_kind", std::move(by_kind)},
                              {"unknown", result.unknown},
                              {"not_executed", result.not_executed},
                              {"errors", run.errors},
                              {"error_examples", run.error_examples},
                              {"reconnects", run.reconnects},
                              {"keys", result.keys},
                              {"keys_left", run.keys_left},
                              {"lost_writes", result.lost_writes},
                              {"stale_reads", result.stale_reads},
                              {"resurrected", result.resurrected},
                              {"invented", result.invented},
                              {"inconclusive", result.inconclusive},
                              {"violations", std::move(violations)}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ringshift::check
