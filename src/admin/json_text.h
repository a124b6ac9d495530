// JSON as text, put together field by field: what a thousand members' state is made of four times a second,
// and compared field by field, without a tree in between.
//
// Pure. Every function gives a whole JSON value.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringshift::admin {

inline constexpr std::string_view kNull = "null";

[[nodiscard]] std::string string_json(std::string_view text);  // What is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::string whole(std::uint64_t value);
[[nodiscard]] std::string whole(std::int64_t value);
[[nodiscard]] std::string truth(bool value);
// Four significant digits; null for what is no number. So a figure that hardly changed is the same text.
[[nodiscard]] std::string figure(double value);
[[nodiscard]] std::string figure(const std::optional<double>& value);
[[nodiscard]] std::string share(double value);  // Eight digits: shares add up.
[[nodiscard]] std::string share(const std::optional<double>& value);
[[nodiscard]] std::string whole(const std::optional<std::uint64_t>& value);
[[nodiscard]] std::string list(const std::vector<std::string>& values);  // Of JSON values.
[[nodiscard]] std::string string_list(const std::vector<std::string>& texts);

// An object in the making, and what it was made of.
class Object {
 public:
  Object& add(std::string_view name, std::string value) {
    fields_.emplace_back(name, std::move(value));
    return *this;
  }
  [[nodiscard]] std::string text() const;
  // Those fields that `before` has not, or has otherwise, after `kept` of the first ones (its id); "" when
  // there is none. REQUIRES: made by the same function.
  [[nodiscard]] std::string changes(const Object& before, std::size_t kept) const;
  bool operator==(const Object&) const = default;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

// The same of many objects with ids: what a watcher must be told. Bound: that of the objects.
class Objects {
 public:
  // {"changed": [...], "removed": [...]}; "" when nothing is new. `next` becomes what is known.
  [[nodiscard]] std::string update(std::map<std::string, Object> next);
  [[nodiscard]] const std::map<std::string, Object>& known() const noexcept { return known_; }

 private:
  std::map<std::string, Object> known_;
};

}  // namespace ringshift::admin
