// Removes a run's keys from the servers again, on a thread of its own: each once it is judged, and those with
// a write of unknown outcome once more at the end, because that write may have come late.
//
// Invariant: bounded: at most kMaxNames names wait; those beyond are counted as left. Removing is by UNLINK,
// a key a command, so that it works through a proxy and on a plain server. Thread rule: add() from any
// thread; the rest from one. Failure: keys left, which finish() counts.
#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/access.h"

namespace ringshift::check {

class KeyRemover {
 public:
  static constexpr std::size_t kMaxNames = 1'000'000;
  static constexpr std::size_t kBatch = 64;
  KeyRemover(std::vector<std::string> proxies, std::shared_ptr<const backend::MemberAccess> access);
  ~KeyRemover();
  KeyRemover(const KeyRemover&) = delete;
  KeyRemover& operator=(const KeyRemover&) = delete;

  void add(std::string key, bool again);
  // Tries for at most `patience`; gives how many keys are left. Once.
  [[nodiscard]] std::size_t finish(std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;
  void run(std::stop_token stop);
  // Removes from the back of `names`; false when no proxy did it.
  [[nodiscard]] bool remove_some(std::vector<std::string>& names);

  const std::vector<std::string> proxies_;
  const std::shared_ptr<const backend::MemberAccess> access_;
  std::size_t next_proxy_ = 0;  // The thread's alone.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> waiting_, again_;  // Guarded by mutex_, as all below.
  std::size_t dropped_ = 0;
  bool closed_ = false;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::jthread thread_;
};

}  // namespace ringshift::check
