#include "cli/up_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/console.h"

namespace ringshift::cli {
namespace {

// The promises of the design (section 1), as figures.
constexpr double kMovedOverMinimum = 1.02;
constexpr double kHitRateSlack = 0.01;
constexpr double kStandardErrors = 3;
constexpr double kOriginSlack = 1.05;

double hit_rate_floor(const UpReport& r) {
  return r.before.hit_rate - kHitRateSlack - kStandardErrors * r.before.hit_rate_standard_error;
}

std::uint64_t theory(const UpReport& r) {
  return static_cast<std::uint64_t>(r.minimum_share * static_cast<double>(r.census_before.keys_total) + 0.5);
}

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

void row(std::string& out, std::string_view label, std::string_view value, std::string_view remark = {}) {
  out += fmt::format("  {:<34}{:>12}{}{}\n", label, value, remark.empty() ? "" : "   ", remark);
}

void stages(std::string& out, std::string_view label, const std::string& a, const std::string& b,
            const std::string& c) {
  out += fmt::format("  {:<34}{:>12}{:>12}{:>12}\n", label, a, b, c);
}

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100); }
std::string whole(double number) { return grouped(static_cast<std::uint64_t>(number + 0.5)); }
std::string ms(double number) { return fmt::format("{:.2f} ms", number); }

nlohmann::ordered_json stage_json(const drill::StageFigures& f) {
  return {{"seconds", f.seconds},
          {"get_per_second", f.get_per_second},
          {"hit_rate", f.hit_rate},
          {"hit_rate_min_1s", f.hit_rate_min_1s},
          {"origin_qps", f.origin_qps},
          {"origin_qps_max_1s", f.origin_qps_max_1s},
          {"origin_updates", f.origin_updates},
          {"p50_ms", f.p50_ms},
          {"p99_ms", f.p99_ms},
          {"p999_ms", f.p999_ms},
          {"errors", f.errors},
          {"requests_skipped", f.skipped},
          {"windows", f.windows},
          {"window_gets", f.window_gets}};
}

}  // namespace

bool UpReport::sound() const {
  return verdicts.lost_writes == 0 && verdicts.stale_reads == 0 && census_after.misplaced == 0;
}

std::vector<std::pair<std::string, bool>> UpReport::promises() const {
  return {
      {"no acknowledged write lost", verdicts.lost_writes == 0},
      {"no stale read", verdicts.stale_reads == 0},
      {"every key is on its owner", census_after.misplaced == 0},
      {fmt::format("keys moved at most {} x the minimum", kMovedOverMinimum),
       static_cast<double>(keys_moved) <=
           kMovedOverMinimum * static_cast<double>(census_before.keys_minimum)},
      {fmt::format("lowest one-second hit rate at least {} (steady - 1 point - {:.0f} standard errors of {})",
                   percent(hit_rate_floor(*this)), kStandardErrors, percent(before.hit_rate_standard_error)),
       during.hit_rate_min_1s >= hit_rate_floor(*this)},
      {fmt::format("mean origin queries during the resize at most {} x steady", kOriginSlack),
       during.origin_qps <= kOriginSlack * before.origin_qps},
  };
}

std::string UpReport::table() const {
  const auto keys = static_cast<double>(census_before.keys_total);
  const auto moved = static_cast<double>(keys_moved);
  const auto minimum = static_cast<double>(census_before.keys_minimum);
  std::string out = fmt::format("\nFrom {} nodes to {} under load:\n\n", nodes_before, nodes_after);
  row(out, "keys in the cluster", grouped(census_before.keys_total), "counted on the nodes just before");
  row(out, "keys that had to move", grouped(census_before.keys_minimum),
      fmt::format("{} of them; by the diff {} of the keyspace", percent(ratio(minimum, keys)),
                  percent(moved_share)));
  row(out, "the least in theory", grouped(theory(*this)),
      fmt::format("{}, with members of equal weight", percent(minimum_share)));
  row(out, "keys moved", grouped(keys_moved), fmt::format("{:.3f} x the minimum", ratio(moved, minimum)));
  const auto joined_keys = census_after.by_member.find(joined);
  if (joined_keys != census_after.by_member.end())
    row(out, "keys on " + joined + " now", grouped(joined_keys->second));
  row(out, "time taken", fmt::format("{:.1f} s", duration_seconds), fmt::format("in {} steps", steps));
  row(out, "longest hold pause", ms(hold_ms_max));
  row(out, "acknowledged writes lost", grouped(verdicts.lost_writes),
      fmt::format("of {}", grouped(verdicts.writes_acknowledged)));
  row(out, "stale reads", grouped(verdicts.stale_reads),
      fmt::format("of {} checked", grouped(verdicts.reads_checked)));
  if (verdicts.unknown_outcomes + verdicts.unverified_keys > 0) {
    row(out, "writes of unknown outcome", grouped(verdicts.unknown_outcomes),
        fmt::format("{} keys not judged for that", grouped(verdicts.unverified_keys)));
  }
  if (census_after.misplaced > 0) row(out, "keys in the wrong place", grouped(census_after.misplaced));
  out += fmt::format("\n  {:<34}{:>12}{:>12}{:>12}\n", "", "before", "during", "after");
  stages(out, "GET/s", whole(before.get_per_second), whole(during.get_per_second),
         whole(after.get_per_second));
  stages(out, "hit rate", percent(before.hit_rate), percent(during.hit_rate), percent(after.hit_rate));
  stages(out, "hit rate, lowest second", percent(before.hit_rate_min_1s), percent(during.hit_rate_min_1s),
         percent(after.hit_rate_min_1s));
  stages(out, "origin queries/s", whole(before.origin_qps), whole(during.origin_qps),
         whole(after.origin_qps));
  stages(out, "origin queries, worst second", whole(before.origin_qps_max_1s),
         whole(during.origin_qps_max_1s), whole(after.origin_qps_max_1s));
  stages(out, "latency p50", ms(before.p50_ms), ms(during.p50_ms), ms(after.p50_ms));
  stages(out, "latency p99", ms(before.p99_ms), ms(during.p99_ms), ms(after.p99_ms));
  stages(out, "errors answered", grouped(before.errors), grouped(during.errors), grouped(after.errors));
  stages(out, "measured for", fmt::format("{:.1f} s", before.seconds),
         fmt::format("{:.1f} s", during.seconds), fmt::format("{:.1f} s", after.seconds));
  out += fmt::format(
      "\n  Load: {} threads, pipelines of {}, {:.0f} requests/s, Zipf {} over {} objects, one update to "
      "{:.0f} reads.\n"
      "  A second is a window of {} GETs; its hit rate has a standard error of {}.\n\n",
      load.threads, load.pipeline, load.requests_per_second, load.zipf_exponent,
      grouped(drill::objects_of(load)),
      ratio(static_cast<double>(before.gets), static_cast<double>(before.origin_updates)),
      whole(before.window_gets), percent(before.hit_rate_standard_error));
  for (const auto& [promise, kept] : promises())
    out += fmt::format("  {} {}\n", kept ? "kept  " : "BROKEN", promise);
  for (const std::string& example : verdicts.examples) out += fmt::format("         {}\n", example);
  return out;
}

std::string UpReport::json() const {
  nlohmann::ordered_json j;
  j["keys_total"] = census_before.keys_total;
  j["keys_minimum"] = census_before.keys_minimum;
  j["keys_minimum_theory"] = theory(*this);
  j["keys_moved"] = keys_moved;
  j["duration_seconds"] = duration_seconds;
  j["hold_ms_max"] = hold_ms_max;
  j["hit_rate_steady"] = before.hit_rate;
  j["hit_rate_min_1s"] = during.hit_rate_min_1s;
  j["origin_qps_steady"] = before.origin_qps;
  j["origin_qps_mean_during"] = during.origin_qps;
  j["origin_qps_max_1s"] = during.origin_qps_max_1s;
  j["lost_writes"] = verdicts.lost_writes;
  j["stale_reads"] = verdicts.stale_reads;
  j["p99_ms_before"] = before.p99_ms;
  j["p99_ms_during"] = during.p99_ms;
  j["p99_ms_after"] = after.p99_ms;
  // What is needed to judge the figures above.
  j["get_per_second"] = during.get_per_second;
  j["hit_rate_standard_error_1s"] = before.hit_rate_standard_error;
  j["window_gets"] = before.window_gets;
  j["moved_share"] = moved_share;
  j["minimum_share"] = minimum_share;
  j["keys_misplaced"] = census_after.misplaced;
  j["keys_by_member"] = census_after.by_member;
  j["reads_checked"] = verdicts.reads_checked;
  j["writes_acknowledged"] = verdicts.writes_acknowledged;
  j["unknown_outcomes"] = verdicts.unknown_outcomes;
  j["unverified_keys"] = verdicts.unverified_keys;
  j["steps"] = steps;
  j["load"] = {{"threads", load.threads},
               {"pipeline", load.pipeline},
               {"requests_per_second", load.requests_per_second},
               {"objects", drill::objects_of(load)},
               {"zipf_exponent", load.zipf_exponent},
               {"batches_per_update", load.batches_per_update},
               {"seed", load.seed}};
  j["stages"] = {
      {"before", stage_json(before)}, {"during", stage_json(during)}, {"after", stage_json(after)}};
  j["promises"] = nlohmann::ordered_json::array();
  for (const auto& [promise, kept] : promises())
    j["promises"].push_back({{"promise", promise}, {"kept", kept}});
  j["examples"] = verdicts.examples;
  return j.dump(2);
}

}  // namespace ringshift::cli
