// Batches over real servers: what moves, what stays, and what the result says of it.
#include "transfer/batch.h"

#include <algorithm>
#include <random>

#include "pair.h"

namespace ringshift::transfer {
namespace {

class Batch : public testing::Test {
 protected:
  BatchResult move(const std::vector<std::string>& keys) {
    BatchMover mover(*pair_.s, *pair_.d, open_stamp(pair_.fence, "new"), pair_.tokens);
    Result<BatchResult> result = mover.move(keys);
    if (!result) throw std::runtime_error(result.error().message);
    return *result;
  }
  // Bytes that no compression makes smaller.
  std::string noise(std::size_t size) {
    std::string out(size, '\0');
    std::ranges::generate(out, [&] { return static_cast<char>(random_()); });
    return out;
  }
  std::int64_t claims_left() {
    const Value keys = ask(*pair_.d, {"KEYS", "rs:claim:*"});
    return static_cast<std::int64_t>(keys.items.size());
  }
  Pair pair_;
  std::mt19937 random_{42};
};

TEST_F(Batch, Moves) {
  std::vector<std::string> keys;
  for (int i = 0; i < 50; ++i) {
    keys.push_back("k" + std::to_string(i));
    ask(*pair_.s, {"SET", keys.back(), "v" + std::to_string(i)});
  }
  const BatchResult result = move(keys);
  EXPECT_EQ(result.moved, 50U);
  EXPECT_EQ(result.settled, 0U);
  EXPECT_EQ(result.later, 0U);
  EXPECT_GT(result.bytes, 50U);
  EXPECT_EQ(result.error, "");
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(pair_.on_new(keys[static_cast<std::size_t>(i)]), "v" + std::to_string(i));
  EXPECT_EQ(ask(*pair_.s, {"DBSIZE"}).integer, 0);
  EXPECT_EQ(claims_left(), 0) << "every key was sealed";
}

TEST_F(Batch, NothingToDo) {
  const BatchResult result = move({});
  EXPECT_EQ(result.moved + result.settled + result.later, 0U);
}

TEST_F(Batch, TtlsTravel) {
  ask(*pair_.s, {"SET", "a", "v", "PX", "60000"});
  ask(*pair_.s, {"SET", "b", "v"});
  EXPECT_EQ(move({"a", "b"}).moved, 2U);
  EXPECT_GT(ask(*pair_.d, {"PTTL", "a"}).integer, 50000);
  EXPECT_EQ(ask(*pair_.d, {"PTTL", "b"}).integer, -1);
}

// More than the cap: the payloads go in several rounds, and no more than the cap and one key in one of them.
TEST_F(Batch, ByteCap) {
  std::vector<std::string> keys;
  for (int i = 0; i < 7; ++i) {
    keys.push_back("k" + std::to_string(i));
    ask(*pair_.s, {"SET", keys.back(), noise(100 << 10)});
  }
  ask(*pair_.s, {"CONFIG", "RESETSTAT"});
  EXPECT_EQ(move(keys).moved, 7U);
  const std::string stats = ask(*pair_.s, {"INFO", "commandstats"}).text;
  EXPECT_TRUE(stats.contains("cmdstat_eval:calls=3,"))
      << "3 + 3 + 1 keys of 100 KiB under 256 KiB: " << stats;
  EXPECT_EQ(ask(*pair_.s, {"DBSIZE"}).integer, 0);
  EXPECT_EQ(claims_left(), 0);
}

TEST_F(Batch, BigKeysAreNamedWithTheirSize) {
  ask(*pair_.s, {"SET", "big", noise(kBigKeyBytes + 1000)});
  ask(*pair_.s, {"SET", "small", "v"});
  const BatchResult result = move({"big", "small"});
  EXPECT_EQ(result.moved, 2U);
  ASSERT_EQ(result.big.size(), 1U);
  EXPECT_EQ(result.big[0].first, "big");
  EXPECT_GT(result.big[0].second, kBigKeyBytes);
}

TEST_F(Batch, OutOfMemoryOnNewLeavesTheKeysOnOld) {
  for (const char* key : {"a", "b"}) ask(*pair_.s, {"SET", key, noise(1000)});
  ask(*pair_.d, {"CONFIG", "SET", "maxmemory", "1"});
  const BatchResult result = move({"a", "b"});
  EXPECT_EQ(result.moved, 0U);
  EXPECT_TRUE(result.error.starts_with("OOM")) << result.error;
  EXPECT_EQ(ask(*pair_.s, {"EXISTS", "a", "b"}).integer, 2);
  ask(*pair_.d, {"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(move({"a", "b"}).moved, 2U) << "and they move once there is room";
}

// Memory that ends between CLAIM and RESTORE: the claims were let in, the payload is not.
TEST_F(Batch, OutOfMemoryAtRestoreLeavesTheKeyOnOld) {
  ask(*pair_.s, {"SET", "a", noise(200 << 10)});
  const std::string info = ask(*pair_.d, {"INFO", "memory"}).text;
  const std::string used = info.substr(info.find("used_memory:") + 12);
  ask(*pair_.d, {"CONFIG", "SET", "maxmemory", std::to_string(std::atoll(used.c_str()) + (150 << 10))});
  const BatchResult result = move({"a"});
  if (result.moved == 0) {
    EXPECT_TRUE(result.error.starts_with("OOM")) << result.error;
    EXPECT_EQ(ask(*pair_.s, {"EXISTS", "a"}).integer, 1);
  } else {  // Redis checks before a command, not within it, so the RESTORE may pass.
    EXPECT_EQ(ask(*pair_.d, {"EXISTS", "a"}).integer, 1);
  }
}

TEST_F(Batch, ClosedGateMovesNothing) {
  ask(*pair_.s, {"SET", "a", "v"});
  pair_.set_stamp(closed_stamp(pair_.fence, "new"));
  const BatchResult result = move({"a"});
  EXPECT_TRUE(result.gated);
  EXPECT_EQ(result.moved, 0U);
  EXPECT_EQ(pair_.on_old("a"), "v");
  EXPECT_EQ(claims_left(), 0);
}

TEST_F(Batch, AnothersClaimIsLeftToTheNextPass) {
  ask(*pair_.s, {"SET", "a", "1"});
  ask(*pair_.s, {"SET", "b", "2"});
  ask(*pair_.d, {"SET", claim_key("a"), "another's", "PX", "60000"});
  const BatchResult result = move({"a", "b"});
  EXPECT_EQ(result.later, 1U);
  EXPECT_EQ(result.moved, 1U);
  EXPECT_EQ(pair_.on_old("a"), "1") << "another is at work on it";
  EXPECT_EQ(ask(*pair_.d, {"GET", claim_key("a")}).text, "another's");
  EXPECT_EQ(pair_.on_new("b"), "2");
}

TEST_F(Batch, KeysThatAreGoneAreSealedAndStayGone) {
  ask(*pair_.s, {"SET", "b", "2"});
  const BatchResult result = move({"gone", "b"});
  EXPECT_EQ(result.settled, 1U);
  EXPECT_EQ(result.moved, 1U);
  EXPECT_EQ(pair_.on_new("gone"), "(nil)");
  EXPECT_EQ(claims_left(), 0);
}

// A router restored it and died before UNLINK: what NEW has counts, OLD's copy goes.
TEST_F(Batch, AKeyThatIsOnBothIsSettledByWhatNewHas) {
  ask(*pair_.s, {"SET", "a", "v"});
  ask(*pair_.d, {"SET", "a", "v"});
  ask(*pair_.d, {"SET", claim_key("a"), "of the dead"});
  const BatchResult result = move({"a"});
  EXPECT_EQ(result.moved, 0U);
  EXPECT_EQ(result.settled, 1U);
  EXPECT_EQ(pair_.on_old("a"), "(nil)");
  EXPECT_EQ(claims_left(), 0) << "the claim of the dead must not let its RESTORE through later";
}

TEST_F(Batch, ABrokenConnectionIsTheOnlyFailure) {
  ask(*pair_.s, {"SET", "a", "v"});
  pair_.new_redis.kill();
  BatchMover mover(*pair_.s, *pair_.d, open_stamp(pair_.fence, "new"), pair_.tokens);
  const std::vector<std::string> keys = {"a"};
  const Result<BatchResult> result = mover.move(keys);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::retryable);
  EXPECT_EQ(pair_.on_old("a"), "v");
}

}  // namespace
}  // namespace ringshift::transfer
