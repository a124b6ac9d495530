#include "topology/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ringshift::topology {

const Node* Node::find(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return &items[i];
  }
  return nullptr;
}

namespace {

Status check_size(std::string_view text, std::string_view place) {
  if (text.size() <= kMaxTextBytes) return {};
  return fail(ErrorKind::invalid,
              fmt::format("{}: the text has {} bytes, more than the {} allowed: is it the right file?", place,
                          text.size(), kMaxTextBytes));
}

}  // namespace

Result<Node> parse_document(std::string_view text, std::string_view place) {
  if (const Status size = check_size(text, place); !size) return std::unexpected(size.error());
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    // Real JSON has escapes that YAML lacks; what only looks like it may still be a YAML flow mapping.
    if (Result<Node> json = detail::parse_json(text, place)) return json;
  }
  return detail::parse_yaml(text, place);
}

Result<Node> parse_json_document(std::string_view text, std::string_view place) {
  if (const Status size = check_size(text, place); !size) return std::unexpected(size.error());
  return detail::parse_json(text, place);
}

int line_of(const Node& root, std::string_view path) noexcept {
  const Node* node = &root;
  int line = root.line;
  while (!path.empty()) {
    if (path.front() == '.') path.remove_prefix(1);
    const Node* next = nullptr;
    if (path.starts_with('[')) {
      const auto close = path.find(']');
      if (close == std::string_view::npos) break;
      std::size_t index = 0;
      std::from_chars(path.data() + 1, path.data() + close, index);
      if (node->kind == Node::Kind::list && index < node->items.size()) next = &node->items[index];
      path.remove_prefix(close + 1);
    } else {
      const auto end = std::min(path.find_first_of(".["), path.size());
      next = node->find(path.substr(0, end));
      path.remove_prefix(end);
    }
    if (next == nullptr) break;
    node = next;
    if (node->line != 0) line = node->line;
  }
  return line;
}

namespace detail {

std::string Builder::scalar(Node::Kind kind, int line, std::string_view text) {
  if (!open_.empty() && open_.back().node.kind == Node::Kind::map && !open_.back().has_key) {
    if (kind == Node::Kind::null) return "a field without a name";
    return key(line, text);
  }
  if (++nodes_ > kMaxNodes) return fmt::format("more than {} values", kMaxNodes);
  Node node;
  node.kind = kind;
  node.line = line;
  node.text = text;
  add(std::move(node));
  return {};
}

std::string Builder::begin(Node::Kind kind, int line) {
  if (!open_.empty() && open_.back().node.kind == Node::Kind::map && !open_.back().has_key) {
    return "a list or a map where a field's name belongs";
  }
  if (open_.size() >= kMaxDepth) return fmt::format("nested more than {} levels deep", kMaxDepth);
  if (++nodes_ > kMaxNodes) return fmt::format("more than {} values", kMaxNodes);
  Open open;
  open.node.kind = kind;
  open.node.line = line;
  open_.push_back(std::move(open));
  return {};
}

void Builder::end() {
  Node done = std::move(open_.back().node);
  open_.pop_back();
  add(std::move(done));
}

std::string Builder::key(int line, std::string_view name) {
  Open& open = open_.back();
  if (!open.names.emplace(name).second) return fmt::format("the field '{}' appears twice", name);
  if (++nodes_ > kMaxNodes) return fmt::format("more than {} values", kMaxNodes);
  open.pending_key = name;
  open.has_key = true;
  if (open.node.line == 0) open.node.line = line;
  return {};
}

void Builder::add(Node node) {
  if (open_.empty()) {
    root_ = std::move(node);
    return;
  }
  Open& open = open_.back();
  if (open.node.kind == Node::Kind::map) {
    open.node.names.push_back(std::move(open.pending_key));
    open.has_key = false;
  }
  open.node.items.push_back(std::move(node));
}

}  // namespace detail
}  // namespace ringshift::topology
