// Ctrl-C and friends as something to ask for, instead of a handler that cuts in: the signals are blocked in
// every thread, and whoever waits looks for them. So each step ends in order, and its destructors run.
//
// REQUIRES: made before any other thread starts (threads inherit the mask). One at a time; its maker's
// thread.
#pragma once
#include <csignal>

#include "base/clock.h"

namespace ringshift::cli {

class Interrupt {
 public:
  Interrupt();  // SIGINT, SIGTERM, SIGHUP; and SIGPIPE is ignored: a closed pipe is an error of write().
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] bool requested() { return wait(base::Duration{0}); }
  // Sleeps; true, and at once, when a signal came. Once true, always true.
  [[nodiscard]] bool wait(base::Duration time);

 private:
  sigset_t signals_{}, before_{};
  bool requested_ = false;
};

}  // namespace ringshift::cli
