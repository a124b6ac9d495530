// The table of docs/placements.md: what each placement moves in three changes, and how uneven its loads are,
// beside what must move. Every figure is diff()'s or shares()'s own, so it is the same on every machine. A
// row that differs is printed as it should be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "ringshift/diff.h"
#include "tests/contract/placement_rows.h"

namespace ringshift::topology::contract {
namespace {

// "20.81 (0.00)": percent of the keys that move, and of them those between members that neither came nor
// left.
std::string change(const Spec& from, const Spec& to, const std::string& changed) {
  const auto diff = topology::diff(from, to);
  if (!diff) return diff.error().message;
  double others = 0;
  for (const PairShare& pair : diff->pairs)
    if (pair.from != changed && pair.to != changed) others += pair.share;
  return fmt::format("{:.2f} ({:.2f})", 100 * diff->moved_share, 100 * others);
}

std::string row_of(const PlacementRow& row) {
  const Spec four = spec_of(row, 4);
  Spec five = spec_of(row, 5);
  five = carried_over(four, five);
  const std::string added = change(four, five, "cache-5");
  Spec without = spec_of(row, 5);
  const Spec all = without;
  without.members.erase(without.members.begin() + 1);
  const std::string removed = change(all, carried_over(all, without), "cache-2");
  std::string weighted = "-";
  const bool knows_weights = row.name != std::string_view("jump") && row.name != std::string_view("memento");
  if (knows_weights) {
    const std::vector<double> weights = {6, 3, 2, 4, 10, 8, 9, 1};
    std::vector<double> more = weights;
    more.push_back(1);
    const Spec current = spec_of(row, weights);
    weighted = change(current, carried_over(current, spec_of(row, more)), "cache-9");
  }
  const auto loads = shares(spec_of(row, 5));
  const double heaviest = loads ? 5 * std::ranges::max(loads->shares) : 0;
  return fmt::format("| {} | {} | {} | {} | {:.2f} | {} |", row.name, added, removed, weighted, heaviest,
                     diff(four, five)->exact ? "exact" : "sampled");
}

TEST(PlacementTable, TheDocumentsFiguresAreOurs) {
  const std::ifstream file(RINGSHIFT_SOURCE_DIR "/docs/placements.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const auto* rows : {&own_rows(), &peer_rows()}) {
    for (const PlacementRow& row : *rows) {
      const std::string line = row_of(row);
      EXPECT_NE(text.str().find(line), std::string::npos) << "docs/placements.md should have\n" << line;
    }
  }
}

}  // namespace
}  // namespace ringshift::topology::contract
