#include <nlohmann/json.hpp>

#include "topology/discovery.h"

namespace ringshift::topology {
namespace {

nlohmann::json json_of_rule(const DiscoveryAssign& rule) {
  nlohmann::json out = {{"ids", rule.ids}};
  if (rule.weight) out["weight"] = *rule.weight;
  if (!rule.zone.empty()) out["zone"] = rule.zone;
  if (!rule.host.empty()) out["host"] = rule.host;
  if (!rule.label.empty()) out["label"] = rule.label, out["as"] = rule.as;
  return out;
}

}  // namespace

std::string to_json(const DiscoverySpec& spec) {
  using nlohmann::json;
  const auto time = [](std::chrono::milliseconds value) { return std::to_string(value.count()) + "ms"; };
  json source = {{"kind", spec.source.kind}};
  for (const auto& [name, values] : spec.source.options) source[name] = values;
  json assign = json::array();
  for (const DiscoveryAssign& rule : spec.assign) assign.push_back(json_of_rule(rule));
  json match = {{"ids", spec.match.ids}, {"addresses", spec.match.addresses}};
  match["namespace"] = spec.match.name_space;
  json remove = {{"after", time(spec.remove.after)}};
  remove["at_most"] = spec.remove.at_most;
  remove["floor"] = spec.remove.floor;
  json out = {{"source", std::move(source)}, {"admit", spec.admit_auto ? "auto" : "manual"}};
  out["match"] = std::move(match);
  out["assign"] = std::move(assign);
  out["cooldown"] = time(spec.cooldown);
  out["remove"] = std::move(remove);
  if (spec.eject) out["eject"] = *spec.eject;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace ringshift::topology
