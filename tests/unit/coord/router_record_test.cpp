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

TEST(RouterRecord, FiguresOfTheRouterAndOfItsMembersComeBack) {
  RouterRecord record;
  record.started_at = 1'700'000'000;
  record.applied_at = 1'700'000'100;
  record.requests = 10, record.hits = 6, record.misses = 2, record.errors = 3;
  record.bytes_in = 1 << 20, record.bytes_out = std::uint64_t{1} << 40;
  record.clients = 50;
  record.p50_ms = 0.25, record.p99_ms = 1.5, record.p999_ms = 20;
  record.moving_keys = {{"a", 1}};
  record.members["cache-1"] = {
      .requests = 7, .hits = 4, .misses = 1, .errors = 2, .timeouts = 1, .in_flight = 3, .p99_ms = 0};
  record.members["cache-2"] = {};
  const auto back = parse_router_record(to_json(record));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, record);
  EXPECT_EQ(back->members.at("cache-2").p99_ms, -1) << "nothing was answered";
}

TEST(RouterRecord, NoMoreMembersThanItsBoundAndTheBusiestOfThem) {
  RouterRecord record;
  for (std::uint64_t i = 0; i < RouterRecord::kMembersMax + 50; ++i)
    record.members[fmt::format("m{:03}", i)].requests = i;
  const auto back = parse_router_record(to_json(record));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->members.size(), RouterRecord::kMembersMax) << "whoever wrote more";
  keep_busiest(record.members);
  EXPECT_EQ(record.members.size(), RouterRecord::kMembersMax);
  EXPECT_EQ(record.members.begin()->first, "m050") << "the fifty idlest went";
}

TEST(RouterRecord, MembersOfAnotherShapeAreNoMembers) {
  const auto none = parse_router_record(R"({"members":[1,2],"new_field":{"x":1}})");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->members.empty());
  EXPECT_FALSE(parse_router_record(R"({"members":{"a":{"requests":"many"}}})"));
  EXPECT_FALSE(parse_router_record(R"({"members":{"a":1}})"));
}

TEST(RouterRecord, AnOlderRoutersHasFewerFields) {
  const auto parsed = parse_router_record(R"({"revision":3,"digest":"d"})");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->revision, 3);
  EXPECT_TRUE(parsed->unreachable.empty());
  EXPECT_EQ(parsed->open_file_limit, 0U);
  EXPECT_EQ(parsed->started_at, 0);
  EXPECT_EQ(parsed->p50_ms, -1);
  EXPECT_TRUE(parsed->members.empty());
  EXPECT_FALSE(parse_router_record(R"({"unreachable":[1]})").has_value());
}

}  // namespace
}  // namespace ringshift::coord
