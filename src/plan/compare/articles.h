// The published articles' claims beside the truth: their experiments run again, and what they say of cost
// measured here.
//
// Figures are named by where they stand in tests/vectors/seed_figures.json (a JSON pointer), and must equal
// what stands there. Cost: about two seconds for the figures; the measurements are bounded.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/compare/experiment.h"

namespace ringshift::plan::compare {

// One figure of seed_figures.json: a number, a list of whole numbers, or a text.
struct Figure {
  enum class Kind { number, list, text };
  std::string pointer;
  Kind kind = Kind::number;
  double number = 0;
  std::vector<std::uint64_t> list{};
  std::string text{};
  bool computed = true;  // False: recorded elsewhere, and only repeated here.
};

// A sentence of an article, and what its own experiment gives.
struct Claim {
  std::string article;
  std::string claim;
  std::string truth;
  std::optional<bool> holds;  // nullopt: not tried here.
};

struct ArticleFigures {
  std::vector<Figure> figures;
  std::vector<Claim> claims;
};
// Fails only when `progress` says so.
[[nodiscard]] Result<ArticleFigures> article_figures(const Progress& progress = {});

// Ways to find a key's owner on a ring of this many points a member, XXH3 of the key included.
struct LookupCost {
  std::uint32_t points = 0;
  double linear_ns = 0;  // Every point looked at, from the first on.
  double binary_ns = 0;  // std::lower_bound over sorted points.
  double map_ns = 0;     // std::map, as a TreeMap or a sorted dictionary.
  double ours_ns = 0;
  std::size_t array_bytes = 0, map_bytes = 0, ours_bytes = 0;
};
[[nodiscard]] std::vector<LookupCost> lookup_costs(std::size_t members, const KeySet& keys);

struct HashCost {
  std::string name;
  double ns = 0;  // Of one key.
};
[[nodiscard]] std::vector<HashCost> hash_costs(const KeySet& keys);

}  // namespace ringshift::plan::compare
