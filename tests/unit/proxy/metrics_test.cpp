// The figures of a proxy before real redis-servers: what was sent is what is counted, by member; also of
// commands that are split, sent again, or answered by another member than the first one asked.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/log.h"
#include "cluster.h"
#include "dual_world.h"
#include "telemetry/exposition.h"

namespace ringshift::proxy {
namespace {

using backend::MemberSums;
using backend::Traffic;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kNil = "$-1\r\n";

class ProxyFigures : public testing::Test {
 protected:
  MemberSums member(std::size_t i) {
    const auto all = cluster_.proxy().member_sums();
    const auto found = all.find(fmt::format("cache-{}", i + 1));
    return found == all.end() ? MemberSums{} : found->second;
  }
  std::string page() {
    telemetry::Exposition out;
    cluster_.proxy().collect(out);
    return out.text();
  }
  bool eventually(const std::function<bool()>& condition) {
    for (int n = 0; n < 600; ++n) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  Cluster cluster_{2};
  Client client_ = cluster_.client();
};

TEST_F(ProxyFigures, EachMemberHasWhatWentToIt) {
  const std::string a = cluster_.key_of(0), b = cluster_.key_of(1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client_.ask({"SET", a, "1"}), "+OK\r\n");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client_.ask({"GET", a}), "$1\r\n1\r\n");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client_.ask({"GET", b}), kNil);
  EXPECT_EQ(client_.ask({"STRLEN", a}), ":1\r\n");
  EXPECT_EQ(client_.ask({"LPUSH", a, "x"}).substr(0, 10), "-WRONGTYPE");
  EXPECT_EQ(client_.ask({"GETEX", a}), "$1\r\n1\r\n");
  EXPECT_EQ(client_.ask({"GETDEL", b}), kNil);
  EXPECT_EQ(client_.ask({"PING"}), "+PONG\r\n");
  const MemberSums one = member(0), two = member(1);
  EXPECT_EQ(one.reads, 5U);
  EXPECT_EQ(one.writes, 7U);
  EXPECT_EQ(one.read_hits, 4U);
  EXPECT_EQ(one.write_hits, 1U);
  EXPECT_EQ(one.misses(), 0U);
  EXPECT_EQ(one.error_replies, 1U);
  EXPECT_EQ(two.reads, 3U);
  EXPECT_EQ(two.writes, 1U);
  EXPECT_EQ(two.hits(), 0U);
  EXPECT_EQ(two.read_misses, 3U);
  EXPECT_EQ(two.write_misses, 1U);
  const telemetry::Totals totals = cluster_.proxy().stats();
  EXPECT_EQ(get(totals, telemetry::Counter::get_hits), 5U);
  EXPECT_EQ(get(totals, telemetry::Counter::get_misses), 4U);
  EXPECT_EQ(get(totals, telemetry::Counter::requests), 17U);
}

TEST_F(ProxyFigures, APartOfASplitCommandCountsAtItsMember) {
  const std::string a = cluster_.key_of(0), b = cluster_.key_of(1);
  EXPECT_EQ(client_.ask({"MSET", a, "1", b, "2"}), "+OK\r\n");
  EXPECT_EQ(client_.ask({"MGET", a, b, a + "{x}no", a}).substr(0, 4), "*4\r\n");
  EXPECT_EQ(member(0).writes, 1U);
  EXPECT_EQ(member(1).writes, 1U);
  EXPECT_EQ(member(0).reads + member(1).reads, 2U);
  EXPECT_EQ(member(0).hits(), 2U);
  EXPECT_EQ(member(1).hits(), 1U);
  EXPECT_EQ(member(0).misses() + member(1).misses(), 1U);
  EXPECT_EQ(client_.ask({"MGET", a, a}), "*2\r\n$1\r\n1\r\n$1\r\n1\r\n");  // All on one member.
  EXPECT_EQ(member(0).hits(), 4U);
}

TEST_F(ProxyFigures, ATransactionIsOneRequest) {
  const std::string a = cluster_.key_of(0);
  EXPECT_EQ(client_.ask({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(client_.ask({"SET", a, "1"}), "+QUEUED\r\n");
  EXPECT_EQ(client_.ask({"GET", a}), "+QUEUED\r\n");
  EXPECT_EQ(client_.ask({"EXEC"}), "*2\r\n+OK\r\n$1\r\n1\r\n");
  EXPECT_EQ(member(0).requests(), 1U);
  EXPECT_EQ(member(0).others, 1U);
}

TEST_F(ProxyFigures, EveryCommandAtALowRateIsOneOfTheSample) {
  const std::string a = cluster_.key_of(0), b = cluster_.key_of(1);
  client_.ask({"SET", a, "1"});
  for (int i = 0; i < 9; ++i) client_.ask({"GET", i % 3 == 0 ? b : a});
  // Each is counted behind its answer.
  const auto count = [&] {
    const Proxy::Sampled sampled = cluster_.proxy().sampled_times();
    return std::accumulate(sampled.times.begin(), sampled.times.end(), std::uint64_t{0});
  };
  EXPECT_TRUE(eventually([&] { return count() == 10; })) << count();
  EXPECT_GT(cluster_.proxy().sampled_times().micros, 0U);
  ASSERT_TRUE(eventually([&] { return cluster_.proxy().hot_keys(0, 10).size() == 2; }));
  const auto hot = cluster_.proxy().hot_keys(0, 10);
  EXPECT_EQ(hot[0].first, a);
  EXPECT_GT(hot[0].second, hot[1].second);
}

TEST_F(ProxyFigures, ThePageSaysIt) {
  const std::string a = cluster_.key_of(0);
  client_.ask({"SET", a, "1"});
  client_.ask({"GET", a});
  client_.ask({"GET", std::string("\x01\"\\\n", 4)});
  client_.ask({"NOSUCH"});
  ASSERT_TRUE(eventually([&] { return cluster_.proxy().hot_keys(0, 10).size() == 2; }));
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("ringshift_router_requests_total 4"));
  EXPECT_THAT(text, HasSubstr("ringshift_router_errors_total{kind=\"refused\"} 1"));
  EXPECT_THAT(text, HasSubstr("ringshift_router_clients 1"));
  EXPECT_THAT(text, HasSubstr("member=\"cache-1\",class=\"write\"} 1"));
  EXPECT_THAT(text, HasSubstr("ringshift_router_member_connected{cluster=\"test\",member=\"cache-1\"} 1"));
  EXPECT_THAT(text, HasSubstr("ringshift_router_member_share{cluster=\"test\",member=\"cache-2\"} 0."));
  EXPECT_THAT(text, HasSubstr("digest=\"" + cluster_.holder()->load()->digest + "\""));
  EXPECT_THAT(text, HasSubstr("key=\"\\\\x01\\\"\\\\\\\\\\\\x0a\""))
      << "printable, and escaped as the format wants it";
  EXPECT_THAT(text, Not(HasSubstr("residual")));
}

TEST_F(ProxyFigures, ANewTopologyIsTimedAndAMemberThatLeftStaysInTheSums) {
  const std::string b = cluster_.key_of(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client_.ask({"GET", b}), kNil);
  cluster_.publish(1, 2);
  ASSERT_TRUE(eventually([&] { return cluster_.proxy().member_sums().size() == 1; }));
  EXPECT_EQ(get(cluster_.proxy().stats(), telemetry::Counter::get_misses), 3U);
  ASSERT_TRUE(
      eventually([&] { return page().contains("ringshift_router_topology_revision{cluster=\"test\"} 2"); }));
  EXPECT_THAT(page(), HasSubstr("ringshift_router_topology_push_seconds_count{cluster=\"test\"} 1"));
  EXPECT_THAT(page(), HasSubstr("ringshift_router_topology_changes_total{cluster=\"test\"} 2"));
}

TEST_F(ProxyFigures, RequestsToAMemberThatLeavesAreResidual) {
  topology::Topology topology = cluster_.holder()->load()->topology();
  topology.resize.emplace();
  topology.resize->id = "r-1";
  topology.resize->placement = topology.spec.placement;
  topology.resize->members = {topology.spec.members[0]};
  topology.fence.epoch = topology.fence.step = 1;
  const std::string b = cluster_.key_of(1);
  client_.ask({"GET", b});
  auto compiled = topology::Snapshot::compile(topology, {0, 2});
  ASSERT_TRUE(compiled) << compiled.error().message;
  ASSERT_TRUE(cluster_.holder()->publish(*compiled));
  cluster_.proxy().notify();
  const std::string residual =
      "ringshift_router_member_residual_requests_total{cluster=\"test\",member=\"cache-2\"} ";
  ASSERT_TRUE(eventually([&] { return page().contains(residual + "0"); })) << page();
  client_.ask({"GET", b});
  client_.ask({"GET", b});
  EXPECT_THAT(page(), HasSubstr(residual + "2"));
  EXPECT_THAT(page(),
              HasSubstr("ringshift_router_member_target_share{cluster=\"test\",member=\"cache-1\"} 1"));
}

TEST_F(ProxyFigures, SlowRequestsAreLoggedWithoutTheirValues) {
  std::mutex mutex;
  std::vector<std::string> lines;
  std::vector<std::string> members;
  base::set_log_sink(base::LogLevel::warning,
                     [&](base::LogLevel, std::string_view line, std::span<const base::LogField> fields) {
                       const std::lock_guard lock(mutex);
                       lines.emplace_back(line);
                       for (const base::LogField& field : fields)
                         if (field.name == "member") members.push_back(field.value);
                     });
  EXPECT_EQ(client_.ask({"CONFIG", "SET", "ringshift-slow-log-ms", "50"}), "+OK\r\n");
  const std::string a = cluster_.key_of(0);
  EXPECT_EQ(client_.ask({"SET", a, "secret"}), "+OK\r\n");
  cluster_.member(0).pause();
  client_.command({"SET", a, "secret"});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  cluster_.member(0).resume();
  EXPECT_EQ(client_.reply(), "+OK\r\n");
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return std::ranges::any_of(lines, [](const auto& line) { return line.contains("slow request: set"); });
  }));
  base::set_log_sink(base::LogLevel::off, {});
  for (const std::string& line : lines) EXPECT_THAT(line, Not(HasSubstr("secret")));
  EXPECT_THAT(members, testing::Contains("cache-1"));
}

// ---- while two topologies are routed ----

class DualFigures : public testing::Test {
 protected:
  static backend::Options with(std::shared_ptr<backend::MemberBoard> board) {
    backend::Options options;
    options.board = std::move(board);
    return options;
  }
  std::string run(std::initializer_list<std::string_view> words, std::string_view key, KeyAccess access,
                  Traffic traffic) {
    const std::uint64_t tag = ++sent_;
    KeyCommand command;
    protocol::resp::append_command(command.bytes, words);
    command.key = key;
    command.access = access;
    command.traffic = traffic;
    command.sink = &answers_;
    command.tag = tag;
    world_.router->submit(std::move(command));
    EXPECT_TRUE(world_.run_until([&] { return answers_.find(tag) != nullptr; }));
    const std::string* answer = answers_.find(tag);
    return answer == nullptr ? "" : *answer;
  }
  MemberSums at(std::string_view id) { return board_->members().find(id)->second; }

  const std::shared_ptr<backend::MemberBoard> board_ = std::make_shared<backend::MemberBoard>();
  Answers answers_;
  DualWorld world_{DualRouter::Options{}, with(board_)};
  std::uint64_t sent_ = 0;
};

TEST_F(DualFigures, AReadCountsAtTheMemberThatAnsweredIt) {
  world_.ask("a", {"SET", world_.key, "old"});
  world_.hold_drain_dual();
  EXPECT_EQ(run({"GET", world_.key}, world_.key, KeyAccess::get, Traffic::get), "$3\r\nold\r\n");
  EXPECT_EQ(at("a").hits(), 1U);
  EXPECT_EQ(at("b").requests(), 0U);
  // Absent on OLD: NEW answers, and counts.
  const std::string& none = world_.moving_keys[1];
  EXPECT_EQ(run({"GET", none}, none, KeyAccess::get, Traffic::get), kNil);
  EXPECT_EQ(at("a").requests(), 1U);
  EXPECT_EQ(at("b").requests(), 1U);
  EXPECT_EQ(at("a").misses(), 0U);
  EXPECT_EQ(at("b").misses(), 1U);
  // Other reads, and a part of an MGET.
  EXPECT_EQ(run({"STRLEN", world_.key}, world_.key, KeyAccess::read, Traffic::read), ":3\r\n");
  EXPECT_EQ(run({"MGET", world_.key}, world_.key, KeyAccess::read, Traffic::mget), "*1\r\n$3\r\nold\r\n");
  EXPECT_EQ(at("a").reads, 3U);
  EXPECT_EQ(at("a").hits(), 2U);
  const std::string& none_either = world_.moving_keys[2];
  EXPECT_EQ(run({"MGET", none_either}, none_either, KeyAccess::read, Traffic::mget), "*1\r\n$-1\r\n");
  EXPECT_EQ(at("a").reads, 3U);
  EXPECT_EQ(at("b").reads, 2U);
  EXPECT_EQ(at("b").misses(), 2U);
}

TEST_F(DualFigures, AWriteCountsOnceAtTheNewMember) {
  world_.ask("a", {"SET", world_.key, "1"});
  world_.hold_drain_dual();
  EXPECT_EQ(run({"INCR", world_.key}, world_.key, KeyAccess::write, Traffic::write), ":2\r\n");
  EXPECT_EQ(at("a").requests(), 0U);
  EXPECT_EQ(at("b").writes, 1U);
  EXPECT_GT(at("a").steps, 0U) << "the transfer is our own";
}

TEST_F(DualFigures, NewFirstCountsOnceToo) {
  world_.ask("a", {"SET", world_.key, "old"});
  world_.hold_drain_dual();
  world_.read_order(topology::ReadOrder::new_first);
  EXPECT_EQ(run({"GET", world_.key}, world_.key, KeyAccess::get, Traffic::get), "$3\r\nold\r\n");
  EXPECT_EQ(at("a").hits() + at("b").hits(), 1U);
  EXPECT_EQ(at("a").misses() + at("b").misses(), 0U);
  EXPECT_EQ(at("a").requests() + at("b").requests(), 1U);
}

}  // namespace
}  // namespace ringshift::proxy
