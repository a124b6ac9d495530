// OLD and NEW: two real redis-servers with the stamp of one fence, and the steps of a transfer one by one, so
// that a test can put them in any order.
#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "backend/sync_client.h"
#include "tests/support/redis_process.h"
#include "transfer/faults.h"
#include "transfer/steps.h"

namespace ringshift::transfer {

using backend::SyncClient;
using protocol::resp::Value;

inline std::unique_ptr<SyncClient> dial(const test::RedisProcess& redis) {
  auto client = SyncClient::connect(redis.address());
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

inline Value ask(SyncClient& client, std::initializer_list<std::string_view> arguments) {
  auto reply = client.call(arguments);
  if (!reply) throw std::runtime_error(reply.error().message);
  return std::move(*reply);
}

inline Value ask_raw(SyncClient& client, const std::string& command) {
  auto replies = client.pipeline(command, 1);
  if (!replies) throw std::runtime_error(replies.error().message);
  return std::move(replies->front());
}

struct Pair {
  test::RedisProcess old_redis, new_redis;
  std::unique_ptr<SyncClient> s = dial(old_redis), d = dial(new_redis);
  topology::Fence fence{1, 1, {{"old", "run-old"}, {"new", "run-new"}}};
  TokenSource tokens, others;  // R1's and R2's.

  Pair() {
    set_stamp(closed_stamp(fence, "new"));
    set_stamp(open_stamp(fence, "new"));
  }

  Value set_stamp(const std::string& stamp) {
    std::string command;
    append_set_stamp(command, fence, stamp);
    return ask_raw(*d, command);
  }
  Claim claim(std::string_view key, std::string_view token) {
    std::string command;
    append_claim(command, key, open_stamp(fence, "new"), token);
    return read_claim(ask_raw(*d, command));
  }
  Dump dump(std::string_view key) {
    std::string command;
    append_dump(command, key);
    return read_dump(ask_raw(*s, command));
  }
  Restore restore(std::string_view key, std::string_view token, const Dump& copy) {
    std::string command;
    append_restore(command, key, open_stamp(fence, "new"), token, copy.ttl_ms, copy.payload);
    return read_restore(ask_raw(*d, command));
  }
  std::int64_t unlink(std::string_view key) {
    std::string command;
    append_unlink(command, key);
    return ask_raw(*s, command).integer;
  }
  void seal(std::string_view key, std::string_view token) {
    std::string command;
    append_seal(command, key, token);
    ASSERT_FALSE(ask_raw(*d, command).is_error());
  }
  // The whole of steps 1-5, undisturbed.
  void pull(std::string_view key) {
    const std::string token = others.next();
    const Claim claimed = claim(key, token);
    ASSERT_TRUE(claimed == Claim::claimed || claimed == Claim::busy);
    if (claimed == Claim::claimed) {
      const Dump copy = dump(key);
      if (copy.kind == Dump::Kind::payload) {
        ASSERT_EQ(restore(key, token, copy), Restore::ok);
      }
    }
    unlink(key);
    seal(key, token);
  }
  // A claim's PX runs out, or the claim is evicted.
  void expire_claim(std::string_view key) { ask(*d, {"DEL", claim_key(key)}); }

  std::string on_old(std::string_view key) { return text(ask(*s, {"GET", key})); }
  std::string on_new(std::string_view key) { return text(ask(*d, {"GET", key})); }

 private:
  static std::string text(const Value& value) { return value.is_null() ? "(nil)" : value.text; }
};

#if defined(RINGSHIFT_PROTOCOL_FAULTS)
// A switch that is on as long as this lives.
class Broken {
 public:
  explicit Broken(Fault fault) : fault_(fault) { set_broken(fault_, true); }
  ~Broken() { set_broken(fault_, false); }
  Broken(const Broken&) = delete;
  Broken& operator=(const Broken&) = delete;

 private:
  const Fault fault_;
};
#endif

}  // namespace ringshift::transfer
