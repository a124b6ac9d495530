// Judges keys while a run goes on, on a thread of its own, and forgets them.
//
// Invariant: bounded memory: at most kMaxQueuedKeys keys wait; take() blocks beyond that.
// Thread rule: take() from any thread; the rest from one.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "check/judge.h"

namespace ringshift::check {

class LiveJudge {
 public:
  static constexpr std::size_t kMaxQueuedKeys = 1000;
  // `judged` sees each key afterwards, on the judge's thread.
  LiveJudge(CheckOptions options, std::function<void(const std::vector<Operation>&)> judged);
  ~LiveJudge();
  LiveJudge(const LiveJudge&) = delete;
  LiveJudge& operator=(const LiveJudge&) = delete;

  void take(std::vector<Operation> operations);
  // Broken and inconclusive keys so far.
  [[nodiscard]] std::uint64_t faults();
  // Waits for all. REQUIRES: no take() afterwards.
  [[nodiscard]] Judgement finish();

 private:
  void run();

  const CheckOptions options_;
  const std::function<void(const std::vector<Operation>&)> judged_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Operation>> queue_;  // Guarded by mutex_, as all below.
  bool closed_ = false;
  std::uint64_t faults_ = 0;
  Judgement result_;  // The thread's alone until it ended.
  std::jthread thread_;
};

}  // namespace ringshift::check
