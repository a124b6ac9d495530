// The articles' figures, computed again: equal to what was recorded, to the last digit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "plan/compare/articles.h"

namespace ringshift::plan::compare {
namespace {

using nlohmann::json;

// The pointers of all leaves: numbers, texts, and lists of whole numbers.
void leaves(const json& value, const std::string& pointer, std::set<std::string>& out) {
  if (value.is_object()) {
    for (const auto& [name, each] : value.items()) leaves(each, pointer + "/" + name, out);
  } else if (value.is_array() && (pointer.ends_with("/rows") || pointer.ends_with("/maxmin"))) {
    for (std::size_t i = 0; i < value.size(); ++i) leaves(value[i], pointer + "/" + std::to_string(i), out);
  } else {
    out.insert(pointer);
  }
}

TEST(Articles, EveryRecordedFigureIsReproduced) {
  std::ifstream file(RINGSHIFT_SOURCE_DIR "/tests/vectors/seed_figures.json");
  const json recorded = json::parse(file);
  const auto ours = article_figures();
  ASSERT_TRUE(ours);
  std::set<std::string> missing;
  leaves(recorded, "", missing);
  for (const Figure& figure : ours->figures) {
    const json::json_pointer pointer(figure.pointer);
    ASSERT_TRUE(recorded.contains(pointer)) << figure.pointer;
    EXPECT_EQ(missing.erase(figure.pointer), 1U) << figure.pointer;
    const json& theirs = recorded.at(pointer);
    switch (figure.kind) {
      case Figure::Kind::number:
        EXPECT_EQ(theirs.get<double>(), figure.number) << figure.pointer;
        break;
      case Figure::Kind::list:
        EXPECT_EQ(theirs.get<std::vector<std::uint64_t>>(), figure.list) << figure.pointer;
        break;
      case Figure::Kind::text:
        EXPECT_EQ(theirs.get<std::string>(), figure.text) << figure.pointer;
        break;
    }
    EXPECT_TRUE(figure.computed || figure.pointer.starts_with("/seed3_py/")) << figure.pointer;
  }
  EXPECT_THAT(missing, testing::IsEmpty());
}

TEST(Articles, ClaimsThatDoNotHoldAreNamed) {
  const auto ours = article_figures();
  ASSERT_TRUE(ours);
  std::size_t wrong = 0;
  for (const Claim& claim : ours->claims) wrong += claim.holds.value_or(true) ? 0U : 1U;
  EXPECT_GE(wrong, 4U);
  const auto& claims = ours->claims;
  EXPECT_TRUE(std::ranges::any_of(claims, [](const Claim& claim) {
    return claim.truth.find("5000 -> 20000 QPS (4x)") != std::string::npos;
  }));
  EXPECT_FALSE(article_figures([](double) { return false; }));
}

TEST(Articles, CostsAreOrderedAsTheyMustBe) {
  const KeySet keys = synthetic_keys(5'000);
  const auto costs = lookup_costs(5, keys);
  ASSERT_EQ(costs.size(), 3U);
  EXPECT_EQ(costs[2].points, 1000U);
  EXPECT_GT(costs[2].linear_ns, costs[2].binary_ns) << "2500 points looked at, against 13";
  EXPECT_GT(costs[2].linear_ns, 3 * costs[0].linear_ns);
  EXPECT_EQ(costs[1].array_bytes, 5U * 160 * 16);
  EXPECT_GT(costs[1].map_bytes, 2 * costs[1].array_bytes);
  for (const HashCost& hash : hash_costs(keys)) EXPECT_GT(hash.ns, 0.1) << hash.name;
}

}  // namespace
}  // namespace ringshift::plan::compare
