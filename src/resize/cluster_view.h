// What the registry says about one cluster, as the last watch event left it; and a bell that rings when it
// changes. For noticing, not for deciding: decisions compare revisions in a transaction.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "coord/coordinator.h"
#include "coord/keys.h"

namespace ringshift::resize {

class ClusterView final : public coord::Watcher {
 public:
  ClusterView(coord::Coordinator& coordinator, const coord::ClusterKeys& keys)
      : watch_(coordinator.watch(keys.prefix, *this)) {}
  ~ClusterView() override { watch_.reset(); }

  [[nodiscard]] std::optional<coord::KeyValue> get(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  [[nodiscard]] std::map<std::string, coord::KeyValue> under(const std::string& prefix) const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, coord::KeyValue> found;
    for (auto it = values_.lower_bound(prefix); it != values_.end() && it->first.starts_with(prefix); ++it) {
      found.insert(*it);
    }
    return found;
  }

  // Until `ready` holds or `patience` is over; whether it held. It is asked after every change, and after
  // ring(), without the lock.
  bool wait(std::chrono::milliseconds patience, const std::function<bool()>& ready) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (true) {
      const std::uint64_t seen = changes_;
      if (ready()) return true;
      std::unique_lock lock(mutex_);
      if (!changed_.wait_until(lock, until, [&] { return changes_ != seen; })) return false;
    }
  }

  void ring() {
    const std::lock_guard lock(mutex_);
    ++changes_;
    changed_.notify_all();
  }

 private:
  void on_events(const std::vector<coord::Event>& events) override {
    const std::lock_guard lock(mutex_);
    for (const coord::Event& event : events) {
      if (event.kind == coord::Event::Kind::put) {
        values_[event.kv.key] = event.kv;
      } else {
        values_.erase(event.kv.key);
      }
    }
    ++changes_;
    changed_.notify_all();
  }
  void on_resync(const coord::Range& state) override {
    const std::lock_guard lock(mutex_);
    values_.clear();
    for (const coord::KeyValue& kv : state.kvs) values_[kv.key] = kv;
    ++changes_;
    changed_.notify_all();
  }
  void on_disconnected(const Error&) override {}

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, coord::KeyValue> values_;  // Guarded by mutex_.
  std::atomic<std::uint64_t> changes_{0};          // Written under mutex_.
  std::unique_ptr<coord::Watch> watch_;            // Last: its thread uses all of the above.
};

}  // namespace ringshift::resize
