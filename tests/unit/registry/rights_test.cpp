// What a role allows, asked of the rules alone.
#include "registry/rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringshift::registry {
namespace {

using testing::HasSubstr;

const std::string kCluster = "/ringshift/default/cache/";

Identity registers(const std::string& name) { return {name, Role::register_own, "default", {}, {}}; }

store::PutRequest put_of(const std::string& key, const std::string& value) {
  return {key, value, 7, false, false, false};
}

TEST(Rights, ARecordHasABound) {
  const Identity who = registers("cache-1");
  const std::string key = kCluster + "instances/cache-1", router = kCluster + "routers/cache-1";
  const auto record = [](std::size_t padding) {
    return R"({"id":"cache-1","address":"10.0.0.1:1","labels":{"a":")" + std::string(padding, 'x') + "\"}}";
  };
  EXPECT_TRUE(may_put(who, put_of(key, record(20'000))).has_value());
  EXPECT_THAT(may_put(who, put_of(key, record(kRecordBytesMax))).error().message,
              HasSubstr("at most 65536 bytes"));
  EXPECT_TRUE(may_put(who, put_of(router, record(20'000))).has_value());
  EXPECT_FALSE(may_put(who, put_of(router, record(kRecordBytesMax))).has_value());
  Identity many = who;
  many.ids = {"*"};
  const std::string id(2000, 'x');
  EXPECT_FALSE(may_put(many, put_of(kCluster + "instances/" + id, R"({"id":")" + id + "\"}")).has_value());
}

}  // namespace
}  // namespace ringshift::registry
