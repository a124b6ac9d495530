// A source's own thread: it asks, waits and asks again until it is told to stop.
//
// Thread rule: start() and stop() are the owner's; wait(), failed() and done() are the thread's. stop() ends
// wait() at once; what else may block has to be cancelled by the owner before it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

namespace ringshift::discovery {

// Attempt n waits a random time up to min(kRetryMax, kRetryFirst * 2^n), the first one, too: a thousand
// programs must not return to a restarted server in one moment.
inline constexpr std::chrono::milliseconds kRetryFirst{500};
inline constexpr std::chrono::milliseconds kRetryMax{15'000};

class Loop {
 public:
  Loop() : random_(std::random_device{}()) {}
  ~Loop() { stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void start(std::function<void()> run) { thread_ = std::thread(std::move(run)); }
  void stop();

  [[nodiscard]] bool stopping();
  // Sleeps; false, and at once, when it is time to stop.
  bool wait(std::chrono::milliseconds time);
  // After a failure, with full jitter. As wait().
  bool back_off();
  void done() { attempt_ = 0; }  // After a success.

 private:
  std::mt19937_64 random_;  // The thread's, as is attempt_.
  int attempt_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace ringshift::discovery
