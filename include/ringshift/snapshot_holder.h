// Publishes immutable snapshots. A read is one atomic load, plus the mutex once after each publish. An old
// snapshot dies with its last holder. Thread-safe.
//
// Invariant: published versions strictly increase, so a late publish changes nothing.
//
// std::atomic<std::shared_ptr> in GCC 12 takes a lock on every read and TSan reports it; hence a worker
// keeps its own cached pointer and refreshes it.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "ringshift/topology.h"

namespace ringshift::topology {

// T has a member `version` of type Version.
template <class T>
class SnapshotHolder {
 public:
  using Ptr = std::shared_ptr<const T>;

  using TimePoint = std::chrono::steady_clock::time_point;

  // How the current snapshot came to be: for those who measure how fast a change gets through.
  struct Timing {
    Version version;
    TimePoint received{};  // As who published it says; `published` unless said.
    TimePoint published{};
  };

  // REQUIRES: first is not null.
  explicit SnapshotHolder(Ptr first, TimePoint received = {}) : current_(std::move(first)) { time(received); }

  // False when `next` is not newer than the current snapshot: it is dropped. `received`: when its topology
  // was there, not yet read.
  [[nodiscard]] bool publish(Ptr next, TimePoint received = {}) {
    const std::lock_guard lock(mutex_);
    if (next->version <= current_->version) return false;
    current_.swap(next);  // `next` frees the old snapshot, after the lock is gone.
    time(received);
    generation_.fetch_add(1, std::memory_order_release);
    return true;
  }

  [[nodiscard]] Timing timing() const {
    const std::lock_guard lock(mutex_);
    return timing_;
  }

  [[nodiscard]] Ptr load() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }

  // How many snapshots were published: a worker compares it with the last one it saw.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return generation_.load(std::memory_order_acquire);
  }

 private:
  void time(TimePoint received) {
    const TimePoint now = std::chrono::steady_clock::now();
    timing_ = {current_->version, received == TimePoint{} ? now : received, now};
  }

  mutable std::mutex mutex_;
  Ptr current_;  // Guarded by mutex_, as is the next.
  Timing timing_;
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace ringshift::topology
