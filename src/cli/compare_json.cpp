// `ringshift compare --json`: one object. Shares are 0..1; what is infinite or not known is null.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/encoding.h"
#include "cli/compare.h"

namespace ringshift::cli::compare {
namespace {

using nlohmann::ordered_json;
using plan::compare::Balance;
using plan::compare::Row;

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json balance(const Balance& balance) {
  return {{"max_avg", number(balance.max_avg)},
          {"max_min", number(balance.max_min)},
          {"relative_sd", number(balance.sd)}};
}

ordered_json cost(const plan::compare::Cost& cost) {
  return {{"lookup_ns", cost.lookup_ns}, {"bytes", cost.bytes}, {"build_us", cost.build_us}};
}

ordered_json row_json(const Row& row, const Report& report) {
  ordered_json out = {{"name", row.name},
                      {"family", plan::compare::to_string(row.family)},
                      {"refused", row.refused.empty() ? ordered_json() : ordered_json(row.refused)}};
  if (!row.refused.empty()) return out;
  out["moved_share"] = row.measured.share;
  out["moved_share_exact"] = row.exact ? ordered_json(row.exact->share) : ordered_json();
  out["minimum_share"] = row.minimum;
  out["between_unchanged"] = row.measured.between_unchanged;
  out["between_unchanged_exact"] = row.exact ? ordered_json(row.exact->between_unchanged) : ordered_json();
  out["before"] = balance(row.before);
  out["after"] = balance(row.after);
  out["expected"] = row.expected ? balance(*row.expected) : ordered_json();
  out.update(cost(row.cost));
  ordered_json loads = ordered_json::array();
  for (std::size_t i = 0; i < row.loads.size(); ++i)
    loads.push_back({{"member", report.change.after[i].id}, {"keys", row.loads[i]}});
  out["loads"] = std::move(loads);
  out["warnings"] = row.warnings;
  return out;
}

ordered_json members(const std::vector<topology::Member>& list) {
  ordered_json out = ordered_json::array();
  for (const auto& member : list)
    out.push_back({{"id", member.id}, {"address", member.address}, {"weight", member.weight}});
  return out;
}

}  // namespace

std::string json(const Report& report) {
  ordered_json out = {
      {"change", report.title},
      {"members", {{"before", members(report.change.before)}, {"after", members(report.change.after)}}},
      {"keys", {{"source", report.keys_source}, {"count", report.key_count}}},
      {"minimum_share", report.minimum},
      {"placements", ordered_json::array()}};
  for (const Row& row : report.rows) out["placements"].push_back(row_json(row, report));
  if (report.has_skew) {
    ordered_json prefixes = ordered_json::array();
    for (const auto& each : report.skew) {
      prefixes.push_back({{"prefix", base::printable(each.prefix, each.prefix.size())},
                          {"keys", each.keys},
                          {"share", each.share},
                          {"max_avg", number(each.max_avg)},
                          {"max_avg_by_chance", number(each.max_avg_by_chance)},
                          {"heaviest", each.heaviest}});
    }
    out["skew"] = {{"placement", report.skew_placement}, {"prefixes", std::move(prefixes)}};
  }
  ordered_json curve = ordered_json::array();
  for (const auto& point : report.curve) {
    ordered_json one = {
        {"points", point.points}, {"exact", balance(point.exact)}, {"expected", balance(point.expected)}};
    one.update(cost(point.cost));
    curve.push_back(std::move(one));
  }
  out["ring_by_points"] = std::move(curve);
  return out.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

std::string json(const ArticleReport& report) {
  ordered_json figures = ordered_json::object(), recorded = ordered_json::array();
  for (const auto& figure : report.figures.figures) {
    const ordered_json::json_pointer pointer(figure.pointer);
    switch (figure.kind) {
      case plan::compare::Figure::Kind::number:
        // Whole numbers as such, as they are recorded.
        if (figure.number == std::floor(figure.number)) {
          figures[pointer] = static_cast<std::int64_t>(figure.number);
        } else {
          figures[pointer] = figure.number;
        }
        break;
      case plan::compare::Figure::Kind::list:
        figures[pointer] = figure.list;
        break;
      case plan::compare::Figure::Kind::text:
        figures[pointer] = figure.text;
        break;
    }
    if (!figure.computed) recorded.push_back(figure.pointer);
  }
  ordered_json claims = ordered_json::array();
  for (const auto& claim : report.figures.claims) {
    claims.push_back({{"article", claim.article},
                      {"claim", claim.claim},
                      {"holds", claim.holds ? ordered_json(*claim.holds) : ordered_json()},
                      {"truth", claim.truth}});
  }
  ordered_json lookups = ordered_json::array(), hashes = ordered_json::object(), sets = ordered_json::array();
  for (const auto& each : report.lookups) {
    lookups.push_back({{"points", each.points},
                       {"linear_ns", each.linear_ns},
                       {"binary_ns", each.binary_ns},
                       {"map_ns", each.map_ns},
                       {"ringshift_ns", each.ours_ns},
                       {"array_bytes", each.array_bytes},
                       {"map_bytes", each.map_bytes},
                       {"ringshift_bytes", each.ours_bytes}});
  }
  for (const auto& hash : report.hashes) hashes[hash.name] = hash.ns;
  for (const SortedSetCost& set : report.sorted_sets) {
    sets.push_back({{"points", set.points},
                    {"call_us", set.call_us},
                    {"pipelined_us", set.pipelined_us},
                    {"bytes", set.bytes}});
  }
  const ordered_json out = {{"claims", std::move(claims)},
                            {"figures", std::move(figures)},
                            {"recorded_not_recomputed", std::move(recorded)},
                            {"cost",
                             {{"members", report.members},
                              {"lookups", std::move(lookups)},
                              {"hash_ns", std::move(hashes)},
                              {"redis_sorted_set", std::move(sets)},
                              {"redis_sorted_set_skipped",
                               report.skipped.empty() ? ordered_json() : ordered_json(report.skipped)}}}};
  return out.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

}  // namespace ringshift::cli::compare
