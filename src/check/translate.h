// One key's operations as steps of the search: values become numbers, fields and members become cells.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/linearizable.h"
#include "check/operation.h"

namespace ringshift::check {

// Kinds whose state is a number that only grows.
[[nodiscard]] constexpr bool is_counter(Kind kind) noexcept {
  return kind == Kind::counter || kind == Kind::list || kind == Kind::stream;
}
// Kinds whose state is a cell for each field or member.
[[nodiscard]] constexpr bool has_fields(Kind kind) noexcept {
  return kind == Kind::hash || kind == Kind::set || kind == Kind::zset;
}

class Translator {
 public:
  // `operations`: of one key, sorted by invocation; must outlive this.
  explicit Translator(const std::vector<const Operation*>& operations);

  [[nodiscard]] bool too_many_fields() const { return cells_.size() > kMaxFields; }
  // REQUIRES: not too_many_fields().
  [[nodiscard]] std::vector<Step> run();

  // After run(): a read of a value that was never written; it needs no search. Null: none.
  [[nodiscard]] const Operation* invention() const { return invention_; }
  // After run(): the operation of each step; those that say nothing have none.
  [[nodiscard]] const std::vector<const Operation*>& kept() const { return kept_; }
  [[nodiscard]] std::string name(const State& state, Kind kind) const;

 private:
  std::int64_t number(const std::optional<std::string>& value, const Operation& op);
  std::uint8_t cell(const std::string& field) const { return static_cast<std::uint8_t>(cells_.at(field)); }
  void fill(Step& step, const Operation& op);
  void fill_register(Step& step, const Operation& op);
  void fill_counter(Step& step, const Operation& op);
  void fill_fields(Step& step, const Operation& op);
  void fill_whole(Step& step, const Operation& op);

  const std::vector<const Operation*>& operations_;
  std::unordered_map<std::string, std::size_t> written_;
  std::map<std::string, std::size_t> cells_;
  std::vector<const Operation*> kept_;
  const Operation* invention_ = nullptr;
};

}  // namespace ringshift::check
