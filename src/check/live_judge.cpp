#include "check/live_judge.h"

namespace ringshift::check {

LiveJudge::LiveJudge(CheckOptions options, std::function<void(const std::vector<Operation>&)> judged)
    : options_(options), judged_(std::move(judged)), thread_([this] { run(); }) {}

LiveJudge::~LiveJudge() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void LiveJudge::take(std::vector<Operation> operations) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.size() < kMaxQueuedKeys; });
  queue_.push_back(std::move(operations));
  changed_.notify_all();
}

std::uint64_t LiveJudge::faults() {
  const std::lock_guard lock(mutex_);
  return faults_;
}

Judgement LiveJudge::finish() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  thread_.join();
  return std::move(result_);
}

void LiveJudge::run() {
  for (;;) {
    std::vector<Operation> operations;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
      if (queue_.empty()) return;
      operations = std::move(queue_.front());
      queue_.pop_front();
      changed_.notify_all();
    }
    std::vector<const Operation*> pointers;
    for (const Operation& op : operations) pointers.push_back(&op);
    judge_key(std::move(pointers), options_, result_);
    if (judged_) judged_(operations);
    const std::lock_guard lock(mutex_);
    faults_ = result_.broken() + result_.inconclusive;
  }
}

}  // namespace ringshift::check
