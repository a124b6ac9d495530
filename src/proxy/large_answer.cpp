#include "proxy/large_answer.h"

#include "proxy/session.h"

namespace ringshift::proxy {

bool LargeAnswer::on_piece(std::string_view bytes, bool last) {
  const bool keeps_pace = session_.pour(number_, bytes);
  if (last) {
    session_.end_pour(number_);  // Destroys this.
    return true;
  }
  paused_ = !keeps_pace && (!hurried_ || session_.shared().output_is_full());
  return !paused_;
}

void LargeAnswer::go_on() {
  if (!paused_ || from_ == nullptr) return;
  paused_ = false;
  from_->resume();
}

void LargeAnswer::hurry() {
  hurried_ = true;
  go_on();
}

// A client that only sends no more still reads.
void LargeAnswer::abandon() {
  if (session_.connected()) return;
  if (from_ != nullptr) from_->forget();
  session_.end_pour(number_);  // Destroys this.
}

void LargeAnswer::on_broken(const backend::Failure& failure) { session_.break_pour(number_, failure); }

}  // namespace ringshift::proxy
