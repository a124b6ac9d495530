#include "base/retry_thread.h"

#include <utility>

#include "base/jitter.h"

namespace ringshift::base {

using std::chrono::milliseconds;

void RetryThread::stop(const std::function<void()>& cancel) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (cancel) cancel();
  if (thread_.joinable()) thread_.join();
}

bool RetryThread::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void RetryThread::ring() {
  const std::lock_guard lock(mutex_);
  rung_ = true;
  wake_.notify_all();
}

bool RetryThread::wait(milliseconds time) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, time, [this] { return stopping_ || rung_; });
  rung_ = false;
  return !stopping_;
}

bool RetryThread::back_off() {
  const milliseconds time = backoff(first_, most_, failures_++, random_);
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return stopping_; });
}

}  // namespace ringshift::base
