// What a Connection does only when it is private.
#include "backend/private_connection.h"

#include <algorithm>

#include "backend/errands.h"

namespace ringshift::backend {

void Connection::send_untimed(std::string_view command, ReplySink& sink, std::uint64_t tag, Traffic traffic) {
  if (!admit(command.size(), 1, sink, tag, traffic)) return;
  enqueued_ += command.size();
  ring_.push({&sink, Pending::pack(tag, traffic), kUntimed, enqueued_});
  put(command);
}

void Connection::send_for_pushes(std::string_view command) {
  if (!admit(command.size(), 1, Swallow::instance(), 0, Traffic::none)) {
    // Nobody waits for a reply that could be a failure, so the owner must hear of it this way.
    return lose_soon(down_ ? down_reason_ : "its queue is full");
  }
  enqueued_ += command.size();
  put(command);
}

void Connection::own(PrivateHandle& handle) {
  handle_ = &handle;
  if (!connected()) return;  // Then serve() does the rest.
  tell_ready_ = true;
  shared_.keep_house_soon();
}

void Connection::set_exempt(bool exempt) {
  exempt_ = exempt;
  progressed();
}

void Connection::unblock(bool with_error) {
  unblock_error_ = with_error;
  unblock_until_ = accepted();
  try_to_unblock();
  if (!shared_.ticking) shared_.start_ticking();
}

void Connection::try_to_unblock() {
  if (!wants_unblock() || unblock_asked_ || client_id() == 0) return;
  unblock_asked_ = true;
  shared_.errands->unblock(*member_, client_id(), unblock_error_, serial_);
}

bool Connection::release() {
  let_go();
  // An errand under way might yet unblock what the next owner sends.
  if (connected() && ring_.empty() && !doomed_ && !unblock_asked_ && stream_->queued_bytes() == 0) {
    unblock_until_ = 0;
    tell_ready_ = in_pieces_ = false;
    return true;
  }
  abandon();
  return false;
}

void Connection::abandon() {
  let_go();
  abandoned_ = true;
  shared_.keep_house_soon();
}

// From here on nobody hears of it any more.
void Connection::let_go() {
  handle_ = nullptr;
  exempt_ = false;
  ring_.redirect(Swallow::instance());
  for (auto* list : {&shared_.deferred, &shared_.delivering}) {
    for (PoolShared::Deferred& one : *list) {
      if (one.from == this) one.sink = &Swallow::instance();
    }
  }
}

void Connection::lose_soon(std::string reason, Failure::Kind kind) {
  if (state_ == State::lost || doomed_) return;
  doomed_ = true;
  down_ = true;
  down_reason_ = std::move(reason);
  down_kind_ = kind;
  shared_.keep_house_soon();
}

void Connection::settle() {
  if (state_ == State::lost) return;
  if (abandoned_) return broke("its owner closed it");
  if (doomed_) return broke(down_reason_);
  if (tell_ready_ && connected() && handle_ != nullptr) {
    tell_ready_ = false;
    handle_->ready();
  }
}

void Connection::become_lost(const std::string& reason) {
  if (use_ == Use::one_owner) --shared_.private_count;
  state_ = State::lost;
  if (timer_ != nullptr) timer_->cancel();
  if (handle_ == nullptr) abandoned_ = true;  // It was idle.
  down_ = true;
  down_reason_ = reason;
  // A shared connection to the member may live on and never shake hands again: so the orphan needs an errand.
  if (!member_->orphans.empty()) shared_.orphans_wait = true;
  shared_.keep_house_soon();
}

void Connection::check_private_deadlines(base::TimePoint now) {
  if (state_ == State::lost) return;
  try_to_unblock();
  const auto limit = shared_.options.connect_timeout + shared_.options.request_timeout;
  if (state_ != State::serving && opened_ + limit <= now) {
    return broke("not connected within " + std::to_string(limit.count()) + " ms (" +
                 (state_ == State::confirming ? "waiting for the registry" : address_) + ")");
  }
  if (in_pieces_ && !pieces_move(now)) return;
  if (ring_.empty()) return;
  const base::TimePoint sent = ring_.front().sent;
  if (state_ != State::serving) {
    if (sent + shared_.options.request_timeout <= now) expire_queued(now);
  } else if (std::max({sent, last_answer_, pieces_moved_at_}) + shared_.options.request_timeout <= now) {
    broke("timed out after " + std::to_string(shared_.options.request_timeout.count()) + " ms", true);
  }
}

}  // namespace ringshift::backend
