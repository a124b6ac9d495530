// Reads another server's JSON: what is absent or null is empty, what has another form than it should have
// makes the whole answer unusable. The first such place is kept; one look at wrong() at the end is enough.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/document.h"

namespace ringshift::discovery {

class JsonLook {
 public:
  using Node = topology::Node;

  const Node& map(const Node& parent, std::string_view name);   // An empty map when absent.
  const Node& list(const Node& parent, std::string_view name);  // An empty list when absent.
  std::string text(const Node& parent, std::string_view name);
  std::optional<std::uint64_t> whole(const Node& parent, std::string_view name);
  std::optional<double> number(const Node& parent, std::string_view name);
  std::optional<bool> flag(const Node& parent, std::string_view name);
  // Whether an element of a list is a map.
  bool is_map(const Node& element, std::string_view what);
  // A text in a list, or in a map of any names.
  std::string scalar(const Node& element, std::string_view what);

  void problem(std::string_view place, std::string_view what);
  [[nodiscard]] bool bad() const noexcept { return !wrong_.empty(); }
  [[nodiscard]] const std::string& wrong() const noexcept { return wrong_; }

 private:
  const Node& part(const Node& parent, std::string_view name, Node::Kind kind, std::string_view what);
  std::string wrong_;
};

}  // namespace ringshift::discovery
