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
    lists.push_back(all);
    told_.notify_all();
  }
  void trouble(const Error& why) override {
    const std::lock_guard lock(mutex_);
    troubles.push_back(why);
    told_.notify_all();
  }
  // Whether `condition`, over the two below, came true in time.
  bool wait(const std::function<bool()>& condition,
            std::chrono::milliseconds most = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    return told_.wait_for(lock, most, condition);
  }
  std::vector<std::vector<Instance>> lists;
  std::vector<Error> troubles;

 private:
  std::mutex mutex_;
  std::condition_variable told_;
};

// Instances of these ids, sorted as a list is.
inline std::vector<Instance> list_of(std::initializer_list<const char*> ids) {
  std::vector<Instance> all;
  int port = 7000;
  for (const char* id : ids) all.push_back({id, "10.0.0.1:" + std::to_string(++port), "redis", {}, {}});
  return all;
}

}  // namespace ringshift::discovery
