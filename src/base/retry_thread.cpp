#include "discovery/loop.h"

#include <algorithm>

namespace ringshift::discovery {

using std::chrono::milliseconds;

void Loop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Loop::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool Loop::wait(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return stopping_; });
}

bool Loop::back_off() {
  const milliseconds limit = std::min(kRetryMax, kRetryFirst * (1 << std::min(attempt_, 10)));
  ++attempt_;
  std::uniform_int_distribution<milliseconds::rep> spread(1, limit.count());
  return wait(milliseconds(spread(random_)));
}

}  // namespace ringshift::discovery
