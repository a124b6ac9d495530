// `plan --json`: the one place that makes it.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "resize/plan_figures.h"

namespace ringshift::resize {
namespace {

using nlohmann::json;

// JSON has no NaN: what there is not is null.
json known_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }
json known_or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }
json whole_number(double value) { return static_cast<std::uint64_t>(std::llround(std::max(0.0, value))); }

json plan_pairs_json(const plan::Forecast& out) {
  json pairs = json::array();
  for (const plan::PairForecast& pair : out.pairs) {
    pairs.push_back({{"from", pair.from},
                     {"to", pair.to},
                     {"share", pair.share},
                     {"keys", whole_number(pair.keys)},
                     {"bytes", whole_number(pair.bytes)},
                     {"between_unchanged", pair.between_unchanged}});
  }
  return pairs;
}

json members_json(const plan::Forecast& out) {
  json members = json::array();
  for (const plan::MemberForecast& member : out.members) {
    members.push_back({{"id", member.id},
                       {"share_before", member.share_before},
                       {"share_after", member.share_after},
                       {"keys_before", whole_number(member.keys_before)},
                       {"keys_after", whole_number(member.keys_after)},
                       {"ops_before", member.ops_before},
                       {"ops_after", member.ops_after},
                       {"bytes_in", whole_number(member.bytes_in)},
                       {"bytes_out", whole_number(member.bytes_out)},
                       {"used_memory", known_or_null(member.used_memory)},
                       {"maxmemory", known_or_null(member.max_memory)},
                       {"memory_peak", known_or_null(member.memory_peak)},
                       {"memory_after", known_or_null(member.memory_after)},
                       {"has_room", member.has_room}});
  }
  return members;
}

bool within_origin_limit(const plan::ForecastInputs& in, const plan::StepForecast& step) {
  return step.cold_origin_qps <= *in.origin_limit_qps;
}

json steps_json(const PlanReport& report) {
  const plan::Forecast& out = report.out;
  json steps = json::array();
  for (const plan::StepForecast& step : out.steps) {
    steps.push_back({{"percent", step.percent},
                     {"slices", step.slices},
                     {"moved_share", step.cold_share},
                     {"keys", whole_number(step.keys)},
                     {"bytes", whole_number(step.bytes)},
                     {"seconds", step.seconds},
                     {"cold_origin_qps", step.cold_origin_qps},
                     {"cold_extra_qps", step.cold_extra_qps},
                     {"cold_hit_rate", step.cold_hit_rate},
                     {"within_limit", report.in.origin_limit_qps ? json(within_origin_limit(report.in, step))
                                                                 : json(nullptr)},
                     {"live_origin_qps", out.origin_live},
                     {"live_extra_qps", out.origin_live - out.origin_now}});
  }
  return steps;
}

json judgement_json(const plan::Judgement& judgement) {
  return {{"verdict", plan::to_string(judgement.verdict)}, {"reason", judgement.reason}};
}

}  // namespace

std::string to_json(const PlanReport& report) {
  const plan::Forecast& out = report.out;
  json inputs = json::object(), sources = json::object(), safe_step = nullptr;
  for (const PlanFigure& figure : report.figures) {
    inputs[figure.name] = known_or_null(figure.value);
    sources[figure.name] = figure.source;
  }
  inputs["steps"] = report.in.steps;
  if (out.safe_step) {
    safe_step = {{"keyspace_share", out.safe_step->keyspace_share},
                 {"moved_share", out.safe_step->cold_share},
                 {"slices", out.safe_step->slices},
                 {"steps", out.safe_step->steps}};
  }
  const json all = {{"moved_share", out.moved_share},
                    {"minimum_share", out.minimum_share},
                    {"between_unchanged_share", out.between_unchanged_share},
                    {"exact", out.exact},
                    {"carried_over", report.carried_over},
                    {"keys_to_move", whole_number(out.keys_to_move)},
                    {"bytes_to_move", whole_number(out.bytes_to_move)},
                    {"duration_seconds", out.seconds},
                    {"duration_bound_by", out.bound_by_bytes ? "bytes" : "keys"},
                    {"pairs", plan_pairs_json(out)},
                    {"members", members_json(out)},
                    {"steps", steps_json(report)},
                    {"origin_qps",
                     {{"now", out.origin_now},
                      {"cold_switch", out.origin_cold},
                      {"live_resize", out.origin_live},
                      {"limit", known_or_null(report.in.origin_limit_qps)}}},
                    {"hit_rate_cold_switch", out.hit_rate_cold},
                    {"largest_safe_step", std::move(safe_step)},
                    {"inputs", std::move(inputs)},
                    {"sources", std::move(sources)},
                    {"warnings", out.warnings},
                    {"can_resize_live", out.can_resize_live},
                    {"cold_switch", judgement_json(out.cold)},
                    {"live_resize", judgement_json(out.live)},
                    {"verdict", plan::to_string(out.verdict)},
                    {"reason", out.reason}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace ringshift::resize
