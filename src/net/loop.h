// One event loop, one thread. Everything here belongs to the loop's thread, except post() and stop().
//
// A wakeup handles every event that is ready; after it the loop calls the after-wakeup hook once. That is
// where output gathered during the wakeup is written: one write per dirty connection and wakeup.
#pragma once
#include <functional>
#include <memory>

#include "base/clock.h"

struct event_base;

namespace ringshift::net {

class Timer {  // One-shot; armed again it moves. Destroying it cancels it.
 public:
  virtual ~Timer() = default;
  virtual void arm(base::Duration after) = 0;
  virtual void cancel() = 0;
};

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void run();   // Until stop().
  void stop();  // Thread-safe.
  // Runs `task` on the loop's thread, in the order of posting. Thread-safe; works before run(), too.
  void post(std::function<void()> task);

  [[nodiscard]] std::unique_ptr<Timer> timer(std::function<void()> on_fire);
  void set_after_wakeup(std::function<void()> hook);

  [[nodiscard]] base::TimePoint now() const noexcept;  // Read once a wakeup.
  [[nodiscard]] event_base* native() noexcept;         // For net/ and http/ alone.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::net
