#include "discovery/json_look.h"

#include <fmt/format.h>

#include <charconv>

#include "base/encoding.h"
#include "topology/reader.h"

namespace ringshift::discovery {

using topology::Node;

void JsonLook::problem(std::string_view place, std::string_view what) {
  if (wrong_.empty()) wrong_ = fmt::format("{}: {}", topology::shown(place), what);
}

const Node& JsonLook::part(const Node& parent, std::string_view name, Node::Kind kind,
                           std::string_view what) {
  static const Node kEmptyMap{Node::Kind::map, 0, {}, {}, {}};
  static const Node kEmptyList{Node::Kind::list, 0, {}, {}, {}};
  const Node& empty = kind == Node::Kind::map ? kEmptyMap : kEmptyList;
  const Node* found = parent.find(name);
  if (found == nullptr || found->kind == Node::Kind::null) return empty;
  if (found->kind == kind) return *found;
  problem(name, fmt::format("is no {}", what));
  return empty;
}

const Node& JsonLook::map(const Node& parent, std::string_view name) {
  return part(parent, name, Node::Kind::map, "object");
}
const Node& JsonLook::list(const Node& parent, std::string_view name) {
  return part(parent, name, Node::Kind::list, "list");
}

std::string JsonLook::text(const Node& parent, std::string_view name) {
  const Node* found = parent.find(name);
  if (found == nullptr || found->kind == Node::Kind::null) return {};
  if (found->kind == Node::Kind::quoted) return found->text;
  problem(name, "is no text");
  return {};
}

std::optional<std::uint64_t> JsonLook::whole(const Node& parent, std::string_view name) {
  const Node* found = parent.find(name);
  if (found == nullptr || found->kind == Node::Kind::null) return std::nullopt;
  const auto value = found->kind == Node::Kind::plain ? base::parse_u64(found->text) : std::nullopt;
  if (!value) problem(name, "is no whole number");
  return value;
}

std::optional<double> JsonLook::number(const Node& parent, std::string_view name) {
  const Node* found = parent.find(name);
  if (found == nullptr || found->kind == Node::Kind::null) return std::nullopt;
  double value = 0;
  const std::string& text = found->text;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (found->kind == Node::Kind::plain && error == std::errc() && end == text.data() + text.size())
    return value;
  problem(name, "is no number");
  return std::nullopt;
}

std::optional<bool> JsonLook::flag(const Node& parent, std::string_view name) {
  const Node* found = parent.find(name);
  if (found == nullptr || found->kind == Node::Kind::null) return std::nullopt;
  if (found->kind == Node::Kind::plain && (found->text == "true" || found->text == "false"))
    return found->text == "true";
  problem(name, "is neither true nor false");
  return std::nullopt;
}

bool JsonLook::is_map(const Node& element, std::string_view what) {
  if (element.kind == Node::Kind::map) return true;
  problem(what, "is no object");
  return false;
}

std::string JsonLook::scalar(const Node& element, std::string_view what) {
  if (element.kind == Node::Kind::list || element.kind == Node::Kind::map)
    problem(what, "is no single value");
  return element.text;
}

}  // namespace ringshift::discovery
