#include "resize/decisions.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/encoding.h"

namespace ringshift::resize {

std::string to_json(const Decision& decision) {
  nlohmann::json out = {{"at_ms", decision.at}, {"event", decision.event}, {"text", decision.text}};
  if (!decision.by.empty()) out["by"] = decision.by;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Decision> parse_decision(std::string_view text) {
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return fail(ErrorKind::invalid, "log entry: not a JSON object");
  Decision decision;
  try {
    decision.at = object.value("at_ms", UnixMs{0});
    decision.event = object.value("event", std::string());
    decision.text = object.value("text", std::string());
    decision.by = object.value("by", std::string());
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::invalid, std::string("log entry: ") + error.what());
  }
  return decision;
}

std::string decision_key(const coord::ClusterKeys& keys, std::string_view resize_id, std::uint64_t number) {
  return fmt::format("{}{}/{:06}", keys.log(), resize_id, number);
}

DecisionPlace place_of_decision(const coord::ClusterKeys& keys, std::string_view key) {
  if (!key.starts_with(keys.log())) return {};
  key.remove_prefix(keys.log().size());
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return {};
  const auto number = base::parse_u64(key.substr(slash + 1));
  if (!number) return {};
  return {std::string(key.substr(0, slash)), *number};
}

bool OldestResizeFirst::operator()(const std::string& a, const std::string& b) const {
  const auto epoch = [](const std::string& id) {
    return base::parse_u64(std::string_view(id).substr(0, id.find('-'))).value_or(0);
  };
  const std::uint64_t first = epoch(a), second = epoch(b);
  return first != second ? first < second : a < b;
}

LoggedResizes read_decisions(const coord::ClusterKeys& keys, const std::vector<coord::KeyValue>& kvs) {
  LoggedResizes logged;
  for (const coord::KeyValue& kv : kvs) {
    const DecisionPlace place = place_of_decision(keys, kv.key);
    if (place.resize_id.empty()) continue;
    if (const Result<Decision> decision = parse_decision(kv.value))
      logged[place.resize_id].push_back(*decision);
  }
  return logged;
}

}  // namespace ringshift::resize
