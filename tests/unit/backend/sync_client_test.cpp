// The blocking client against real redis-servers.
#include "backend/sync_client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/support/redis_process.h"

namespace ringshift::backend {
namespace {

using protocol::resp::append_command;
using protocol::resp::Value;
using std::chrono::milliseconds;
using test::RedisProcess;

std::unique_ptr<SyncClient> dial(const std::string& address, SyncOptions options = {}) {
  auto client = SyncClient::connect(address, std::move(options));
  EXPECT_TRUE(client) << client.error().message;
  return client ? std::move(*client) : nullptr;
}

TEST(SyncClient, CallsAndGivesErrorsOfTheMemberAsValues) {
  RedisProcess redis;
  auto client = dial(redis.address());
  EXPECT_EQ(client->call({"SET", "k", std::string_view("a\r\n\0b", 5)})->text, "OK");
  EXPECT_EQ(client->call({"GET", "k"})->text, std::string("a\r\n\0b", 5));
  EXPECT_TRUE(client->call({"GET", "none"})->is_null());
  EXPECT_EQ(client->call({"INCR", "n"})->integer, 1);
  const Result<Value> wrong = client->call({"INCR", "k"});
  ASSERT_TRUE(wrong);
  EXPECT_TRUE(wrong->is_error());
  EXPECT_EQ(client->client_id(), 0U);
}

TEST(SyncClient, KnowsItsIdWhenNamed) {
  RedisProcess redis;
  SyncOptions options;
  options.name = "rs:mover";
  auto client = dial(redis.address(), options);
  EXPECT_NE(client->client_id(), 0U);
  EXPECT_EQ(client->call({"CLIENT", "ID"})->integer, static_cast<std::int64_t>(client->client_id()));
  EXPECT_EQ(client->call({"CLIENT", "GETNAME"})->text, "rs:mover");
}

TEST(SyncClient, PipelinesMoreThanTheSocketsHold) {
  RedisProcess redis;
  auto client = dial(redis.address());
  // 40 MB out and 40 MB back: who only writes first would wait for ever.
  std::string commands;
  const std::string value(100000, 'v');
  for (int i = 0; i < 400; ++i) append_command(commands, {"ECHO", value});
  Result<std::vector<Value>> replies = client->pipeline(commands, 400);
  ASSERT_TRUE(replies) << replies.error().message;
  ASSERT_EQ(replies->size(), 400U);
  for (const Value& reply : *replies) ASSERT_EQ(reply.text, value);
}

TEST(SyncClient, SendsNowAndReceivesLater) {
  RedisProcess redis;
  auto client = dial(redis.address());
  std::string commands;
  append_command(commands, {"INCR", "n"});
  append_command(commands, {"INCR", "n"});
  ASSERT_TRUE(client->send(commands));
  EXPECT_EQ(client->receive(1)->front().integer, 1);
  EXPECT_EQ(client->receive(1)->front().integer, 2);
}

TEST(SyncClient, ATimeoutClosesForGoodAndSaysThatItMayHaveBeenExecuted) {
  RedisProcess redis;
  SyncOptions options;
  options.request_timeout = milliseconds(100);
  auto client = dial(redis.address(), options);
  redis.pause();
  const Result<Value> late = client->call({"INCR", "n"});
  redis.resume();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::retryable);
  EXPECT_NE(late.error().message.find("timed out after 100 ms: the command may have been executed"),
            std::string::npos)
      << late.error().message;
  EXPECT_FALSE(client->connected());
  const Result<Value> after = client->call({"INCR", "n"});
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().kind, ErrorKind::retryable);
  EXPECT_NE(after.error().message.find("the command was not executed"), std::string::npos);
}

TEST(SyncClient, ACommandThatDidNotLeaveWholeWasNotExecuted) {
  RedisProcess redis;
  SyncOptions options;
  options.request_timeout = milliseconds(100);
  auto client = dial(redis.address(), options);
  redis.pause();
  const Result<Value> big = client->call({"SET", "k", std::string(64U << 20, 'x')});
  redis.resume();
  ASSERT_FALSE(big);
  EXPECT_NE(big.error().message.find("the command was not executed"), std::string::npos)
      << big.error().message;
  EXPECT_EQ(redis.command("EXISTS k"), ":0\r\n");
}

TEST(SyncClient, SaysWhyItCannotConnect) {
  RedisProcess redis;
  const std::string address = redis.address();
  redis.kill();
  const auto refused = SyncClient::connect(address);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::retryable);
  EXPECT_EQ(refused.error().message, "cannot connect to " + address + ": Connection refused");
  EXPECT_EQ(SyncClient::connect("nonsense").error().kind, ErrorKind::invalid);
}

TEST(SyncClient, AMemberThatDiesMidwayIsARetryableFailure) {
  RedisProcess redis;
  auto client = dial(redis.address());
  redis.pause();
  std::string command;
  append_command(command, {"INCR", "n"});
  ASSERT_TRUE(client->send(command));
  redis.kill();
  const Result<std::vector<Value>> lost = client->receive(1);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind, ErrorKind::retryable);
  EXPECT_NE(lost.error().message.find("may have been executed"), std::string::npos) << lost.error().message;
}

TEST(SyncClient, SkipsPushesInResp3) {
  RedisProcess redis;
  auto client = dial(redis.address());
  ASSERT_TRUE(client->call({"HELLO", "3"}));
  ASSERT_EQ(client->call({"CLIENT", "TRACKING", "on"})->text, "OK");
  ASSERT_TRUE(client->call({"GET", "k"})->is_null());
  EXPECT_EQ(redis.command("SET k v"), "+OK\r\n");
  EXPECT_EQ(client->call({"GET", "k"})->text, "v");
}

}  // namespace
}  // namespace ringshift::backend
