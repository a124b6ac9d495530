// A pool on a loop of its own before real redis-servers: run_until() turns the loop on the test's thread.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "protocol/resp/value.h"
#include "tests/support/redis_process.h"

namespace ringshift::backend {

using std::chrono::milliseconds;
using test::RedisProcess;

inline std::string command(std::initializer_list<std::string_view> words) {
  std::string out;
  protocol::resp::append_command(out, words);
  return out;
}

struct Outcome {
  bool answered = false;
  std::string raw;  // Or the reason of the failure.
  Failure::Kind kind = Failure::Kind::unsent;
  std::string member;
};

struct Sink final : ReplySink {
  std::vector<std::pair<std::uint64_t, Outcome>> outcomes;
  std::function<void(std::uint64_t)> then;

  void on_reply(std::uint64_t tag, std::string_view raw) override {
    outcomes.push_back({tag, {true, std::string(raw), {}, ""}});
    if (then) then(tag);
  }
  void on_failure(std::uint64_t tag, const Failure& failure) override {
    outcomes.push_back(
        {tag, {false, std::string(failure.reason), failure.kind, std::string(failure.member)}});
    if (then) then(tag);
  }
  [[nodiscard]] const Outcome& last() const { return outcomes.back().second; }
};

inline std::shared_ptr<const topology::Snapshot> snapshot_of(
    const std::vector<std::pair<std::string, std::string>>& members) {
  static std::uint64_t revision = 0;
  topology::Topology topology;
  topology.spec.cluster = "test";
  for (const auto& [id, address] : members) {
    topology::Member& member = topology.spec.members.emplace_back();
    member.id = id;
    member.address = address;
  }
  auto compiled = topology::Snapshot::compile(topology, {0, ++revision});
  if (!compiled) throw std::runtime_error(compiled.error().message);
  return *compiled;
}

class PoolTest : public testing::Test {
 protected:
  Options options() const {
    Options out;
    out.name = "rs:test";
    out.request_timeout = milliseconds(300);
    out.connect_timeout = milliseconds(500);
    return out;
  }
  void open(std::vector<std::pair<std::string, std::string>> members, Look* look = nullptr) {
    open_with(options(), std::move(members), look);
  }
  void open_with(Options with, std::vector<std::pair<std::string, std::string>> members,
                 Look* look = nullptr) {
    pool = make_pool(loop, std::move(with), look);
    adopt(std::move(members));
  }
  void adopt(std::vector<std::pair<std::string, std::string>> members) {
    snapshot = snapshot_of(members);
    pool->adopt(snapshot);
  }
  Backend& backend(std::string_view id = "m1", Resp resp = Resp::v2) {
    return pool->at(snapshot->index_of(id), resp);
  }
  bool run_until(const std::function<bool()>& done, milliseconds limit = milliseconds(10000)) {
    bool late = false, stopped = false;
    auto guard = loop.timer([&] { late = true, loop.stop(); });
    guard->arm(limit);
    auto poll = loop.timer([] {});  // Conditions may also come true outside of the loop.
    loop.set_after_wakeup([&] {
      pool->flush();
      poll->arm(milliseconds(5));
      if (!stopped && !late && done()) loop.stop(), stopped = true;
    });
    loop.post([] {});
    loop.run();
    loop.set_after_wakeup({});
    return !late;
  }
  void run_for(milliseconds time) {
    run_until([] { return false; }, time);
  }
  // One command from beginning to end.
  Outcome ask(std::initializer_list<std::string_view> words, std::string_view id = "m1",
              Resp resp = Resp::v2) {
    Sink one;
    backend(id, resp).send(command(words), one, 1);
    if (!run_until([&] { return !one.outcomes.empty(); })) return {false, "no outcome", {}, ""};
    return one.last();
  }

  net::Loop loop;
  std::unique_ptr<Pool> pool;
  std::shared_ptr<const topology::Snapshot> snapshot;
};

struct FakeRegistry final : Look {
  bool matches = false;
  std::optional<std::string> stamp;
  std::string run_id;
  int looks = 0;
  std::vector<std::function<void(bool)>> waiting;

  bool stamp_matches(std::string_view, const std::optional<std::string>& seen,
                     std::string_view run) override {
    ++looks;
    stamp = seen;
    run_id = run;
    return matches;
  }
  void confirm(std::function<void(bool)> done) override { waiting.push_back(std::move(done)); }
};

}  // namespace ringshift::backend
