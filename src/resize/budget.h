// A number of things (bytes of payload, batches) that may be held at once. An amount above the whole budget
// is let in when nothing else is held, so that nothing waits for ever.
//
// Thread-safe. acquire() blocks; whoever stops the waiters calls wake().
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ringshift::resize {

class Budget {
 public:
  explicit Budget(std::uint64_t capacity) : capacity_(std::max<std::uint64_t>(capacity, 1)) {}

  // Gives back what it holds at its end.
  class Hold {
   public:
    Hold(Budget& budget, std::uint64_t amount, const std::atomic<bool>& stopping)
        : budget_(budget),
          amount_(std::min(amount, budget.capacity_)),
          held_(budget.acquire(amount_, stopping)) {}
    ~Hold() {
      if (held_) budget_.release(amount_);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    [[nodiscard]] explicit operator bool() const noexcept { return held_; }  // False: it was stopped.

   private:
    Budget& budget_;
    const std::uint64_t amount_;
    const bool held_;
  };

  void wake() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  [[nodiscard]] std::uint64_t most_held() const {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  bool acquire(std::uint64_t amount, const std::atomic<bool>& stopping) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping || held_ + amount <= capacity_; });
    if (stopping) return false;
    held_ += amount;
    most_ = std::max(most_, held_);
    return true;
  }
  void release(std::uint64_t amount) {
    const std::lock_guard lock(mutex_);
    held_ -= amount;
    changed_.notify_all();
  }

  const std::uint64_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t held_ = 0, most_ = 0;
};

}  // namespace ringshift::resize
