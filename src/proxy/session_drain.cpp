// A session's part in draining: see worker_drain.cpp.
//
// A client that sends a command in the very moment in which it is closed sees the end instead of an answer.
// Such a command is never executed: nothing is read any more once the end is sent.
#include "proxy/session.h"
#include "proxy/transaction.h"

namespace ringshift::proxy {
namespace {

constexpr std::chrono::milliseconds kQuiet{20};
constexpr std::chrono::milliseconds kQuietBeforeFirst{500};  // Of a client that has just connected.
// So long a closed client may still send before its connection is reset, which would take the last answer
// from it if it has not read that.
constexpr std::chrono::milliseconds kLinger{200};

}  // namespace

void Session::drain(DrainStage stage, base::TimePoint now) {
  if (!stream_) return;
  if (finished_) {
    if (now - last_active_ >= kLinger) linger_over();
    return;
  }
  if (stage == DrainStage::last_words) {
    if (waits()) unblock(/*with_error=*/true);  // So that nothing is taken from a list and lost with us.
    if (!closing_) close_when_done();
    return;
  }
  if (closing_) return;
  if (stage == DrainStage::any_answer) {
    leaving_ = true;
    if (owes_nothing()) mark();
    return;
  }
  const auto quiet = last_command_ == nullptr ? kQuietBeforeFirst : kQuiet;
  if (now - last_active_ >= quiet && owes_nothing()) close_when_done();
}

bool Session::owes_nothing() const {
  return !closing_ && in_flight() == 0 && !held_ && !subscribed() &&
         (transaction_ == nullptr || transaction_->idle()) && !stream_->input_waits();
}

// Before the flush, so that the end comes with the answer, and not behind the client's next command.
void Session::leave() {
  closing_ = finished_ = true;
  stream_->finish_writing();
}

}  // namespace ringshift::proxy
