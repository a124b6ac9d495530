// Every answer of the transfer's scripts, from a real redis-server.
#include "transfer/steps.h"

#include <set>
#include <thread>

#include "pair.h"

namespace ringshift::transfer {
namespace {

TEST(Claim, ClaimedOnceThenWait) {
  Pair pair;
  EXPECT_EQ(pair.claim("k", "t1"), Claim::claimed);
  EXPECT_EQ(pair.claim("k", "t2"), Claim::wait);
  EXPECT_EQ(ask(*pair.d, {"GET", "rs:claim:{k}"}).text, "t1") << "a WAIT must not replace the claim";
  const std::int64_t ttl = ask(*pair.d, {"PTTL", "rs:claim:{k}"}).integer;
  EXPECT_GT(ttl, 0) << "a claim of a dead router must end by itself";
  EXPECT_LE(ttl, 2000);
}

TEST(Claim, BusyWhenNewHasTheKeyWhoeverClaimedIt) {
  Pair pair;
  ask(*pair.d, {"SET", "k", "v"});
  EXPECT_EQ(pair.claim("k", "t1"), Claim::busy);
  EXPECT_TRUE(ask(*pair.d, {"GET", claim_key("k")}).is_null()) << "BUSY sets no claim";
}

TEST(Claim, EndsByItself) {
  Pair pair;
  ASSERT_EQ(pair.claim("k", "t1"), Claim::claimed);
  ask(*pair.d, {"PEXPIRE", claim_key("k"), "1"});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pair.claim("k", "t2"), Claim::claimed);
}

// A pull that was given up (its step ended, a member refused) must not block the next one of the same router
// for the claim's two seconds: that is longer than a command waits.
TEST(Claim, ReplacesAnEarlierOneOfTheSameSourceOnly) {
  Pair pair;
  TokenSource another;
  const std::string first = pair.tokens.next(), second = pair.tokens.next();
  ask(*pair.s, {"SET", "k", "v"});
  ASSERT_EQ(pair.claim("k", first), Claim::claimed);
  const Dump copy = pair.dump("k");
  EXPECT_EQ(pair.claim("k", another.next()), Claim::wait);
  EXPECT_EQ(pair.claim("k", second), Claim::claimed);
  EXPECT_EQ(ask(*pair.d, {"GET", claim_key("k")}).text, second);
  EXPECT_GT(ask(*pair.d, {"PTTL", claim_key("k")}).integer, 0);
  EXPECT_EQ(pair.restore("k", first, copy), Restore::stale) << "what was given up stays out";
  EXPECT_EQ(pair.restore("k", second, pair.dump("k")), Restore::ok);
}

// Which stamps let a transfer in: the one that equals ours, and no other.
TEST(Gate, OpenOnlyForTheSameStamp) {
  Pair pair;
  const Dump copy = [&] {
    ask(*pair.s, {"SET", "k", "v"});
    return pair.dump("k");
  }();
  ask(*pair.d, {"SET", claim_key("k"), "t"});
  topology::Fence other_step = pair.fence, other_epoch = pair.fence, other_run = pair.fence;
  ++other_step.step;
  ++other_epoch.epoch;
  other_run.run_ids["new"] = "restarted";
  for (const std::string& stamp : {closed_stamp(pair.fence, "new"), open_stamp(other_step, "new"),
                                   open_stamp(other_epoch, "new"), open_stamp(other_run, "new"),
                                   open_stamp(pair.fence, "old"), std::string("nonsense"), std::string()}) {
    ask(*pair.d, {"SET", kStampKey, stamp});
    EXPECT_EQ(pair.claim("other", "t"), Claim::gate) << stamp;
    EXPECT_EQ(pair.restore("k", "t", copy), Restore::gate) << stamp;
  }
  ask(*pair.d, {"DEL", kStampKey});
  EXPECT_EQ(pair.claim("other", "t"), Claim::gate) << "no stamp at all";
  EXPECT_EQ(pair.restore("k", "t", copy), Restore::gate) << "no stamp at all";
  ask(*pair.d, {"SET", kStampKey, open_stamp(pair.fence, "new")});
  EXPECT_EQ(pair.claim("other", "t"), Claim::claimed);
  EXPECT_EQ(pair.restore("k", "t", copy), Restore::ok);
}

TEST(Restore, OkThenBusyAndStaleForAnotherToken) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  const Dump copy = pair.dump("k");
  EXPECT_EQ(pair.restore("k", "t1", copy), Restore::stale) << "no claim at all";
  ASSERT_EQ(pair.claim("k", "t1"), Claim::claimed);
  EXPECT_EQ(pair.restore("k", "t2", copy), Restore::stale) << "another's claim";
  EXPECT_EQ(pair.on_new("k"), "(nil)");
  EXPECT_EQ(pair.restore("k", "t1", copy), Restore::ok);
  ask(*pair.d, {"SET", "k", "newer"});
  EXPECT_EQ(pair.restore("k", "t1", copy), Restore::busy) << "sent again, it must not overwrite";
  EXPECT_EQ(pair.on_new("k"), "newer");
}

TEST(Restore, AMembersErrorIsAnErrorAndLeavesTheKeyOnOld) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  ASSERT_EQ(pair.claim("k", "t"), Claim::claimed);
  Dump copy = pair.dump("k");
  copy.payload.back() = static_cast<char>(copy.payload.back() ^ 1);  // Its checksum does not hold.
  EXPECT_EQ(pair.restore("k", "t", copy), Restore::error);
  EXPECT_EQ(pair.on_new("k"), "(nil)");
  EXPECT_EQ(pair.on_old("k"), "v");
}

TEST(Answers, WhatIsNoAnswerIsAnError) {
  for (const auto type : {Value::Type::error, Value::Type::integer, Value::Type::null, Value::Type::array}) {
    Value value;
    value.type = type;
    value.text = "OK";
    EXPECT_EQ(read_claim(value), Claim::error);
    EXPECT_EQ(read_restore(value), Restore::error);
  }
  Value word;
  word.type = Value::Type::bulk;
  word.text = "CLAIMED ";
  EXPECT_EQ(read_claim(word), Claim::error);
  word.text = "ok";
  EXPECT_EQ(read_restore(word), Restore::error);
}

TEST(DumpAnswer, AbsentPayloadAndHostileShapes) {
  Pair pair;
  EXPECT_EQ(pair.dump("nothing").kind, Dump::Kind::absent);
  Value bad;
  bad.type = Value::Type::array;
  EXPECT_EQ(read_dump(bad).kind, Dump::Kind::error);
  bad.items.resize(2);
  EXPECT_EQ(read_dump(bad).kind, Dump::Kind::error);
  bad.items[0].type = Value::Type::bulk;
  bad.items[1].type = Value::Type::bulk;
  EXPECT_EQ(read_dump(bad).kind, Dump::Kind::error);
  Value error;
  error.type = Value::Type::error;
  EXPECT_EQ(read_dump(error).kind, Dump::Kind::error);
}

// PTTL as RESTORE wants it: -1 means none and becomes 0; 0 means "less than a millisecond" and must not.
TEST(DumpAnswer, Ttl) {
  for (const auto& [pttl, expected] :
       {std::pair<std::int64_t, std::int64_t>{-1, 0}, {0, 1}, {1, 1}, {1500, 1500}}) {
    Value reply;
    reply.type = Value::Type::array;
    reply.items.resize(2);
    reply.items[0].type = Value::Type::bulk;
    reply.items[0].text = "payload";
    reply.items[1].type = Value::Type::integer;
    reply.items[1].integer = pttl;
    const Dump copy = read_dump(std::move(reply));
    ASSERT_EQ(copy.kind, Dump::Kind::payload);
    EXPECT_EQ(copy.ttl_ms, expected) << "PTTL " << pttl;
  }
}

TEST(Transfer, TtlTravels) {
  Pair pair;
  ask(*pair.s, {"SET", "none", "v"});
  ask(*pair.s, {"SET", "minute", "v", "PX", "60000"});
  pair.pull("none");
  pair.pull("minute");
  EXPECT_EQ(ask(*pair.d, {"PTTL", "none"}).integer, -1);
  const std::int64_t ttl = ask(*pair.d, {"PTTL", "minute"}).integer;
  EXPECT_GT(ttl, 50000);
  EXPECT_LE(ttl, 60000);
}

TEST(Transfer, AKeyInItsLastMillisecondDoesNotBecomeImmortal) {
  Pair pair;
  ask(*pair.s, {"SET", "k", "v"});
  Dump copy = pair.dump("k");
  copy.ttl_ms = 1;  // What read_dump makes of PTTL 0.
  ASSERT_EQ(pair.claim("k", "t"), Claim::claimed);
  ASSERT_EQ(pair.restore("k", "t", copy), Restore::ok);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(pair.on_new("k"), "(nil)");
}

TEST(Transfer, KeysAreBytes) {
  Pair pair;
  const std::string keys[] = {std::string("a\0b", 3),
                              "\r\n$5\r\n",
                              "{}",
                              "{a}{b}",
                              "\xff\xfe",
                              " ",
                              "a}b{",
                              std::string(1, '\0'),
                              std::string(70000, 'x'),
                              ""};
  std::set<std::string> claims;
  for (const std::string& key : keys) {
    EXPECT_TRUE(claims.insert(claim_key(key)).second) << "two keys share a claim";
    const std::string value = "value of " + std::to_string(key.size());
    ask(*pair.s, {"SET", key, value});
    pair.pull(key);
    EXPECT_EQ(pair.on_new(key), value);
    EXPECT_EQ(pair.on_old(key), "(nil)");
  }
  EXPECT_EQ(ask(*pair.d, {"DBSIZE"}).integer, static_cast<std::int64_t>(std::size(keys)) + 1)
      << "the keys and the stamp: every claim is gone";
}

// Every Redis type, with what its contents look like before and after.
TEST(Transfer, EveryTypeMovesUnchanged) {
  struct Row {
    std::string type;
    std::vector<std::vector<std::string_view>> make;
    std::vector<std::string_view> look;
  };
  const std::string binary("\0\r\n\xff", 4);
  const Row rows[] = {
      {"string", {{"SET", "k", binary}}, {"GET", "k"}},
      {"string", {{"SET", "k", "12345"}, {"INCR", "k"}}, {"GET", "k"}},
      {"string", {{"SETBIT", "k", "1000", "1"}}, {"GET", "k"}},
      {"string", {{"PFADD", "k", "a", "b", "c"}}, {"GET", "k"}},
      {"list", {{"RPUSH", "k", "a", binary, "c"}}, {"LRANGE", "k", "0", "-1"}},
      {"set", {{"SADD", "k", "1", "2", "3"}}, {"SMEMBERS", "k"}},
      {"set", {{"SADD", "k", "a", "b"}}, {"SISMEMBER", "k", "b"}},
      {"hash", {{"HSET", "k", "f", binary, "g", "2"}}, {"HGETALL", "k"}},
      {"zset", {{"ZADD", "k", "1.5", "a", "-inf", "b"}}, {"ZRANGE", "k", "0", "-1", "WITHSCORES"}},
      {"zset", {{"GEOADD", "k", "13.3", "38.1", "Palermo"}}, {"ZRANGE", "k", "0", "-1", "WITHSCORES"}},
      {"stream",
       {{"XADD", "k", "1-1", "f", "v"},
        {"XADD", "k", "1-2", "f", binary},
        {"XGROUP", "CREATE", "k", "g", "0"},
        {"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "k", ">"}},
       {"XPENDING", "k", "g"}},
  };
  const auto flat = [](const Value& value) {
    std::string out;
    const auto walk = [&](const auto& self, const Value& v) -> void {
      out += v.text + "|" + std::to_string(v.integer) + "(";
      for (const Value& item : v.items) self(self, item);
      out += ")";
    };
    walk(walk, value);
    return out;
  };
  Pair pair;
  for (const Row& row : rows) {
    ask(*pair.d, {"DEL", "k"});
    for (const auto& command : row.make) {
      const auto reply = pair.s->call(command);
      ASSERT_TRUE(reply && !reply->is_error())
          << row.type << " " << (reply ? reply->text : reply.error().message);
    }
    const auto before = pair.s->call(row.look);
    pair.pull("k");
    EXPECT_EQ(ask(*pair.d, {"TYPE", "k"}).text, row.type);
    EXPECT_EQ(flat(*pair.d->call(row.look)), flat(*before)) << row.type;
    EXPECT_EQ(ask(*pair.s, {"EXISTS", "k"}).integer, 0);
  }
}

TEST(Seal, RemovesAnyClaimAndLeavesTheKey) {
  Pair pair;
  ask(*pair.d, {"SET", "k", "v"});
  ask(*pair.d, {"SET", claim_key("k"), "somebody's"});
  pair.seal("k", "ours");
  EXPECT_TRUE(ask(*pair.d, {"GET", claim_key("k")}).is_null());
  EXPECT_EQ(pair.on_new("k"), "v");
}

// A controller that slept must not put its stamp over that of a later one. (epoch, step) decide, as numbers.
TEST(Stamp, ALaterOneIsNeverReplacedByAnEarlierOne) {
  Pair pair;
  struct Row {
    std::uint64_t epoch, step;
    bool taken;
  };
  const Row rows[] = {{2, 9, true},  {2, 8, false}, {1, 99, false}, {2, 10, true},  {2, 9, false},
                      {2, 10, true}, {10, 1, true}, {9, 99, false}, {10, 0, false}, {10, 2, true}};
  std::string there;
  for (const Row& row : rows) {
    pair.fence.epoch = row.epoch;
    pair.fence.step = row.step;
    const std::string stamp = closed_stamp(pair.fence, "new");
    EXPECT_EQ(pair.set_stamp(stamp).text, row.taken ? "OK" : "STALE") << stamp << " over " << there;
    if (row.taken) there = stamp;
    EXPECT_EQ(ask(*pair.d, {"GET", kStampKey}).text, there);
  }
}

TEST(Stamp, WhatIsNoStampIsReplaced) {
  Pair pair;
  ask(*pair.d, {"SET", kStampKey, "garbage"});
  EXPECT_EQ(pair.set_stamp(closed_stamp(pair.fence, "new")).text, "OK");
  EXPECT_EQ(ask(*pair.d, {"GET", kStampKey}).text, "1.1.closed.run-new");
}

TEST(Stamp, OpenFollowsThisStepsClosedOnly) {
  Pair pair;
  const std::string open = open_stamp(pair.fence, "new");
  topology::Fence before = pair.fence;
  before.step = 0;
  for (const std::string& there : {std::string("garbage"), std::string(), closed_stamp(before, "new")}) {
    SCOPED_TRACE(there);
    ask(*pair.d, {"DEL", kStampKey});
    if (!there.empty()) ask(*pair.d, {"SET", kStampKey, there});
    EXPECT_EQ(pair.set_stamp(open).text, "STALE");
    EXPECT_EQ(pair.set_stamp(closed_stamp(pair.fence, "new")).text, "OK");
    EXPECT_EQ(pair.set_stamp(open).text, "OK");
    EXPECT_EQ(pair.set_stamp(open).text, "OK") << "once more does no harm";
  }
}

TEST(Token, I9FreshTokenForEveryClaimOfEverySource) {
  TokenSource a, b;
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(seen.insert(a.next()).second);
    EXPECT_TRUE(seen.insert(b.next()).second);
  }
}

}  // namespace
// A member at its maxmemory refuses what grows it, but it takes a stamp: else nobody could move keys away
// from it, nor roll a resize back that has filled it.
TEST(Steps, AMemberOutOfMemoryTakesAStampButNoTransfer) {
  Pair pair;
  ask(*pair.d, {"SET", "ballast", std::string(3 << 20, 'x')});
  ask(*pair.d, {"CONFIG", "SET", "maxmemory", "1mb"});
  ASSERT_TRUE(ask(*pair.d, {"SET", "more", "v"}).is_error()) << "this member is not full";
  EXPECT_EQ(pair.claim("k", pair.tokens.next()), Claim::error);
  ++pair.fence.epoch;
  EXPECT_EQ(pair.set_stamp(closed_stamp(pair.fence, "new")).text, "OK");
  EXPECT_EQ(ask(*pair.d, {"GET", kStampKey}).text, closed_stamp(pair.fence, "new"));
}

}  // namespace ringshift::transfer
