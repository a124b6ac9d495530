#include "admin/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ringshift::admin {

std::string string_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string whole(std::uint64_t value) { return std::to_string(value); }
std::string whole(std::int64_t value) { return std::to_string(value); }
std::string truth(bool value) { return value ? "true" : "false"; }
std::string figure(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : std::string(kNull);
}
std::string figure(const std::optional<double>& value) { return value ? figure(*value) : std::string(kNull); }
std::string share(double value) {
  return std::isfinite(value) ? fmt::format("{:.8g}", value) : std::string(kNull);
}
std::string share(const std::optional<double>& value) { return value ? share(*value) : std::string(kNull); }
std::string whole(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : std::string(kNull);
}

std::string list(const std::vector<std::string>& values) {
  std::string out = "[";
  for (const std::string& value : values) {
    if (out.size() > 1) out += ',';
    out += value;
  }
  return out + "]";
}

std::string string_list(const std::vector<std::string>& texts) {
  std::vector<std::string> values;
  values.reserve(texts.size());
  for (const std::string& text : texts) values.push_back(string_json(text));
  return list(values);
}

std::string Object::text() const {
  std::string out = "{";
  for (const auto& [name, value] : fields_) {
    if (out.size() > 1) out += ',';
    out += '"';
    out += name;
    out += "\":";
    out += value;
  }
  return out + "}";
}

std::string Object::changes(const Object& before, std::size_t kept) const {
  Object news;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const bool same = i < before.fields_.size() && fields_[i] == before.fields_[i];
    if (i < kept || !same) news.fields_.push_back(fields_[i]);
  }
  return news.fields_.size() > kept ? news.text() : "";
}

std::string Objects::update(std::map<std::string, Object> next) {
  std::vector<std::string> changed, removed;
  for (const auto& [id, object] : next) {
    const auto before = known_.find(id);
    std::string news = before == known_.end() ? object.text() : object.changes(before->second, 1);
    if (!news.empty()) changed.push_back(std::move(news));
  }
  for (const auto& [id, object] : known_) {
    if (!next.contains(id)) removed.push_back(id);
  }
  known_ = std::move(next);
  if (changed.empty() && removed.empty()) return "";
  return Object().add("changed", list(changed)).add("removed", string_list(removed)).text();
}

}  // namespace ringshift::admin
