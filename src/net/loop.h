// One event loop, one thread. Everything here belongs to the loop's thread, except post() and stop().
//
// A wakeup handles what is ready: descriptors and posted tasks first, then timers, then what asked to be
// called soon (watch.h). After it the loop calls the after-wakeup hook once. That is where output gathered
// during the wakeup is written: one write per dirty connection and wakeup.
//
// Cost: one epoll_wait a wakeup and nothing else that is not asked for: the kernel's timer is set only when
// the first deadline changes, and the clock is read only if somebody asks for it. Failure: when the kernel
// gives no epoll or timer descriptor the process ends, since nothing could be served.
#pragma once
#include <functional>
#include <memory>

#include "base/clock.h"
#include "net/buffers.h"

namespace ringshift::net {

class Timer {  // One-shot; armed again it moves. Destroying it cancels it. Late rather than early.
 public:
  virtual ~Timer() = default;
  virtual void arm(base::Duration after) = 0;
  virtual void cancel() = 0;
};

class Loop {
 public:
  Loop();
  ~Loop();  // REQUIRES: its timers, and what watches descriptors, are gone.
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void run();   // Until stop().
  void stop();  // Thread-safe.
  // Runs `task` on the loop's thread, in the order of posting. Thread-safe; works before run(), too.
  void post(std::function<void()> task);

  [[nodiscard]] std::unique_ptr<Timer> timer(std::function<void()> on_fire);
  void set_after_wakeup(std::function<void()> hook);

  [[nodiscard]] base::TimePoint now() const noexcept {  // Read once a wakeup.
    return now_known_ ? now_ : read_clock();
  }

 private:
  friend class Watch;
  friend class Soon;
  friend class Stream;
  struct Impl;
  base::TimePoint read_clock() const noexcept;

  Buffers buffers_;
  mutable bool now_known_ = false;
  mutable base::TimePoint now_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::net
