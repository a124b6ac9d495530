// The recorder and the checker on histories of a real redis-server: as it is, and behind clients that lie
// the way a broken resize would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "backend/sync_client.h"
#include "check/judge.h"
#include "check/key_remover.h"
#include "check/live_judge.h"
#include "check/report.h"
#include "check/workload.h"

namespace ringshift::check {
namespace {

using protocol::resp::Value;

std::uint16_t free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(probe, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(probe);
  return ntohs(address.sin_port);
}

class RealRedis : public testing::Test {
 protected:
  void SetUp() override {
    const std::string port = std::to_string(free_port());
    address_ = "127.0.0.1:" + port;
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
      ::execlp("redis-server", "redis-server", "--port", port.c_str(), "--bind", "127.0.0.1", "--save", "",
               "--loglevel", "warning", "--dir", "/tmp", nullptr);
      ::_exit(127);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!backend::SyncClient::connect(address_)) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "redis-server does not start";
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    options_.proxies = {address_};
    options_.seed = std::random_device{}();
    options_.duration = std::chrono::milliseconds(1200);
    options_.keys = 12;
    options_.rate = 12000;
  }
  void TearDown() override {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  Judgement run() {
    history_ = run_workload(options_);
    return judge(history_);
  }

  std::string address_;
  pid_t process_ = -1;
  WorkloadOptions options_;
  History history_;
};

TEST_F(RealRedis, IsLinearizable) {
  const Judgement result = run();
  EXPECT_TRUE(result.clean()) << to_text(result, info_of(history_, options_.seed));
  EXPECT_EQ(history_.errors, 0U);
  EXPECT_EQ(result.unknown, 0U);
  EXPECT_GT(result.operations, 2000U);
}

TEST_F(RealRedis, StaysCleanWhenItDiesAndKeysOfUnknownFateRemain) {
  // The server stands still past the clients' patience, then goes on: writes take effect late.
  options_.timeout = std::chrono::milliseconds(150);
  options_.duration = std::chrono::milliseconds(2000);
  std::jthread pauses([this] {
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::kill(process_, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      ::kill(process_, SIGCONT);
    }
  });
  const Judgement result = run();
  EXPECT_TRUE(result.clean()) << to_text(result, info_of(history_, options_.seed));
  EXPECT_GT(result.unknown, 10U);
  EXPECT_GT(history_.reconnects, 10U);
}

TEST_F(RealRedis, EveryKindIsCheckedAndLongValuesToTheirLastByte) {
  options_.max_value = 200'000;
  const Judgement result = run();
  EXPECT_TRUE(result.clean()) << to_text(result, info_of(history_, options_.seed));
  for (const std::uint64_t operations : result.by_kind) EXPECT_GT(operations, 50U);
}

TEST_F(RealRedis, JudgesWhileItRunsAndRemovesItsKeys) {
  options_.prefix = "mine:";
  KeyRemover remover(options_.proxies, nullptr);
  LiveJudge judge({}, [&](const std::vector<Operation>& operations) {
    remover.add(operations.front().key, /*again=*/false);
  });
  options_.done = [&](std::vector<Operation> operations) { judge.take(std::move(operations)); };
  EXPECT_TRUE(run_workload(options_).operations.empty());
  const Judgement result = judge.finish();
  EXPECT_TRUE(result.clean());
  EXPECT_GT(result.operations, 2000U);
  EXPECT_EQ(remover.finish(std::chrono::seconds(20)), 0U);
  auto client = backend::SyncClient::connect(address_);
  ASSERT_TRUE(client);
  EXPECT_EQ((*client)->call({"DBSIZE"})->integer, 0);
}

TEST_F(RealRedis, KeysThatCannotBeRemovedAreCounted) {
  KeyRemover remover({"127.0.0.1:1"}, nullptr);
  remover.add("a", false);
  remover.add("b", true);
  EXPECT_EQ(remover.finish(std::chrono::milliseconds(300)), 3U);
}

// What each key held before its last acknowledged write.
class Memory {
 public:
  void note(const Operation& op) {
    if (op.kind != Kind::register_ || op.outcome != Outcome::answered || op.verb != Verb::set) return;
    const std::lock_guard lock(mutex_);
    auto& [last, before] = values_[op.key];
    before = last;
    last = op.value;
  }
  std::string before(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return values_[key].second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<std::string, std::string>> values_;
};

TEST_F(RealRedis, AClientThatReadsOldValuesIsCaught) {
  Memory memory;
  std::atomic<int> calls = 0;
  options_.observe = [&](const Operation& op) { memory.note(op); };
  options_.tamper = [&](const Operation& op) -> std::optional<Value> {
    if (op.kind != Kind::register_ || op.verb != Verb::get || ++calls % 50 != 0) return std::nullopt;
    const std::string old = memory.before(op.key);
    if (old.empty()) return std::nullopt;
    return Value{.type = Value::Type::bulk, .text = old, .integer = 0, .items = {}};
  };
  const Judgement result = run();
  EXPECT_GT(result.stale_reads + result.resurrected, 0U) << to_text(result, info_of(history_, options_.seed));
}

struct Lie {
  const char* what;
  Kind kind;
  Verb verb;
  Value answer;
};

class Liar : public RealRedis, public testing::WithParamInterface<Lie> {};

TEST_P(Liar, IsCaught) {
  std::atomic<int> calls = 0, lies = 0;
  options_.kinds = {GetParam().kind};
  options_.duration = std::chrono::milliseconds(800);
  options_.tamper = [&](const Operation& op) -> std::optional<Value> {
    if (op.kind != GetParam().kind || op.verb != GetParam().verb || ++calls % 20 != 0) return std::nullopt;
    ++lies;
    return GetParam().answer;
  };
  const Judgement result = run();
  EXPECT_GT(lies, 0);
  EXPECT_FALSE(result.clean()) << GetParam().what << "\n"
                               << to_text(result, info_of(history_, options_.seed));
}

INSTANTIATE_TEST_SUITE_P(
    Lies, Liar,
    testing::Values(
        Lie{"acknowledges a SET that it does not do",
            Kind::register_,
            Verb::set,
            {Value::Type::simple, "OK", 0, {}}},
        Lie{"says that it deleted, and did not",
            Kind::register_,
            Verb::del,
            {Value::Type::integer, "", 1, {}}},
        Lie{"reads nothing", Kind::register_, Verb::get, {}},
        Lie{"counts from the start again", Kind::counter, Verb::incr, {Value::Type::integer, "", 1, {}}},
        Lie{"a counter that is gone", Kind::counter, Verb::get, {}},
        Lie{"a hash without its fields", Kind::hash, Verb::hgetall, {Value::Type::array, "", 0, {}}},
        Lie{"a field that is gone", Kind::hash, Verb::hget, {}},
        Lie{"a time to live that is gone", Kind::expiry, Verb::pttl, {Value::Type::integer, "", -1, {}}},
        Lie{"an element that did not arrive", Kind::list, Verb::rpush, {Value::Type::integer, "", 1, {}}},
        Lie{"a list that is gone", Kind::list, Verb::llen, {Value::Type::integer, "", 0, {}}},
        Lie{"a member that is gone", Kind::set, Verb::smembers, {Value::Type::array, "", 0, {}}},
        Lie{"a member that was there", Kind::set, Verb::sadd, {Value::Type::integer, "", 1, {}}},
        Lie{"a score that is gone", Kind::zset, Verb::zscore, {}},
        Lie{"a stream that is gone", Kind::stream, Verb::xlen, {Value::Type::integer, "", 0, {}}},
        Lie{"gone before its deadline", Kind::expiry, Verb::get, {}}));

}  // namespace
}  // namespace ringshift::check
