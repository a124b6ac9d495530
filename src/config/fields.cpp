#include "config/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "topology/reader.h"

namespace ringshift::config {
namespace {

using Kind = YamlNode::Kind;
using topology::shown;

}  // namespace

std::string suggestion(std::string_view wrong, const std::vector<std::string_view>& known) {
  const std::string near = topology::nearest(wrong, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

void Fields::problem(const Mark& mark, std::string_view message) {
  if (failed()) return;
  error_ = Error{ErrorKind::invalid, fmt::format("{}:{}:{}: {}", place_, mark.line, mark.column, message)};
}

bool Fields::map(const YamlNode& node, std::string_view what, std::initializer_list<std::string_view> names) {
  if (node.kind != Kind::map) {
    problem(node.mark, fmt::format("{} is not a map of {}", what, fmt::join(names, ", ")));
    return false;
  }
  for (const YamlNode::Key& key : node.keys) {
    if (std::ranges::find(names, key.name) != names.end()) continue;
    const std::string near = suggestion(key.name, names);
    problem(key.mark, fmt::format("{} has no field {}{}", what, shown(key.name),
                                  near.empty() ? fmt::format("; it has {}", fmt::join(names, ", ")) : near));
  }
  return !failed();
}

bool Fields::list(const YamlNode& node, std::string_view what) {
  if (node.kind != Kind::list) problem(node.mark, fmt::format("{} is not a list", what));
  return !failed();
}

const YamlNode* Fields::find(const YamlNode& map, std::string_view name) const {
  if (failed()) return nullptr;
  const auto found = std::ranges::find(map.keys, name, &YamlNode::Key::name);
  return found == map.keys.end() ? nullptr : &map.items[static_cast<std::size_t>(found - map.keys.begin())];
}

std::string Fields::text(const YamlNode& node, std::string_view what) {
  if (node.kind == Kind::scalar) return node.text;
  problem(node.mark, fmt::format("{} is not a text", what));
  return {};
}

std::vector<std::string> Fields::texts(const YamlNode& node, std::string_view what) {
  if (node.kind != Kind::list) return {text(node, what)};
  std::vector<std::string> all;
  for (const YamlNode& item : node.items) all.push_back(text(item, what));
  return all;
}

std::optional<std::uint64_t> Fields::whole(const YamlNode& node, std::string_view what, std::uint64_t least,
                                           std::uint64_t most) {
  std::uint64_t value = 0;
  const std::string& digits = node.text;
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (node.kind == Kind::scalar && wrong == std::errc{} && end == digits.data() + digits.size() &&
      value >= least && value <= most) {
    return value;
  }
  problem(node.mark,
          fmt::format("{} is {}, not a whole number from {} to {}", what, shown(digits), least, most));
  return std::nullopt;
}

double Fields::rate(const YamlNode& node, std::string_view what) {
  constexpr double kMost = 1e12;
  double value = 0;
  const std::string& digits = node.text;
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (node.kind == Kind::scalar && wrong == std::errc{} && end == digits.data() + digits.size() &&
      std::isfinite(value) && value >= 0.001 && value <= kMost) {
    return value;
  }
  problem(node.mark, fmt::format("{} is {}, not a number from 0.001 to {}", what, shown(digits), kMost));
  return 0;
}

bool Fields::flag(const YamlNode& node, std::string_view what) {
  if (node.kind == Kind::scalar && (node.text == "true" || node.text == "yes")) return true;
  if (node.kind == Kind::scalar && (node.text == "false" || node.text == "no")) return false;
  problem(node.mark, fmt::format("{} is {}, neither true nor false", what, shown(node.text)));
  return false;
}

}  // namespace ringshift::config
