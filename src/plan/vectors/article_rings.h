// The experiments of three published articles, computed by their own rings
// (src/placement/peers/articles.cpp).
//
//   Go      100,000 keys order:I, nodes node-0..4, 4 -> 5; its modulo over user:I
//   PHP     1,000,000 keys user:I:profile, nodes redis-node1:6379..., 4 -> 5
//   JS      10,000 keys user:I:profile, nodes cache-a..d, 3 -> 4, and cache-c dropped
//
// Percentages and ratios are rounded as the recorded figures are. Pure; a Go ring takes some milliseconds, a
// PHP one about a hundred. A ring that cannot be built gives figures of nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "placement/peers/settings.h"

namespace ringshift::plan::vectors {

struct GoFigures {
  double moved_percent = 0;
  double max_by_min = 0;  // Of the counts after, not rounded.
  std::vector<std::uint64_t> after;
};
[[nodiscard]] GoFigures article_go(const placement::peers::Options& options);
[[nodiscard]] double article_go_modulo_percent();

struct PhpFigures {
  std::vector<std::uint64_t> before, after;
  double sd = 0;  // Of the counts before.
  std::uint64_t moved = 0;
};
[[nodiscard]] PhpFigures article_php(const placement::peers::Options& options);

// Where the article's first `count` keys and its key 42 fall.
struct PhpExample {
  std::vector<std::uint64_t> counts;
  std::string key42_before, key42_after;
};
[[nodiscard]] PhpExample article_php_example(std::uint64_t count);

struct JsFigures {
  std::vector<std::uint64_t> counts;
  double max_by_min = 0;
};
[[nodiscard]] JsFigures article_js(const std::string& vnodes);
struct JsMoved {
  double modulo = 0, added = 0, dropped = 0;  // Percent.
};
[[nodiscard]] JsMoved article_js_moved();

// 1 - min(N, M) / lcm(N, M), in percent: what hash % N moves. REQUIRES: both > 0.
[[nodiscard]] double modulo_moved_percent(std::uint64_t from, std::uint64_t to);

[[nodiscard]] double rounded(double value, int digits);

}  // namespace ringshift::plan::vectors
