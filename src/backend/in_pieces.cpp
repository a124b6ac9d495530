// What a Connection does with bytes that are kept nowhere whole: a large reply on a shared connection, a
// large command on a private one.
//
// A large reply counts as answered when it begins: the member has executed its command. From then on the
// connection is the taker's. Commands sent before that are answered behind it, later than usual but not
// failed for it, since their deadline does not count from before the reply's last piece; when it is the taker
// that holds them up, it is told to hurry. All later commands go over a fresh connection, and may overtake
// those: Options::on_hand_over tells who cares for the order.
#include <algorithm>

#include "backend/private_connection.h"

namespace ringshift::backend {
namespace {

constexpr int kPatience =
    8;  // Such a part of the deadline a command waits for the taker of a reply before it.
constexpr std::uint64_t kNotEnded = ~std::uint64_t{0};  // Pending::end of a command that is not all there.

}  // namespace

// ---- a reply ----

// False: it is to be kept until it is whole.
bool Connection::begin_large(std::size_t size) {
  if (state_ != State::serving || is_private() || ring_.empty() || ring_.front().end > written() ||
      large_refused_ == answered_) {
    return false;
  }
  if (!handed_over_ && shared_.handed_over >= shared_.options.max_handed_over) return false;
  PieceTaker* const taker = ring_.front().sink->on_large_reply(ring_.front().tag(), size, *this);
  if (taker == nullptr) {
    large_refused_ = answered_;
    return false;
  }
  const Pending pending = ring_.pop();
  ++answered_;
  took(pending.sent, 1);
  counters_.answered(pending.traffic(), "$1");
  framer_.reset();
  large_hurried_at_ = {};
  large_left_ = size;
  large_taker_ = taker;
  if (!handed_over_) {
    handed_over_ = true;
    ++shared_.handed_over;
    shared_.replace(*this);
  }
  return true;
}

// How many bytes of the front are its.
std::size_t Connection::take_large(std::string_view bytes) {
  const std::size_t size = std::min(bytes.size(), large_left_);
  large_left_ -= size;
  large_moved_ = shared_.loop.now();
  const bool last = large_left_ == 0;
  PieceTaker* const taker = last ? std::exchange(large_taker_, nullptr) : large_taker_;
  if (taker != nullptr && !taker->on_piece(bytes.substr(0, size), last) && large_taker_ != nullptr) {
    large_paused_ = true;
    stream_->pause_reading();
  }
  return size;
}

void Connection::resume() {
  if (!large_paused_) return;
  large_paused_ = false;
  large_moved_ = shared_.loop.now();
  stream_->resume_reading();
}

void Connection::forget() {
  large_taker_ = nullptr;
  resume();
  // With nobody behind it, the rest need not even come. (Not from here: we may be inside of on_data.)
  if (retired_ && ring_.empty()) {
    doomed_ = true;
    shared_.keep_house_soon();
  }
}

void Connection::check_large(base::TimePoint now) {
  const base::Duration timeout = shared_.options.request_timeout;
  if (large_paused_) {
    if (ring_.empty() || ring_.front().sent + timeout / kPatience > now) return;
    if (large_hurried_at_ == base::TimePoint{}) large_hurried_at_ = now;
    if (large_hurried_at_ + timeout > now) return large_taker_->hurry();
    return broke("a client does not take a reply for which others wait");
  }
  if (large_moved_ + timeout > now) return;
  broke("timed out after " + std::to_string(shared_.options.request_timeout.count()) +
            " ms without a byte of a reply that had begun",
        true);
}

// ---- a command ----

void Connection::begin_command(ReplySink& sink, std::uint64_t tag, Traffic traffic) {
  if (!admit(0, 1, sink, tag, traffic)) return;
  ring_.push({&sink, Pending::pack(tag, traffic), kUntimed, kNotEnded});
  in_pieces_ = true;
  pieces_moved_ = written();
  pieces_moved_at_ = shared_.loop.now();
  if (!shared_.ticking) shared_.start_ticking();
}

void Connection::add_piece(std::string_view bytes) {
  if (!in_pieces_ || state_ != State::serving) return;  // Broken: its sink was told.
  enqueued_ += bytes.size();
  stream_->append(bytes);
  stream_->flush();
}

void Connection::end_command() {
  if (!in_pieces_ || state_ != State::serving || ring_.empty()) return;
  ring_.back().end = enqueued_;
  ring_.back().sent = shared_.loop.now();
}

// Whether the bytes of a command in pieces still go out; if not the connection broke.
bool Connection::pieces_move(base::TimePoint now) {
  if (ring_.empty()) {
    in_pieces_ = false;
    return true;
  }
  const bool all_out = stream_->queued_bytes() == 0;
  const bool waits_for_owner = all_out && ring_.back().end == kNotEnded;
  if (waits_for_owner || written() != pieces_moved_) {
    pieces_moved_ = written();
    pieces_moved_at_ = now;
  }
  if (all_out || pieces_moved_at_ + shared_.options.request_timeout > now) return true;
  broke("took nothing of a command for " + std::to_string(shared_.options.request_timeout.count()) + " ms");
  return false;
}

void Connection::on_drained() {
  if (handle_ != nullptr) handle_->drained();
}

}  // namespace ringshift::backend
