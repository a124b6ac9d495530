// Reads a Node tree field by field. The first problem is kept, with its place, and everything after it is
// skipped: so a parse function reads like the document it describes, and asks failed() once at its end.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "topology/document.h"

namespace ringshift::topology {

class Reader {
 public:
  explicit Reader(std::string_view place) : place_(place) {}

  // True when `node` is a map and each of its fields is one of `names`.
  bool map(const Node& node, const std::string& path, std::initializer_list<std::string_view> names);
  bool list(const Node& node, const std::string& path);

  // Each leaves `out` alone when the field is absent (unless required) or wrong.
  void text(const Node& map, const std::string& path, std::string_view name, std::string& out,
            bool required = false);
  void number(const Node& map, const std::string& path, std::string_view name, double& out);
  void whole(const Node& map, const std::string& path, std::string_view name, std::uint64_t max,
             std::uint64_t& out);
  void whole(const Node& map, const std::string& path, std::string_view name, std::uint32_t& out);
  void whole(const Node& map, const std::string& path, std::string_view name, std::uint16_t& out);
  void bytes(const Node& map, const std::string& path, std::string_view name, std::uint64_t& out);  // 50MiB
  void flag(const Node& map, const std::string& path, std::string_view name, bool& out);

  // The place in `words` of the field's value; nullopt when absent or wrong.
  std::optional<std::size_t> word(const Node& map, const std::string& path, std::string_view name,
                                  std::initializer_list<std::string_view> words);
  std::optional<std::size_t> word(const Node& map, const std::string& path, std::string_view name,
                                  std::span<const std::string_view> words);

  [[nodiscard]] std::string scalar(const Node& node, const std::string& path);  // A text in a list.
  [[nodiscard]] std::optional<std::uint64_t> scalar_whole(const Node& node, const std::string& path,
                                                          std::uint64_t max);

  void problem(int line, const std::string& path, std::string_view message);
  [[nodiscard]] bool failed() const noexcept { return error_.has_value(); }
  [[nodiscard]] Error error() const { return *error_; }

 private:
  std::string place_;
  std::optional<Error> error_;
};

// "place:line: path: message"; without a line "place: path: message".
[[nodiscard]] std::string describe(std::string_view place, int line, std::string_view path,
                                   std::string_view message);

// The name in `names` nearest to `wrong`, "" when none is near.
[[nodiscard]] std::string nearest(std::string_view wrong, std::span<const std::string_view> names);

[[nodiscard]] std::string join(const std::string& path, std::string_view name);
[[nodiscard]] std::string at(std::string_view path, std::size_t index);
// A value as errors show it: quoted, cut at 60 bytes, control characters as '?'.
[[nodiscard]] std::string shown(std::string_view value);

}  // namespace ringshift::topology
