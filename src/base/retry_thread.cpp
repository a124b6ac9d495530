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

bool RetryThread::wait(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return stopping_; });
}

bool RetryThread::back_off() { return wait(backoff(first_, most_, failures_++, random_)); }

}  // namespace ringshift::base
