// A DualRouter with a real pool on a loop of its own, before two real redis-servers: OLD ("a") and NEW ("b").
// Everything happens on the test's thread: run_until() turns the loop.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/sync_client.h"
#include "proxy/dual_router.h"
#include "tests/support/redis_process.h"
#include "transfer/faults.h"
#include "transfer/steps.h"

namespace ringshift::proxy {

// Answers in the order of their arrival; "(unsent) why", "(unknown) why", "(overloaded) why" for failures.
class Answers final : public backend::ReplySink {
 public:
  void on_reply(std::uint64_t tag, std::string_view raw) override { add(tag, std::string(raw)); }
  void on_failure(std::uint64_t tag, const backend::Failure& failure) override {
    const char* kind = failure.kind == backend::Failure::Kind::unsent    ? "(unsent) "
                       : failure.kind == backend::Failure::Kind::unknown ? "(unknown) "
                                                                         : "(overloaded) ";
    add(tag, kind + std::string(failure.reason));
  }
  [[nodiscard]] const std::string* find(std::uint64_t tag) const {
    const auto found = by_tag.find(tag);
    return found == by_tag.end() ? nullptr : &found->second;
  }
  std::map<std::uint64_t, std::string> by_tag;
  std::vector<std::uint64_t> order;

 private:
  void add(std::uint64_t tag, std::string text) {
    EXPECT_TRUE(by_tag.emplace(tag, std::move(text)).second) << "a second answer to command " << tag;
    order.push_back(tag);
  }
};

class DualWorld {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DualWorld(DualRouter::Options options = {}) : DualWorld(options, backend::Options{}) {}
  DualWorld(DualRouter::Options options, backend::Options pool_options) {
    pool_options.name = "rs:test";
    pool = backend::make_pool(loop, pool_options, nullptr);
    router = std::make_unique<DualRouter>(loop, *pool, options);
    loop.set_after_wakeup([this] {
      pool->flush();
      if (!done_ || (!done_() && Clock::now() < give_up_)) return;
      done_ = nullptr;  // stop() arrives as a task; a second one would end the next run at once.
      loop.stop();
    });
    tick_ = loop.timer([this] { tick_->arm(std::chrono::milliseconds(1)); });
    tick_->arm(std::chrono::milliseconds(1));
    topology.spec.cluster = "test";
    topology.spec.members = {member("a", old_redis)};
    topology::Resize resize;
    resize.id = "r";
    resize.members = {member("a", old_redis), member("b", new_redis)};
    topology.resize = resize;
    topology.fence = {1, 1, {{"a", "run-a"}, {"b", "run-b"}}};
    publish();
    // A key that moves from a to b, one more, and one that stays.
    const auto probe = compile();
    std::vector<std::string> moving;
    for (int i = 0; moving.size() < 4 || staying.empty(); ++i) {
      const std::string candidate = fmt::format("key{}", i);
      if (probe->owner_after(candidate) == 1) {
        moving.push_back(candidate);
      } else {
        staying = candidate;
      }
    }
    key = moving[0];
    moving_keys = moving;
  }
  ~DualWorld() {
    done_ = nullptr;
    pool.reset();
    router.reset();
  }
  DualWorld(const DualWorld&) = delete;
  DualWorld& operator=(const DualWorld&) = delete;

  // --- phases, in the order that a controller would go through them ---
  void publish() {
    snapshot = compile();
    pool->adopt(snapshot);
    router->adopt(snapshot);
  }
  void hold() {
    ++topology.fence.step;
    topology.resize->phase = topology::Phase::hold;
    topology.resize->active = {{0, topology::kSliceCount}};
    topology.resize->done.clear();
    topology.resize->read_order = topology::ReadOrder::old_first;
    set_gate("a", false);
    set_gate("b", false);
    publish();
  }
  // HOLD's barrier: every command sent so far is answered.
  void drain() {
    bool drained = false;
    pool->drain([&] { drained = true; });
    ASSERT_TRUE(run_until([&] { return drained; })) << "HOLD is not acknowledged";
  }
  void dual() {
    set_gate(topology.resize->rollback ? "a" : "b", true);
    topology.resize->phase = topology::Phase::dual;
    publish();
  }
  void hold_drain_dual() {
    hold();
    drain();
    dual();
  }
  // The mover's last passes, then the gate, then NEW.
  void settle() {
    move_all();
    set_gate(topology.resize->rollback ? "a" : "b", false);
    if (!topology.resize->rollback) topology.resize->done = topology.resize->active;
    topology.resize->active.clear();
    topology.resize->phase = topology::Phase::prep;
    publish();
  }
  void rollback() {
    ++topology.fence.epoch;
    topology.resize->rollback = true;
    hold();
  }
  void read_order(topology::ReadOrder order) {
    topology.resize->read_order = order;
    publish();
  }
  // What the mover does with each key, as blocking steps from here. The loop does not turn meanwhile, but
  // commands of the router may be in flight.
  void move_all() {
    const bool back = topology.resize->rollback;
    for (const std::string& moving : moving_keys) {
      for (int i = 0; ask(back ? "b" : "a", {"EXISTS", moving}).integer == 1; ++i) {
        ASSERT_LT(i, 4000) << "the mover does not come through";
        move_one(moving);
      }
    }
  }
  void move_one(const std::string& moving) {
    const std::string from = topology.resize->rollback ? "b" : "a",
                      to = topology.resize->rollback ? "a" : "b";
    const std::string stamp = transfer::open_stamp(topology.fence, to), token = tokens.next();
    std::string bytes;
    transfer::append_claim(bytes, moving, stamp, token);
    const auto claim = transfer::read_claim(raw(to, bytes));
    if (claim == transfer::Claim::wait) {
      run_for(std::chrono::milliseconds(1));
      return;
    }
    if (claim == transfer::Claim::claimed) {
      bytes.clear();
      transfer::append_dump(bytes, moving);
      const transfer::Dump copy = transfer::read_dump(raw(from, bytes));
      if (copy.kind == transfer::Dump::Kind::payload) {
        bytes.clear();
        transfer::append_restore(bytes, moving, stamp, token, copy.ttl_ms, copy.payload);
        const auto restored = transfer::read_restore(raw(to, bytes));
        if (restored != transfer::Restore::ok && restored != transfer::Restore::busy) return;
      }
    } else if (claim != transfer::Claim::busy) {
      return;
    }
    ask(from, {"UNLINK", moving});
    bytes.clear();
    transfer::append_seal(bytes, moving, token);
    raw(to, bytes);
  }

  // --- commands ---
  std::uint64_t submit(std::initializer_list<std::string_view> words,
                       backend::Resp resp = backend::Resp::v2) {
    KeyCommand command;
    protocol::resp::append_command(command.bytes, words);
    const std::string_view name = *words.begin();
    command.key = std::string(*(words.begin() + 1));
    const bool read =
        name == "STRLEN" || name == "TTL" || name == "TYPE" || name == "LRANGE" || name == "EXISTS";
    command.access = name == "GET" ? KeyAccess::get : read ? KeyAccess::read : KeyAccess::write;
    command.resp = resp;
    command.sink = &answers;
    command.tag = ++last_tag;
    router->submit(std::move(command));
    EXPECT_EQ(answers.find(last_tag), nullptr) << "answered from inside submit()";
    return last_tag;
  }
  std::string answer(std::uint64_t tag) {
    EXPECT_TRUE(run_until([&] { return answers.find(tag) != nullptr; })) << "no answer to command " << tag;
    const std::string* found = answers.find(tag);
    return found == nullptr ? "(none)" : *found;
  }
  std::string run(std::initializer_list<std::string_view> words, backend::Resp resp = backend::Resp::v2) {
    return answer(submit(words, resp));
  }

  bool run_until(std::function<bool()> done, std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    if (done()) return true;
    give_up_ = Clock::now() + patience;
    done_ = done;
    loop.run();
    done_ = nullptr;
    return done();
  }
  void run_for(std::chrono::milliseconds time) {
    static_cast<void>(run_until([] { return false; }, time));
  }

  // --- members, behind the router's back ---
  protocol::resp::Value raw(const std::string& id, const std::string& command) {
    auto& client = direct_[id];
    if (client == nullptr)
      client = std::move(*backend::SyncClient::connect((id == "a" ? old_redis : new_redis).address()));
    auto replies = client->pipeline(command, 1);
    if (!replies) throw std::runtime_error(replies.error().message);
    return std::move(replies->front());
  }
  protocol::resp::Value ask(const std::string& id, std::initializer_list<std::string_view> words) {
    std::string command;
    protocol::resp::append_command(command, words);
    return raw(id, command);
  }
  std::string get(const std::string& id, const std::string& name) {
    const auto value = ask(id, {"GET", name});
    return value.is_null() ? "(nil)" : value.text;
  }
  // How often the member ran a command since the last reset_stats().
  std::uint64_t calls(const std::string& id, const std::string& command) {
    const std::string stats = ask(id, {"INFO", "commandstats"}).text;
    const std::size_t at = stats.find("cmdstat_" + command + ":calls=");
    return at == std::string::npos ? 0 : std::stoull(stats.substr(at + command.size() + 15));
  }
  void reset_stats() {
    for (const char* id : {"a", "b"}) ask(id, {"CONFIG", "RESETSTAT"});
  }
  void set_gate(const std::string& id, bool open) {
    std::string command;
    transfer::append_set_stamp(command, topology.fence, transfer::closed_stamp(topology.fence, id));
    ASSERT_EQ(raw(id, command).text, "OK");
    if (!open) return;
    command.clear();
    transfer::append_set_stamp(command, topology.fence, transfer::open_stamp(topology.fence, id));
    ASSERT_EQ(raw(id, command).text, "OK");
  }

  test::RedisProcess old_redis, new_redis;
  net::Loop loop;
  std::unique_ptr<backend::Pool> pool;
  std::unique_ptr<DualRouter> router;
  topology::Topology topology;
  std::shared_ptr<const topology::Snapshot> snapshot;
  transfer::TokenSource tokens;
  Answers answers;
  std::uint64_t last_tag = 0;
  std::string key, staying;
  std::vector<std::string> moving_keys;

 private:
  static topology::Member member(const std::string& id, const test::RedisProcess& redis) {
    topology::Member out;
    out.id = id;
    out.address = redis.address();
    return out;
  }
  [[nodiscard]] std::shared_ptr<const topology::Snapshot> compile() {
    auto compiled = topology::Snapshot::compile(topology, {1, ++revision_});
    if (!compiled) throw std::runtime_error(compiled.error().message);
    return *compiled;
  }
  std::uint64_t revision_ = 0;
  std::map<std::string, std::unique_ptr<backend::SyncClient>> direct_;
  std::function<bool()> done_;
  Clock::time_point give_up_;
  std::unique_ptr<net::Timer> tick_;
};

}  // namespace ringshift::proxy
