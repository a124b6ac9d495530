#include "topology/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "base/encoding.h"

namespace ringshift::topology {
namespace {

using Names = std::span<const std::string_view>;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

const char* kind_name(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::plain:
    case Node::Kind::quoted:
      return "a single value";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a map";
  }
  return "?";
}

bool is_scalar(const Node& node) { return node.kind == Node::Kind::plain || node.kind == Node::Kind::quoted; }

std::string alternatives(Names names) { return fmt::format("{}", fmt::join(names, ", ")); }

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<Unit, 8> kUnits{{{"", 1},
                                      {"B", 1},
                                      {"KiB", 1024.0},
                                      {"MiB", 1024.0 * 1024},
                                      {"GiB", 1024.0 * 1024 * 1024},
                                      {"KB", 1e3},
                                      {"MB", 1e6},
                                      {"GB", 1e9}}};

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  if (const auto whole = base::parse_u64(text)) return whole;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= 0)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const Unit& known : kUnits) {
    if (known.name.empty() || known.name != unit) continue;
    const double bytes = value * known.bytes;
    if (bytes >= 0x1p63 || bytes != std::floor(bytes)) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
  }
  return std::nullopt;
}

}  // namespace

std::string shown(std::string_view value) {
  constexpr std::size_t kMaxShown = 60;
  std::string out = "'";
  for (const char c : value.substr(0, kMaxShown)) out.push_back(c >= 0x20 && c != 0x7f ? c : '?');
  return out + (value.size() > kMaxShown ? "...'" : "'");
}

std::string describe(std::string_view place, int line, std::string_view path, std::string_view message) {
  std::string out(place);
  if (line > 0) out += fmt::format(":{}", line);
  if (!path.empty()) out += fmt::format(": {}", path);
  return out + fmt::format(": {}", message);
}

std::string nearest(std::string_view wrong, Names names) {
  constexpr std::size_t kLongest = 64;  // A longer word is near nothing that we know.
  if (wrong.size() > kLongest) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, wrong.size() / 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(wrong, name);
    if (distance < best_distance && distance < name.size()) {
      best = name;
      best_distance = distance;
    }
  }
  return std::string(best);
}

std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string at(std::string_view path, std::size_t index) { return fmt::format("{}[{}]", path, index); }

void Reader::problem(int line, const std::string& path, std::string_view message) {
  if (!error_) error_ = Error{ErrorKind::invalid, describe(place_, line, path, message)};
}

bool Reader::map(const Node& node, const std::string& path, std::initializer_list<std::string_view> fields) {
  const Names names(fields.begin(), fields.size());
  if (failed()) return false;
  if (node.kind != Node::Kind::map) {
    problem(
        node.line, path,
        fmt::format("{} where a map with the fields {} belongs", kind_name(node.kind), alternatives(names)));
    return false;
  }
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    const std::string& name = node.names[i];
    const Node& value = node.items[i];
    if (std::ranges::find(names, std::string_view(name)) != names.end()) continue;
    const std::string near = nearest(name, names);
    problem(value.line != 0 ? value.line : node.line, path,
            near.empty() ? fmt::format("unknown field {}: known are {}", shown(name), alternatives(names))
                         : fmt::format("unknown field {}: did you mean '{}'?", shown(name), near));
    return false;
  }
  return true;
}

bool Reader::list(const Node& node, const std::string& path) {
  if (failed()) return false;
  if (node.kind == Node::Kind::list) return true;
  problem(node.line, path, fmt::format("{} where a list belongs", kind_name(node.kind)));
  return false;
}

std::string Reader::scalar(const Node& node, const std::string& path) {
  if (is_scalar(node)) return node.text;
  problem(node.line, path, fmt::format("{} where a single value belongs", kind_name(node.kind)));
  return {};
}

void Reader::text(const Node& map, const std::string& path, std::string_view name, std::string& out,
                  bool required) {
  if (failed()) return;
  if (const Node* node = map.find(name)) {
    out = scalar(*node, join(path, name));
  } else if (required) {
    problem(map.line, path, fmt::format("the field '{}' is missing", name));
  }
}

void Reader::number(const Node& map, const std::string& path, std::string_view name, double& out) {
  const Node* node = map.find(name);
  if (failed() || node == nullptr) return;
  const std::string& text = node->text;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (node->kind == Node::Kind::plain && error == std::errc() && end == text.data() + text.size()) {
    out = value;
  } else {
    problem(node->line, join(path, name),
            is_scalar(*node) ? fmt::format("{} is not a number{}", shown(text),
                                           node->kind == Node::Kind::quoted ? ": remove the quotes" : "")
                             : fmt::format("{} where a number belongs", kind_name(node->kind)));
  }
}

std::optional<std::uint64_t> Reader::scalar_whole(const Node& node, const std::string& path,
                                                  std::uint64_t max) {
  if (failed()) return std::nullopt;
  const auto value = node.kind == Node::Kind::plain ? base::parse_u64(node.text) : std::nullopt;
  if (value && *value <= max) return value;
  problem(node.line, path,
          is_scalar(node) ? fmt::format("{} is not a whole number from 0 to {}", shown(node.text), max)
                          : fmt::format("{} where a whole number belongs", kind_name(node.kind)));
  return std::nullopt;
}

void Reader::whole(const Node& map, const std::string& path, std::string_view name, std::uint64_t max,
                   std::uint64_t& out) {
  const Node* node = map.find(name);
  if (node == nullptr) return;
  if (const auto value = scalar_whole(*node, join(path, name), max)) out = *value;
}

void Reader::whole(const Node& map, const std::string& path, std::string_view name, std::uint32_t& out) {
  std::uint64_t value = out;
  whole(map, path, name, std::numeric_limits<std::uint32_t>::max(), value);
  out = static_cast<std::uint32_t>(value);
}

void Reader::whole(const Node& map, const std::string& path, std::string_view name, std::uint16_t& out) {
  std::uint64_t value = out;
  whole(map, path, name, std::numeric_limits<std::uint16_t>::max(), value);
  out = static_cast<std::uint16_t>(value);
}

void Reader::bytes(const Node& map, const std::string& path, std::string_view name, std::uint64_t& out) {
  const Node* node = map.find(name);
  if (failed() || node == nullptr) return;
  const auto value = is_scalar(*node) ? parse_bytes(node->text) : std::nullopt;
  if (value) {
    out = *value;
  } else {
    problem(
        node->line, join(path, name),
        fmt::format("{} is not a size: write a number of bytes, or one with KiB, MiB or GiB, such as 50MiB",
                    shown(node->text)));
  }
}

void Reader::flag(const Node& map, const std::string& path, std::string_view name, bool& out) {
  if (const auto value = word(map, path, name, {"false", "true"})) out = *value == 1;
}

std::optional<std::size_t> Reader::word(const Node& map, const std::string& path, std::string_view name,
                                        std::initializer_list<std::string_view> words) {
  return word(map, path, name, Names(words.begin(), words.size()));
}

std::optional<std::size_t> Reader::word(const Node& map, const std::string& path, std::string_view name,
                                        Names words) {
  const Node* node = map.find(name);
  if (failed() || node == nullptr) return std::nullopt;
  const std::string value = scalar(*node, join(path, name));
  if (failed()) return std::nullopt;
  const auto found = std::ranges::find(words, std::string_view(value));
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  const std::string near = nearest(value, words);
  problem(node->line, join(path, name),
          near.empty() ? fmt::format("{} is not one of {}", shown(value), alternatives(words))
                       : fmt::format("{} is not one of {}: did you mean '{}'?", shown(value),
                                     alternatives(words), near));
  return std::nullopt;
}

}  // namespace ringshift::topology
