// A real registry, two members and RouterLinks that stand in for routers: they follow the topology and
// acknowledge it, or do not. The controller under test comes and goes.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "backend/sync_client.h"
#include "coord/router_link.h"
#include "registry/server.h"
#include "resize/controller.h"
#include "resize/status.h"
#include "tests/support/redis_process.h"
#include "transfer/faults.h"
#include "transfer/steps.h"

namespace ringshift::resize {

using std::chrono::milliseconds;
using test::RedisProcess;
using topology::Phase;

class ControllerTest : public testing::Test {
 protected:
  static constexpr int kKeys = 400;

  ControllerTest() {
    std::string pattern = "/tmp/rs_controller_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    registry_ = std::move(*registry::Server::start({"127.0.0.1", 0, directory_ + "/db"}));
    coordinator_ = std::move(*coord::connect({{registry_->url()}, milliseconds(3000)}));
    put(keys_.spec(), topology::to_json(spec({"a"})));
  }
  ~ControllerTest() override {
    router_.reset();
    controller_.reset();
    coordinator_.reset();
    registry_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  topology::Spec spec(std::initializer_list<const char*> ids, std::uint64_t keys_per_second = 1000000) {
    topology::Spec out;
    out.cluster = "test";
    for (const std::string id : ids) {
      topology::Member member;
      member.id = id;
      member.address = (id == "a" ? a_ : b_).address();
      out.members.push_back(member);
    }
    out.limits.move_keys_per_second = keys_per_second;
    return out;
  }
  void put(const std::string& key, const std::string& value) { ASSERT_TRUE(coordinator_->put(key, value)); }

  void start_controller(milliseconds fence_timeout = milliseconds(300)) {
    ControllerOptions options;
    options.id = fmt::format("controller-{}", ++controllers_);
    options.fence_timeout = fence_timeout;
    controller_ = std::make_unique<Controller>(*coordinator_, keys_, options);
  }
  // A router that acknowledges what `acknowledges` says yes to.
  std::unique_ptr<coord::RouterLink> router(const std::string& id,
                                            std::function<bool(const topology::Topology&)> acknowledges) {
    auto link = coord::RouterLink::start(*coordinator_, keys_, {.router_id = id}, milliseconds(5000));
    if (!link) throw std::runtime_error(link.error().message);
    coord::RouterLink* raw = link->get();
    (*link)->set_hooks({[raw, acknowledges] {
                          const auto snapshot = raw->holder()->load();
                          if (acknowledges(snapshot->topology())) raw->applied(snapshot->version);
                        },
                        {}});
    return std::move(*link);
  }
  void start_router() {
    router_ = router("good", [](const topology::Topology&) { return true; });
  }
  std::unique_ptr<backend::SyncClient> connection(const RedisProcess& redis, const std::string& name) {
    backend::SyncOptions options;
    options.name = name;
    return std::move(*backend::SyncClient::connect(redis.address(), options));
  }
  void fill() {
    const auto client = connection(a_, "rs:test");
    for (int i = 0; i < kKeys; ++i)
      ASSERT_TRUE(client->call({"SET", fmt::format("k{}", i), fmt::format("v{}", i)}));
  }

  std::optional<topology::Topology> topology() {
    const auto kv = coordinator_->get(keys_.topology());
    if (!kv || !*kv) return std::nullopt;
    auto parsed = topology::parse_topology((*kv)->value, "test");
    return parsed ? std::optional(*parsed) : std::nullopt;
  }
  ResizeStatus status() {
    const auto kv = coordinator_->get(keys_.status());
    if (!kv || !*kv) return {};
    return parse_status((*kv)->value).value_or(ResizeStatus{});
  }
  bool wait(const std::function<bool()>& done, milliseconds patience = milliseconds(15000)) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!done()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return true;
  }
  bool wait_for(const std::string& state) {
    const bool reached = wait([&] { return status().state == state; });
    if (!reached) ADD_FAILURE() << "waiting for " << state << ": " << to_json(status());
    return reached;
  }
  bool in_phase(Phase phase) {
    const auto now = topology();
    return now && now->resize && now->resize->phase == phase;
  }
  // What the controller answers: "" when it accepts.
  std::string ask(Request request) {
    request.id = fmt::format("request-{}", ++requests_);
    put(keys_.request(), to_json(request));
    if (!wait([&] { return status().request_id == request.id; })) return "(no answer) " + to_json(status());
    return status().request_error;
  }
  std::string ask(Request::Action action) {
    Request request;
    request.action = action;
    return ask(request);
  }
  std::string start(const topology::Spec& target, std::vector<double> steps = {100}) {
    Request request;
    request.spec = target;
    request.steps = std::move(steps);
    request.allow_foreign = true;
    return ask(request);
  }

  // Every key is there once, with its value, at the member that the last topology names.
  void expect_all_keys_in_place() {
    const auto now = topology();
    ASSERT_TRUE(now && !now->resize);
    const auto snapshot = *topology::Snapshot::compile(*now, {1, 1});
    const auto on_a = connection(a_, "rs:test"), on_b = connection(b_, "rs:test");
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = fmt::format("k{}", i);
      const bool at_a = snapshot->members()[snapshot->route(key).member].id == "a";
      EXPECT_EQ((at_a ? on_a : on_b)->call({"GET", key})->text, fmt::format("v{}", i));
      EXPECT_EQ((at_a ? on_b : on_a)->call({"EXISTS", key})->integer, 0) << key;
    }
  }
  std::vector<topology::Topology> history() {
    std::vector<topology::Topology> out;
    const auto listed = coordinator_->list(keys_.history());
    for (const auto& kv : listed->kvs) out.push_back(*topology::parse_topology(kv.value, "history"));
    return out;
  }

  RedisProcess a_, b_;
  std::string directory_;
  std::unique_ptr<registry::Server> registry_;
  std::unique_ptr<coord::Coordinator> coordinator_;
  const coord::ClusterKeys keys_{"default", "test"};
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<coord::RouterLink> router_;
  int controllers_ = 0, requests_ = 0;
};

}  // namespace ringshift::resize
