#include "coord/ejected.h"

#include <nlohmann/json.hpp>

namespace ringshift::coord {

std::string ejected_json(const std::set<std::string>& ids) {
  return nlohmann::json(ids).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::set<std::string> parse_ejected(std::string_view text) {
  const auto list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::set<std::string> out;
  if (!list.is_array()) return out;
  for (const auto& id : list)
    if (id.is_string()) out.insert(id.get<std::string>());
  return out;
}

}  // namespace ringshift::coord
