// Many clients of one registry that is killed and comes back at once: they return spread over time, and all
// of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "coord/coordinator.h"
#include "tests/contract/registry_process.h"

namespace ringshift::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kClients = 500;
constexpr char kKey[] = "/ringshift/default/cache/topology";

// When a client saw the value that was written after the restart.
class Returning final : public coord::Watcher {
 public:
  void on_events(const std::vector<coord::Event>& events) override {
    for (const coord::Event& event : events) look(event.kv.value);
  }
  void on_resync(const coord::Range& range) override {
    for (const coord::KeyValue& kv : range.kvs) look(kv.value);
  }
  void on_disconnected(const Error&) override {}

  [[nodiscard]] bool saw(std::string_view value) {
    const std::lock_guard lock(mutex_);
    return value_ == value;
  }
  [[nodiscard]] Clock::time_point when() {
    const std::lock_guard lock(mutex_);
    return when_;
  }

 private:
  void look(const std::string& value) {
    const std::lock_guard lock(mutex_);
    if (value != value_) when_ = Clock::now();
    value_ = value;
  }
  std::mutex mutex_;
  std::string value_;
  Clock::time_point when_;
};

bool all_saw(std::vector<Returning>& clients, std::string_view value) {
  const Clock::time_point limit = Clock::now() + 180s;
  while (!std::ranges::all_of(clients, [&](Returning& client) { return client.saw(value); })) {
    if (Clock::now() > limit) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

TEST(Herd, FiveHundredClientsReturnSpreadOverTime) {
  RegistryProcess server(Kind::ours);
  auto writer = coord::connect({{server.url()}, 20s});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->put(kKey, "before"));
  std::vector<Returning> clients(kClients);
  std::vector<std::unique_ptr<coord::Watch>> watches;
  for (Returning& client : clients) watches.push_back((*writer)->watch(kKey, client));
  ASSERT_TRUE(all_saw(clients, "before"));

  server.kill9();
  // Written from the first moment that it can be: a client sees it when it has returned.
  const Clock::time_point down = Clock::now();
  std::thread early([&] {
    auto impatient = coord::connect({{server.url()}, 20s});
    while (impatient && !(*impatient)->put(kKey, "after") && Clock::now() < down + 180s) {
      std::this_thread::sleep_for(1ms);
    }
  });
  server.start();
  early.join();
  ASSERT_TRUE(all_saw(clients, "after")) << "all come back";

  // How many returned in each tenth of a second.
  std::vector<std::size_t> returned(4000, 0);
  for (Returning& client : clients) {
    const auto tenth = std::max<std::int64_t>((client.when() - down) / 100ms, 0);
    ++returned.at(static_cast<std::size_t>(tenth));
  }
  EXPECT_LT(*std::ranges::max_element(returned), kClients * 4 / 10) << testing::PrintToString(returned);
}

}  // namespace
}  // namespace ringshift::test
