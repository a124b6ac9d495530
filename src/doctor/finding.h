// What a check of the doctor found: one line for people, one object for machines.
//
// Plain values. A finding that is not ok says what to do about it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ringshift::doctor {

enum class Level : std::uint8_t { ok, warning, problem };

struct Finding {
  Level level = Level::ok;
  std::string group;    // registry | topology | resize | membership | routers | members
  std::string check;    // A word for each check, the same for all members: "memory".
  std::string subject;  // Which one: a member's or router's id, a URL. "" where there is only one.
  std::string message, fix;
};

class Findings {
 public:
  explicit Findings(std::string group) : group_(std::move(group)) {}
  void ok(std::string check, std::string subject, std::string message) {
    add(Level::ok, std::move(check), std::move(subject), std::move(message), "");
  }
  void warning(std::string check, std::string subject, std::string message, std::string fix) {
    add(Level::warning, std::move(check), std::move(subject), std::move(message), std::move(fix));
  }
  void problem(std::string check, std::string subject, std::string message, std::string fix) {
    add(Level::problem, std::move(check), std::move(subject), std::move(message), std::move(fix));
  }
  [[nodiscard]] const std::vector<Finding>& all() const noexcept { return all_; }
  [[nodiscard]] std::vector<Finding> take() && { return std::move(all_); }

 private:
  void add(Level level, std::string check, std::string subject, std::string message, std::string fix) {
    all_.push_back({level, group_, std::move(check), std::move(subject), std::move(message), std::move(fix)});
  }
  std::string group_;
  std::vector<Finding> all_;
};

}  // namespace ringshift::doctor
