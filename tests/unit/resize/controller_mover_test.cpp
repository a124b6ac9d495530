// What the controller makes of what the mover finds: big keys, copies that differ, hot keys that routers
// name.
#include "controller_world.h"
#include "coord/router_record.h"

namespace ringshift::resize {
namespace {

class ControllerMoverTest : public ControllerTest {
 protected:
  // With a key of `bytes` that moves to b, beside the small ones.
  std::string fill_with_big(std::size_t bytes) {
    fill();
    topology::Topology after;
    after.spec = small_limit();
    const auto target = *topology::Snapshot::compile(after, {1, 1});
    for (int i = 0;; ++i) {
      std::string key = fmt::format("big{}", i);
      if (target->members()[target->route(key).member].id != "b") continue;
      EXPECT_TRUE(connection(a_, "rs:test")->call({"SET", key, std::string(bytes, 'x')}));
      return key;
    }
  }
  topology::Spec small_limit() {
    topology::Spec out = spec({"a", "b"});
    out.limits.big_key_bytes = 1U << 20;
    return out;
  }
  Request begin(const std::string& big_keys = "", std::uint64_t limit = 0, const std::string& verify = "") {
    Request request;
    request.spec = small_limit();
    request.steps = {50, 100};
    request.allow_foreign = true;
    request.big_keys = big_keys;
    request.big_key_limit = limit;
    request.verify = verify;
    return request;
  }
  void serve() {
    put(keys_.spec(), [&] {
      topology::Spec first = spec({"a"});
      first.limits = small_limit().limits;
      return topology::to_json(first);
    }());
    start_controller();
    ASSERT_TRUE(wait([&] { return topology().has_value(); }));
    start_router();
  }
  std::int64_t length(const RedisProcess& redis, const std::string& key) {
    return connection(redis, "rs:test")->call({"STRLEN", key})->integer;
  }
};

TEST_F(ControllerMoverTest, ABigKeyHoldsItsStepUntilItIsAllowed) {
  const std::string big = fill_with_big(3U << 20);
  serve();
  ASSERT_EQ(ask(begin()), "");
  ASSERT_TRUE(wait([&] { return !status().last_error.empty(); })) << to_json(status());
  const ResizeStatus waiting = status();
  EXPECT_EQ(waiting.state, "running");
  EXPECT_TRUE(waiting.last_error.contains(big)) << waiting.last_error;
  EXPECT_TRUE(waiting.last_error.contains("resize big-keys move --limit ")) << waiting.last_error;
  EXPECT_EQ(waiting.big_keys_waiting, 1U);
  ASSERT_EQ(waiting.waiting_big_keys.size(), 1U);
  EXPECT_EQ(waiting.waiting_big_keys[0].key, big);
  EXPECT_EQ(length(a_, big), 3 << 20);

  Request request;
  request.action = Request::Action::big_keys;
  request.big_keys = "all of them";
  EXPECT_TRUE(ask(request).contains("none of move, wait, refuse"));
  request.big_keys = "move";
  request.big_key_limit = 2U << 20;  // Too low for it.
  EXPECT_EQ(ask(request), "");
  EXPECT_TRUE(wait([&] { return !status().last_error.empty(); })) << "it still waits";
  EXPECT_EQ(length(a_, big), 3 << 20);
  request.big_key_limit = 8U << 20;
  EXPECT_EQ(ask(request), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_EQ(length(b_, big), 3 << 20);
  EXPECT_EQ(status().big_keys_waiting, 0U);
  EXPECT_EQ(status().last_error, "");
  expect_all_keys_in_place();
}

TEST_F(ControllerMoverTest, ABigKeyThatIsGoneHoldsNothing) {
  const std::string big = fill_with_big(3U << 20);
  serve();
  ASSERT_EQ(ask(begin("wait")), "");
  ASSERT_TRUE(wait([&] { return status().big_keys_waiting == 1; }));
  ASSERT_TRUE(connection(a_, "rs:test")->call({"DEL", big}));
  ASSERT_TRUE(wait_for("finished"));
}

TEST_F(ControllerMoverTest, BigKeysMoveByThemselvesWhereThatWasSaid) {
  const std::string big = fill_with_big(3U << 20);
  serve();
  ASSERT_EQ(ask(begin("move", 0, "all")), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_EQ(length(b_, big), 3 << 20);
  EXPECT_EQ(status().keys_verified, status().keys_moved);
  expect_all_keys_in_place();
}

TEST_F(ControllerMoverTest, RefusedBigKeysRollTheResizeBack) {
  const std::string big = fill_with_big(3U << 20);
  serve();
  ASSERT_EQ(ask(begin("refuse")), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_TRUE(status().rolled_back);
  EXPECT_EQ(length(a_, big), 3 << 20);
  expect_all_keys_in_place();
}

TEST_F(ControllerMoverTest, WordsThatItDoesNotKnowAreRefusedBeforeAnythingBegins) {
  fill();
  serve();
  EXPECT_TRUE(ask(begin("maybe")).contains("'maybe' is none of move, wait, refuse"));
  EXPECT_TRUE(ask(begin("wait", 5)).contains("a limit goes with 'move'"));
  EXPECT_TRUE(ask(begin("", 0, "some")).contains("'some' is none of counts, sample, all"));
  EXPECT_FALSE(topology()->resize);
}

// The gates had begun to close for good, so nothing is left on a; then a member did not answer. The mover
// that is begun again must not be held up by a key that routers call hot, and that is not there.
TEST_F(ControllerMoverTest, I10GatesThatBeganToCloseAreClosedWhateverIsCalledHot) {
  for (const char* memory : {"+memory", "-memory"}) {  // Without it no mover can tell what is there.
    SCOPED_TRACE(memory);
    ASSERT_TRUE(connection(a_, "rs:test")->call({"ACL", "SETUSER", "default", memory}));
    start_controller();
    ASSERT_TRUE(wait([&] { return topology().has_value() && !topology()->resize; }));
    if (!router_) start_router();
    fill();
    ASSERT_EQ(start(spec({"a", "b"}, 50)), "");
    ASSERT_TRUE(wait([&] { return in_phase(Phase::dual) && status().keys_moved > 5; }));
    ASSERT_EQ(ask(Request::Action::pause), "");
    ASSERT_TRUE(wait_for("paused"));
    const auto now = *topology();
    for (const auto* member : {&a_, &b_}) {
      const auto client = connection(*member, "rs:test");
      for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(client->call({"DEL", fmt::format("k{}", i)}));
    }
    ASSERT_EQ(b_.command("SET rs:stamp " + transfer::done_stamp(now.fence, "b")), "+OK\r\n");
    coord::RouterRecord record;
    record.revision = coordinator_->get(keys_.topology()).value()->mod_revision;
    for (std::uint64_t i = 0; i < coord::RouterRecord::kHotKeysMax; ++i)
      record.moving_keys.emplace_back(fmt::format("k{}", i), 1000 - i);
    put(keys_.router("hot"), coord::to_json(record));
    ASSERT_EQ(ask(Request::Action::resume), "");
    ASSERT_TRUE(wait_for("finished"));
    ASSERT_TRUE(coordinator_->remove(keys_.router("hot")));
    ASSERT_EQ(start(spec({"a"}, 1000000)), "");
    ASSERT_TRUE(wait_for("finished"));
    controller_.reset();
  }
}

// The leader dies when it has closed the gates for good and not yet published NEW, and routers name hot keys,
// which the next one's mover tries first: they meet closed gates, and the step ends all the same.
TEST_F(ControllerMoverTest, HotKeysDoNotKeepAStepOpenWhoseGatesAreClosed) {
  fill();
  start_controller();
  ASSERT_TRUE(wait([&] { return topology().has_value(); }));
  auto link = coord::RouterLink::start(*coordinator_, keys_, {.router_id = "hot"}, milliseconds(5000));
  ASSERT_TRUE(link);
  coord::RouterLink* const raw = link->get();
  raw->set_hooks({[raw] { raw->applied(raw->holder()->load()->version); },
                  [](coord::RouterRecord& record) {
                    for (int i = 0; i < 8; ++i) record.moving_keys.emplace_back(fmt::format("k{}", i), 100);
                  }});
  ASSERT_EQ(start(spec({"a", "b"}, 1)), "");
  ASSERT_TRUE(wait([&] { return in_phase(Phase::dual); }));
  ASSERT_EQ(ask(Request::Action::pause), "");
  controller_.reset();
  const topology::Fence fence = topology()->fence;
  for (const auto& [redis, id] : {std::pair{&a_, "a"}, std::pair{&b_, "b"}}) {
    const auto client = connection(*redis, "rs:test");
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(client->call({"DEL", fmt::format("k{}", i)}));
    std::string done;
    transfer::append_set_stamp(done, fence, transfer::done_stamp(fence, id));
    ASSERT_EQ(client->pipeline(done, 1)->front().text, "OK");
  }
  start_controller();
  ASSERT_EQ(ask(Request::Action::resume), "");
  ASSERT_TRUE(wait_for("finished"));
  EXPECT_EQ(topology()->spec.members.size(), 2U);
}

#if defined(RINGSHIFT_PROTOCOL_FAULTS)
TEST_F(ControllerMoverTest, AWrongCopyPausesTheResizeAndTheKeysStay) {
  fill();
  serve();
  transfer::set_broken(transfer::Fault::wrong_copy, true);
  EXPECT_EQ(ask(begin("", 0, "all")), "");
  EXPECT_TRUE(wait_for("paused"));
  transfer::set_broken(transfer::Fault::wrong_copy, false);
  EXPECT_TRUE(status().last_error.contains("the copy of key 'k")) << status().last_error;
  EXPECT_EQ(connection(b_, "rs:test")->call({"KEYS", "k*"})->items.size(), 0U);
  EXPECT_EQ(ask(Request::Action::resume), "");
  ASSERT_TRUE(wait_for("finished"));
  expect_all_keys_in_place();
}
#endif

}  // namespace
}  // namespace ringshift::resize
