// Publishes immutable snapshots. A read is one atomic load, plus the mutex once after each publish. An old
// snapshot dies with its last holder. Thread-safe.
//
// Invariant: published versions strictly increase, so a late publish changes nothing.
//
// std::atomic<std::shared_ptr> in GCC 12 takes a lock on every read and TSan reports it; hence a worker
// keeps its own cached pointer and refreshes it.
#pragma once
#include <atomic>
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

  // REQUIRES: first is not null.
  explicit SnapshotHolder(Ptr first) : current_(std::move(first)) {}

  // False when `next` is not newer than the current snapshot: it is dropped.
  [[nodiscard]] bool publish(Ptr next) {
    const std::lock_guard lock(mutex_);
    if (next->version <= current_->version) return false;
    current_.swap(next);  // `next` frees the old snapshot, after the lock is gone.
    generation_.fetch_add(1, std::memory_order_release);
    return true;
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
  mutable std::mutex mutex_;
  Ptr current_;  // Guarded by mutex_.
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace ringshift::topology
