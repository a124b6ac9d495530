// `ringshift top` as text for a window of some size, and as JSON. Pure.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cli/top_figures.h"

namespace ringshift::cli {

struct TopView {
  std::size_t sort_by = 0;  // A column of the members' table; see kTopColumns.
  bool reversed = false;
  std::size_t scroll = 0;  // Members that are above the window.
  bool paused = false;
  bool colours = false;  // The window may be told to write bold and inverse.
  std::size_t rows = 0;  // 0: as many as there are.
  std::size_t columns = 120;
  std::string clock;  // "14:03:22"
};

inline constexpr std::size_t kTopColumns = 10;

// As the members are listed: numbers fall, names rise; reversed the other way round.
void sort_members(TopFrame& frame, const TopView& view);
[[nodiscard]] std::vector<std::string> draw_top(const TopFrame& frame, const TopView& view);
[[nodiscard]] std::string top_json(const TopFrame& frame);

}  // namespace ringshift::cli
