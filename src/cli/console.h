// What a long command says while it works: lines, and a bar that is redrawn in place on a terminal and
// becomes a plain line now and then anywhere else. One thread. Cost: at most ten redraws a second.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace ringshift::cli {

class Console {
 public:
  explicit Console(std::FILE* out);

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    write_line(fmt::format(format, std::forward<Args>(args)...));
  }
  // A step under way, 0 to 1. Elsewhere than on a terminal a line at every quarter.
  void bar(std::string_view label, double fraction, std::string_view detail = {});
  // A line that the next one replaces. Nothing elsewhere than on a terminal.
  void transient(std::string_view text);
  [[nodiscard]] bool terminal() const noexcept { return terminal_; }

 private:
  void write_line(std::string_view text);

  std::FILE* out_;
  bool terminal_;
  bool drawn_ = false;  // A bar or transient line stands on the terminal's last line.
  std::string label_;   // Of the bar under way.
  int quarters_ = 0;    // Of it that were printed.
  base::TimePoint next_draw_{};
};

// 1234567 -> "1,234,567"
[[nodiscard]] std::string grouped(std::uint64_t number);

}  // namespace ringshift::cli
