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

TEST(RouterRecord, SaysWhatItWasTold) {
  RouterRecord record;
  record.revision = 12;
  record.digest = "abc";
  record.requests = 5;
  record.listen = "127.0.0.1:6380";
  record.unreachable = {{"cache-1", "Connection refused"}, {"cache-2", "no \xff UTF-8"}};
  record.max_clients = 10000;
  record.open_file_limit = 1024;
  const auto parsed = parse_router_record(to_json(record));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  record.unreachable["cache-2"] = "no \xef\xbf\xbd UTF-8";
  EXPECT_EQ(*parsed, record);
}

TEST(RouterRecord, AnOlderRoutersHasFewerFields) {
  const auto parsed = parse_router_record(R"({"revision":3,"digest":"d"})");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->revision, 3);
  EXPECT_TRUE(parsed->unreachable.empty());
  EXPECT_EQ(parsed->open_file_limit, 0U);
  EXPECT_FALSE(parse_router_record(R"({"unreachable":[1]})").has_value());
}

}  // namespace
}  // namespace ringshift::coord
