// A thread that asks somebody, waits and asks again until it is told to stop: a watch of a registry, a source
// of instances.
//
// Thread rule: start() and stop() are the owner's; wait(), back_off() and done() are the thread's; stopping()
// is anybody's. stop() ends wait() at once; what else may block is cancelled by the function that it is
// given.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

namespace ringshift::base {

class RetryThread {
 public:
  // back_off() waits a random time below `first`, doubled with each failure since done(), but below `most`.
  RetryThread(std::chrono::milliseconds first, std::chrono::milliseconds most)
      : first_(first), most_(most), random_(std::random_device{}()) {}
  ~RetryThread() { stop(); }
  RetryThread(const RetryThread&) = delete;
  RetryThread& operator=(const RetryThread&) = delete;

  void start(std::function<void()> run) { thread_ = std::thread(std::move(run)); }
  // Returns when the thread has ended. `cancel` runs when stopping() is true already.
  void stop(const std::function<void()>& cancel = {});

  [[nodiscard]] bool stopping();
  // There is news: the wait() under way, or the next one, ends at once. Anybody's.
  void ring();
  // Sleeps; false, and at once, when it is time to stop.
  bool wait(std::chrono::milliseconds time);
  bool back_off();                // After a failure, with full jitter. As wait().
  void done() { failures_ = 0; }  // After a success.

 private:
  const std::chrono::milliseconds first_, most_;
  std::mt19937_64 random_;  // The thread's, as is failures_.
  unsigned failures_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false, rung_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace ringshift::base
