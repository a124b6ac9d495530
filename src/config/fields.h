// Reads a YAML tree field by field. The first problem is kept, with its place, and what follows is skipped:
// so that a parse function reads like the document, and asks failed() at its end.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/yaml_tree.h"
#include "ringshift/error.h"

namespace ringshift::config {

using importing::Mark;
using importing::YamlNode;

class Fields {
 public:
  explicit Fields(std::string place) : place_(std::move(place)) {}

  // Whether `node` is a map of nothing but these, which the error then lists or suggests.
  bool map(const YamlNode& node, std::string_view what, std::initializer_list<std::string_view> names);
  bool list(const YamlNode& node, std::string_view what);
  // Null when there is no such field, or something was wrong before.
  [[nodiscard]] const YamlNode* find(const YamlNode& map, std::string_view name) const;

  std::string text(const YamlNode& node, std::string_view what);
  std::vector<std::string> texts(const YamlNode& node, std::string_view what);  // One, or a list.
  std::optional<std::uint64_t> whole(const YamlNode& node, std::string_view what, std::uint64_t least,
                                     std::uint64_t most);
  double rate(const YamlNode& node, std::string_view what);  // Above 0.
  bool flag(const YamlNode& node, std::string_view what);

  void problem(const Mark& mark, std::string_view message);
  [[nodiscard]] bool failed() const noexcept { return error_.has_value(); }
  [[nodiscard]] Error error() const { return *error_; }

 private:
  const std::string place_;
  std::optional<Error> error_;
};

// "; did you mean 'x'?", or "" when nothing is near.
[[nodiscard]] std::string suggestion(std::string_view wrong, const std::vector<std::string_view>& known);

}  // namespace ringshift::config
