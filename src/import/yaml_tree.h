// A YAML document as a small tree in which everything knows its line and column.
//
// Built for hostile input: depth and nodes are bounded; anchors, aliases (with which a kilobyte grows to
// gigabytes), duplicate keys and a second document are errors.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "import/mark.h"
#include "ringshift/error.h"

namespace ringshift::importing {

inline constexpr std::size_t kMaxYamlDepth = 8;
inline constexpr std::size_t kMaxYamlNodes = 200'000;

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  struct Key {
    std::string name;
    Mark mark;
  };
  Kind kind = Kind::null;
  Mark mark;
  std::string text;             // scalar
  std::vector<YamlNode> items;  // list; map: the values
  std::vector<Key> keys;        // map: keys[i] is of items[i]
};

[[nodiscard]] Result<YamlNode> parse_yaml(std::string_view text, std::string_view place);

}  // namespace ringshift::importing
