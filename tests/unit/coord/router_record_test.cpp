#include "coord/router_record.h"

#include <gtest/gtest.h>

namespace ringshift::coord {
namespace {

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
