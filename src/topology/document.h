// A YAML or JSON text as a small tree with line numbers, before anything in it has a meaning.
//
// Built for hostile input: the text, its depth and its nodes are bounded; anchors and aliases (with which a
// kilobyte grows to gigabytes), duplicate keys and several documents in one text are errors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::topology {

inline constexpr std::size_t kMaxTextBytes = 8U << 20;  // 10,000 members need about 1 MiB.
inline constexpr std::size_t kMaxDepth = 16;
inline constexpr std::size_t kMaxNodes = 400'000;

struct Node {
  enum class Kind : std::uint8_t { null, plain, quoted, list, map };  // plain: could be a number or a word.
  Kind kind = Kind::null;
  int line = 0;                    // From 1; 0 when not known.
  std::string text;                // plain, quoted.
  std::vector<Node> items;         // list; map: the fields' values, in the text's order.
  std::vector<std::string> names;  // map: names[i] is the unique name of items[i].

  [[nodiscard]] const Node* find(std::string_view name) const noexcept;
};

// JSON when it is JSON, else YAML. Errors begin with `place`.
[[nodiscard]] Result<Node> parse_document(std::string_view text, std::string_view place);
[[nodiscard]] Result<Node> parse_json_document(std::string_view text, std::string_view place);

// The line of a path such as "members[2].weight", or of the nearest node around it; 0 when not known.
[[nodiscard]] int line_of(const Node& root, std::string_view path) noexcept;

namespace detail {
[[nodiscard]] Result<Node> parse_yaml(std::string_view text, std::string_view place);
[[nodiscard]] Result<Node> parse_json(std::string_view text, std::string_view place);

// Builds the tree from a parser's events, and holds the bounds. Each call gives "" or what is wrong.
class Builder {
 public:
  [[nodiscard]] std::string scalar(Node::Kind kind, int line, std::string_view text);
  [[nodiscard]] std::string begin(Node::Kind kind, int line);
  void end();
  [[nodiscard]] std::string key(int line, std::string_view name);  // JSON names its keys as such.
  [[nodiscard]] Node take() { return std::move(root_); }

 private:
  struct Open {
    Node node;
    std::string pending_key;
    bool has_key = false;
    std::set<std::string, std::less<>> names;  // To find duplicates.
  };
  void add(Node node);

  Node root_;
  std::vector<Open> open_;
  std::size_t nodes_ = 0;
};
}  // namespace detail

}  // namespace ringshift::topology
