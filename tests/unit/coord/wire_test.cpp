// etcd's JSON, written and read. The answers are recorded from etcd 3.4.23.
#include "coord/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coord/keys.h"

namespace ringshift::coord {
namespace {

using testing::HasSubstr;

TEST(Wire, PrefixEnd) {
  EXPECT_EQ(prefix_end("/a/"), "/a0");
  EXPECT_EQ(prefix_end("a\xff\xff"), "b");
  EXPECT_EQ(prefix_end("\xff"), std::string(1, '\0')) << "no byte is left to raise: to the end";
  EXPECT_EQ(prefix_end(""), std::string(1, '\0'));
}

TEST(Wire, ReadsARange) {
  const auto range = read_range(
      R"({"header":{"cluster_id":"17801232528081817440","member_id":"1","revision":"9","raft_term":"2"},)"
      R"("kvs":[{"key":"bGVhc2Vk","create_revision":"8","mod_revision":"9","version":"2","value":"Mg==","lease":"7"}],)"
      R"("count":"1"})");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->cluster_id, 17801232528081817440U) << "above what a signed integer holds";
  EXPECT_EQ(range->revision, 9);
  ASSERT_EQ(range->kvs.size(), 1U);
  EXPECT_EQ(range->kvs[0].key, "leased");
  EXPECT_EQ(range->kvs[0].value, "2");
  EXPECT_EQ(range->kvs[0].lease, 7);
}

TEST(Wire, ReadsWatchMessages) {
  const auto events = read_watch(
      R"({"result":{"header":{"cluster_id":"5","revision":"11"},"events":[)"
      R"({"kv":{"key":"YQ==","create_revision":"2","mod_revision":"2","version":"1","value":"MQ=="}},)"
      R"({"type":"DELETE","kv":{"key":"YQ==","mod_revision":"7"}}]}})");
  ASSERT_TRUE(events.has_value());
  ASSERT_EQ(events->events.size(), 2U);
  EXPECT_EQ(events->events[0].kind, Event::Kind::put);
  EXPECT_EQ(events->events[1].kind, Event::Kind::remove);
  EXPECT_EQ(events->events[1].kv.mod_revision, 7);
  const auto compacted =
      read_watch(R"({"result":{"header":{"cluster_id":"5"},"canceled":true,"compact_revision":"8"}})");
  EXPECT_EQ(compacted->compact_revision, 8);
  const auto error =
      read_watch(R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}})");
  EXPECT_TRUE(error->canceled);
  EXPECT_EQ(error->reason, "etcdserver: no leader");
}

TEST(Wire, ALeaseThatIsGoneHasNoTtl) {
  EXPECT_EQ(read_lease(R"({"result":{"header":{},"ID":"7","TTL":"60"}})")->ttl_seconds, 60);
  EXPECT_EQ(read_lease(R"({"result":{"header":{},"ID":"99"}})")->ttl_seconds, 0);
}

TEST(Wire, WhatIsNoEtcdIsAnErrorThatSaysSo) {
  for (const char* answer : {"", "<html>", "[]", "{}", R"({"header":5})", R"({"header":{"revision":"x"}})",
                             R"({"header":{},"kvs":[{"key":"!"}]})", R"({"header":{},"kvs":{}})"}) {
    const auto range = read_range(answer);
    ASSERT_FALSE(range.has_value()) << answer;
    EXPECT_THAT(range.error().message, HasSubstr("is not etcd v3 JSON"));
  }
}

TEST(Wire, ErrorsTellTheCallerWhatToDo) {
  struct Case {
    int status;
    const char* answer;
    ErrorKind kind;
  };
  for (const Case& c : {
           Case{404, R"({"error":"x","message":"etcdserver: requested lease not found","code":5})",
                ErrorKind::not_found},
           {400, R"({"message":"etcdserver: mvcc: required revision has been compacted","code":11})",
            ErrorKind::stale},
           {400, R"({"message":"etcdserver: key is not provided","code":3})", ErrorKind::invalid},
           {503, R"({"message":"etcdserver: no leader","code":14})", ErrorKind::retryable},
           {503, "upstream down", ErrorKind::retryable},
           {429, R"({"message":"no space left","code":8})", ErrorKind::overloaded},
           {403, R"({"message":"denied","code":7})", ErrorKind::denied},
           {404, "Not Found", ErrorKind::internal},
       }) {
    const Error error = read_error(c.status, c.answer, "http://h:1/v3");
    EXPECT_EQ(error.kind, c.kind) << c.answer;
    EXPECT_THAT(error.message, HasSubstr("http://h:1/v3"));
  }
}

TEST(Keys, Layout) {
  const ClusterKeys keys("default", "cache");
  EXPECT_EQ(keys.topology(), "/ringshift/default/cache/topology");
  EXPECT_EQ(keys.router("r1"), "/ringshift/default/cache/routers/r1");
}

}  // namespace
}  // namespace ringshift::coord
