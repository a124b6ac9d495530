// A sink that keeps what it is told, and waits for it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "discovery/source.h"

namespace ringshift::discovery {

class Collect final : public Sink {
 public:
  void instances(const std::vector<Instance>& all) override {
    const std::lock_guard lock(mutex_);
    lists_.push_back(all);
    told_.notify_all();
  }
  void trouble(const Error& why) override {
    const std::lock_guard lock(mutex_);
    troubles_.push_back(why);
    told_.notify_all();
  }
  [[nodiscard]] std::vector<std::vector<Instance>> lists() const {
    const std::lock_guard lock(mutex_);
    return lists_;
  }
  [[nodiscard]] std::vector<Error> troubles() const {
    const std::lock_guard lock(mutex_);
    return troubles_;
  }
  // Whether `condition`, over the two above, came true in time.
  bool wait(const std::function<bool()>& condition,
            std::chrono::milliseconds most = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    return told_.wait_for(lock, most, condition);
  }

 private:
  mutable std::recursive_mutex mutex_;  // A condition asks while it is held.
  std::condition_variable_any told_;
  std::vector<std::vector<Instance>> lists_;
  std::vector<Error> troubles_;
};

// Instances of these ids, sorted as a list is.
inline std::vector<Instance> list_of(std::initializer_list<const char*> ids) {
  std::vector<Instance> all;
  int port = 7000;
  for (const char* id : ids) all.push_back({id, "10.0.0.1:" + std::to_string(++port), "redis", {}, {}});
  return all;
}

}  // namespace ringshift::discovery
