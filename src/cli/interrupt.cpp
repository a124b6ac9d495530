#include "cli/interrupt.h"

#include <pthread.h>

#include <cerrno>
#include <chrono>

namespace ringshift::cli {

Interrupt::Interrupt() {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals_, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  std::signal(SIGPIPE, SIG_IGN);
}

Interrupt::~Interrupt() {
  // A second Ctrl-C during the clean-up is still pending: swallow it, the clean-up is done.
  const timespec at_once{};
  while (::sigtimedwait(&signals_, nullptr, &at_once) > 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupt::wait(base::Duration time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!requested_) {
    const auto left = std::max(end - std::chrono::steady_clock::now(), base::Duration{0});
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec limit{seconds.count(), (left - seconds).count()};
    if (::sigtimedwait(&signals_, nullptr, &limit) > 0) {
      requested_ = true;
    } else if (errno == EAGAIN) {
      return false;
    }
  }
  return true;
}

}  // namespace ringshift::cli
