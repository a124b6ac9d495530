// The load against a plain redis-server, which speaks what the proxy speaks, and never loses anything by
// itself: a fault that is put in behind its back must be found, and nothing else.
#include "drill/load.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <thread>

#include "drill/client.h"
#include "drill/redis_fleet.h"
#include "drill/run_directory.h"
#include "drill/worker.h"

namespace ringshift::drill {
namespace {

using namespace std::chrono_literals;

class LoadTest : public testing::Test {
 protected:
  void SetUp() override {
    auto node = fleet_.add();
    ASSERT_TRUE(node) << node.error().message;
    node_ = *node;
    options_.addresses = {node->address};
    auto origin = Origin::create(directory_->path() + "/origin.db", objects_of(options_));
    ASSERT_TRUE(origin) << origin.error().message;
    origin_ = std::move(*origin);
    auto load = Load::create(options_, *origin_);
    ASSERT_TRUE(load) << load.error().message;
    load_ = std::move(*load);
    const Status filled = load_->fill({});
    ASSERT_TRUE(filled) << filled.error().message;
    auto client = Client::connect(node->address, 1s);
    ASSERT_TRUE(client) << client.error().message;
    behind_.emplace(std::move(*client));
  }

  // Speaks to the server behind the load's back. REQUIRES: it answers.
  Client::Value behind(std::initializer_list<std::string_view> command) {
    auto value = behind_->call(command);
    EXPECT_TRUE(value) << value.error().message;
    return value ? *value : Client::Value{};
  }

  void run_for(std::chrono::milliseconds time) {
    load_->start();
    std::this_thread::sleep_for(time);
    load_->stop();
  }

  // A key that is in the cache now and that the load will not touch before it is read back.
  std::string present_key() {
    for (std::uint64_t id = 0;; ++id) {
      if (behind({"EXISTS", object_key(id)}).integer == 1) return object_key(id);
    }
  }

  Result<RunDirectory> directory_ = RunDirectory::create_temporary();
  LoadOptions options_{.addresses = {}, .threads = 2, .objects = 2000, .requests_per_second = 8000};
  RedisFleet fleet_{{.directory = directory_->path()}};
  RedisNode node_;
  std::unique_ptr<Origin> origin_;
  std::unique_ptr<Load> load_;
  std::optional<Client> behind_;
};

TEST_F(LoadTest, IsSteadyAndFindsNothingWhereNothingIsWrong) {
  load_->start();
  std::this_thread::sleep_for(200ms);
  load_->recorder().begin(Stage::before, std::chrono::steady_clock::now());
  std::this_thread::sleep_for(2s);
  load_->recorder().begin(Stage::after, std::chrono::steady_clock::now());
  std::this_thread::sleep_for(2s);
  load_->recorder().begin(Stage::other, std::chrono::steady_clock::now());
  load_->stop();
  const Status verified = load_->verify({});
  ASSERT_TRUE(verified) << verified.error().message;

  const Verdicts verdicts = load_->verdicts();
  EXPECT_EQ(verdicts.lost_writes, 0U) << testing::PrintToString(verdicts.examples);
  EXPECT_EQ(verdicts.stale_reads, 0U) << testing::PrintToString(verdicts.examples);
  EXPECT_EQ(verdicts.unknown_outcomes, 0U);
  EXPECT_GT(verdicts.reads_checked, 20000U);
  EXPECT_GT(verdicts.writes_acknowledged, 2000U);

  const StageFigures before = load_->recorder().figures(Stage::before);
  const StageFigures after = load_->recorder().figures(Stage::after);
  EXPECT_EQ(before.errors, 0U);
  // The hit rate is what theory says, from the start on.
  const double expected = 1 - absent_share(options_);
  EXPECT_NEAR(before.hit_rate, expected, 0.015);
  EXPECT_NEAR(after.hit_rate, before.hit_rate, 4 * before.hit_rate_standard_error);
  EXPECT_GT(before.get_per_second, 2000);
  EXPECT_LT(before.get_per_second, 8000 * 1.02) << "no catching up";
  EXPECT_EQ(origin_->reads(), load_->recorder().totals()[Event::origin_read]);
  EXPECT_GT(before.p99_ms, 0);
}

TEST_F(LoadTest, FindsALostWrite) {
  run_for(300ms);
  ASSERT_EQ(behind({"DEL", present_key()}).integer, 1);
  ASSERT_TRUE(load_->verify({}));
  EXPECT_EQ(load_->verdicts().lost_writes, 1U) << testing::PrintToString(load_->verdicts().examples);
  EXPECT_EQ(load_->verdicts().stale_reads, 0U);
  ASSERT_FALSE(load_->verdicts().examples.empty());
}

TEST_F(LoadTest, FindsAStaleReadAndADeletedKeyThatCameBack) {
  run_for(300ms);
  std::uint64_t deleted = 0;
  while (behind({"EXISTS", object_key(deleted)}).integer == 1) ++deleted;
  const std::string other = present_key();  // Before the next line, which makes the deleted one present.
  behind({"SET", object_key(deleted), cache_value(deleted, {1, "body"})});
  behind({"SET", other, "77777:1:the value of another key"});
  ASSERT_TRUE(load_->verify({}));
  EXPECT_EQ(load_->verdicts().stale_reads, 2U) << testing::PrintToString(load_->verdicts().examples);
  EXPECT_EQ(load_->verdicts().lost_writes, 0U);
}

TEST_F(LoadTest, FindsFaultsWhileRunning) {
  load_->start();
  std::this_thread::sleep_for(300ms);
  for (std::uint64_t id = 0; id < 200; ++id) behind({"DEL", object_key(id)});
  std::this_thread::sleep_for(500ms);
  load_->stop();
  EXPECT_GT(load_->verdicts().lost_writes, 50U);
}

TEST_F(LoadTest, FindsLostIncrementsAndOldRegisters) {
  run_for(1500ms);
  int counters = 0, registers = 0;
  for (std::size_t i = 0; i < kCounters && counters < 3; ++i) {
    const auto value = behind({"GET", counter_key(i)});
    if (value.is_null()) continue;
    behind({"DECR", counter_key(i)});
    ++counters;
  }
  for (std::size_t i = 0; i < kRegisters && registers < 2; ++i) {
    if (behind({"GET", register_key(i)}).is_null()) continue;
    behind({"SET", register_key(i), "0"});
    ++registers;
  }
  ASSERT_EQ(counters, 3);
  ASSERT_EQ(registers, 2);
  ASSERT_TRUE(load_->verify({}));
  EXPECT_EQ(load_->verdicts().lost_writes, 3U) << testing::PrintToString(load_->verdicts().examples);
  EXPECT_EQ(load_->verdicts().stale_reads, 2U) << testing::PrintToString(load_->verdicts().examples);
}

TEST_F(LoadTest, AServerThatPausesAndBreaksConnectionsIsNoLoss) {
  load_->start();
  std::this_thread::sleep_for(200ms);
  for (int i = 0; i < 5; ++i) {
    behind({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    std::this_thread::sleep_for(50ms);
  }
  ::kill(node_.pid, SIGSTOP);
  std::this_thread::sleep_for(300ms);
  ::kill(node_.pid, SIGCONT);
  std::this_thread::sleep_for(200ms);
  load_->stop();
  ASSERT_TRUE(load_->verify({}));
  const Verdicts verdicts = load_->verdicts();
  EXPECT_EQ(verdicts.lost_writes, 0U) << testing::PrintToString(verdicts.examples);
  EXPECT_EQ(verdicts.stale_reads, 0U) << testing::PrintToString(verdicts.examples);
  EXPECT_GT(load_->recorder().totals()[Event::error], 0U);
  EXPECT_GT(load_->recorder().totals()[Event::skipped], 500U) << "300 ms of the schedule passed";
}

TEST_F(LoadTest, WithoutACacheTheOriginTakesAll) {
  fleet_.stop();
  run_for(300ms);
  const Totals totals = load_->recorder().totals();
  EXPECT_EQ(totals[Event::hit], 0U);
  EXPECT_GT(totals[Event::get], 500U);
  EXPECT_EQ(totals[Event::origin_read], totals[Event::get]);
  EXPECT_EQ(load_->verdicts().lost_writes, 0U);
  EXPECT_FALSE(load_->verify({})) << "what cannot be read back is not verified";
}

TEST(LoadOptions, BadOnesAreNamed) {
  const auto directory = RunDirectory::create_temporary();
  auto origin = Origin::create(directory->path() + "/origin.db", 10);
  for (const LoadOptions& options : {LoadOptions{}, LoadOptions{.addresses = {"a:1"}, .threads = 0},
                                     LoadOptions{.addresses = {"a:1"}, .objects = 5},
                                     LoadOptions{.addresses = {"a:1"}, .requests_per_second = 0},
                                     LoadOptions{.addresses = {"a:1"}, .pipeline = 0}}) {
    const auto load = Load::create(options, **origin);
    ASSERT_FALSE(load);
    EXPECT_EQ(load.error().kind, ErrorKind::invalid) << load.error().message;
  }
}

}  // namespace
}  // namespace ringshift::drill
