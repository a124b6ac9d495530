// What a router says of itself, as JSON and back; hot keys are any bytes.
#include "coord/router_record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ringshift::coord {
namespace {

TEST(RouterRecord, HotKeysComeBackAsTheyWere) {
  RouterRecord record;
  record.revision = 7;
  record.misses = 3;
  record.hot_keys = {{"plain", 9}, {std::string("\xff\x00\r\n", 4), 5}};
  const auto back = parse_router_record(to_json(record));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, record);
}

TEST(RouterRecord, NoMoreHotKeysThanItsBoundAndNoneThatAreNoBase64) {
  RouterRecord record;
  for (std::size_t i = 0; i < 2 * RouterRecord::kHotKeysMax; ++i)
    record.hot_keys.emplace_back(fmt::format("k{}", i), i);
  const auto back = parse_router_record(to_json(record));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->hot_keys.size(), RouterRecord::kHotKeysMax);
  const auto odd = parse_router_record(R"({"revision":1,"hot_keys":[{"key":"*"},{"key":"YQ==","count":2}]})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->hot_keys, (decltype(record.hot_keys){{"a", 2}}));
  EXPECT_FALSE(parse_router_record(R"({"hot_keys":[1]})"));
}

}  // namespace
}  // namespace ringshift::coord
