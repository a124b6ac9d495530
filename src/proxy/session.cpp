#include "proxy/session.h"

#include <chrono>
#include <string>
#include <utility>

#include "base/append.h"
#include "base/log.h"
#include "base/seldom.h"
#include "proxy/replies.h"
#include "proxy/subscriber.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::CommandParser;
using telemetry::Counter;

constexpr std::size_t kFirstSlots = 8;
constexpr std::size_t kIdleSlots = 64;          // An idle client keeps at most so many,
constexpr std::size_t kIdleAnswerBytes = 1024;  // and of an emptied slot's text so much.
constexpr std::size_t kSpareBytes = 16U << 10;  // Longer texts up to this are left to the other sessions,
constexpr std::size_t kSpares = 256;            // at most so many a thread.

constexpr std::size_t kLargeCommand = 1U << 20;  // It may be passed on before it is all there.

constexpr std::size_t kMaxBehindBlocked = 64U << 10;  // What a client sends behind a command that waits.

constexpr std::chrono::seconds kTlsFailureLogged{1};  // At most one in this time and worker.

// Whoever set up the certificates must learn why clients fail, and a port scan must not fill the disk.
void tell_tls_failure(const std::string& peer, std::string_view reason, base::TimePoint now) {
  thread_local base::Seldom seldom;
  if (const auto tail = seldom.ask(now, kTlsFailureLogged)) {
    base::log(base::LogLevel::warning, "client {}: {}{}", peer, reason, *tail);
  }
}

// So that an answer of some KiB that has to wait for its turn is not an allocation each time.
class SpareTexts {
 public:
  void take(std::string& text) {
    if (free_.empty()) return;
    text.swap(free_.back());
    free_.pop_back();
  }
  void leave(std::string& text) {
    if (text.capacity() <= kSpareBytes && free_.size() < kSpares) free_.push_back(std::move(text));
    std::string().swap(text);
  }

 private:
  std::vector<std::string> free_;  // Empty texts.
};
thread_local SpareTexts spare_texts;

}  // namespace

Session::Session(Worker& worker, int fd, std::uint64_t id, const net::TlsContext* tls)
    : worker_(worker),
      id_(id),
      stream_(net::Stream::adopt(worker.loop(), fd, *this, tls)),
      since_(worker.loop().now()),
      last_active_(since_) {}

Session::~Session() { worker_.add_unread_output(-static_cast<std::int64_t>(counted_unread_)); }

// --- reading ---------------------------------------------------------------------------------------------

std::size_t Session::on_data(std::string_view bytes) {
  if (closing_ && upload_ == nullptr) [[unlikely]]
    return bytes.size();
  const std::size_t max_in_flight = worker_.options().max_in_flight;
  const std::size_t max_output = worker_.options().max_output_bytes;
  std::size_t used = 0;
  while (used < bytes.size()) {
    if (alone_) [[unlikely]] {
      if (upload_ != nullptr) {
        used += feed_upload(bytes.substr(used));
        if (upload_ == nullptr) continue;
        break;
      }
      if (in_flight() != 0) {
        barrier_ = true;
        if (!blocked_ || bytes.size() - used > kMaxBehindBlocked) pause();
        break;
      }
      alone_ = blocked_ = false;
    }
    if ((in_flight() >= max_in_flight || unread() > max_output) && congested()) [[unlikely]] {
      pause();
      break;
    }
    const CommandParser::State state = parser_.parse({bytes.data() + used, bytes.size() - used});
    if (state == CommandParser::State::need_more) {
      used += parser_.consumed();
      parser_.drop_front();
      if (parser_.command_bytes() <= kLargeCommand) break;
      const Large outcome = meet_large(bytes.substr(used));
      if (outcome == Large::taken) {
        used += parser_.consumed();
        continue;
      }
      if (outcome == Large::not_now) wait_for_turn();
      break;
    }
    if (state == CommandParser::State::error) {
      worker_.counters().add(Counter::errors_protocol);
      answer_now(parser_.error() + "\r\n");
      closing_ = true;
    } else if (dispatch() == Outcome::not_now) {
      was_admitted_ = guarded_;
      wait_for_turn();
      break;
    } else {
      used += parser_.consumed();
    }
    if (closing_) used = bytes.size();
  }
  worker_.counters().add(Counter::bytes_in, used);
  return used;
}

bool Session::congested() const noexcept {
  return in_flight() >= worker_.options().max_in_flight ||
         (unread() > worker_.options().max_output_bytes && worker_.shared().output_is_full());
}

// The next command is looked at again when nothing is in flight.
void Session::wait_for_turn() {
  barrier_ = true;
  pause();
}

void Session::pause() {
  paused_ = true;
  stream_->pause_reading();
  mark();
}

void Session::resume_if_caught_up() {
  if (held_) return;
  if (!paused_) {
    if (!barrier_ || in_flight() != 0) return;
    // A command that waited is answered; what came behind it was read and is to be looked at now.
    barrier_ = false;
    stream_->pause_reading();
    stream_->resume_reading();
    return;
  }
  if (upload_choked()) return;
  const Options& options = worker_.options();
  // Half of the bounds, so that a client at the bound does not switch with every reply.
  const bool caught_up =
      upload_ != nullptr ? true
      : barrier_         ? in_flight() == 0
                         : in_flight() <= options.max_in_flight / 2 &&
                       (unread() <= options.max_output_bytes / 2 || !worker_.shared().output_is_full());
  if (!caught_up && !closing_) return;
  paused_ = barrier_ = false;
  stream_->resume_reading();
}

void Session::on_end() {
  closing_ = peer_ended_ = true;
  abandon_tasks();
  mark();
}

void Session::on_closed(std::string_view reason) {
  if (reason.starts_with("TLS ")) tell_tls_failure(stream_->peer(), reason, worker_.loop().now());
  count_written();
  stream_.reset();
  abandon_tasks();
  mark();
}

// A task may end in there, and the head move on.
void Session::abandon_tasks() {
  if (subscriber_ != nullptr) subscriber_->abandon();
  for (std::uint64_t n = head_, end = tail_; n < end; ++n) {
    if (n < head_) continue;
    if (Task* task = slot(n).task.get(); task != nullptr) task->abandon();
  }
}

void Session::topology_changed() {
  leave_lost_database();
  for (std::uint64_t n = head_, end = tail_; n < end; ++n) {
    if (n < head_) continue;
    if (Task* task = slot(n).task.get(); task != nullptr) task->topology_changed();
  }
  if (transaction_ != nullptr) transaction_->topology_changed();
}

// --- answering -------------------------------------------------------------------------------------------

std::uint64_t Session::take_alone() {
  alone_ = true;
  return take_number();
}

void Session::grow() {
  std::vector<Slot> larger(slots_.empty() ? kFirstSlots : slots_.size() * 2);
  for (std::uint64_t n = head_; n != tail_; ++n) larger[n & (larger.size() - 1)] = std::move(slot(n));
  slots_ = std::move(larger);
  slot_count_ = slots_.size();
}

void Session::answer_now(std::string_view text) {
  if (head_ == tail_ && !numbered_) {
    put(text);
    return;
  }
  complete(take_number(), text);
}

void Session::refuse(std::string_view error) {
  worker_.counters().add(Counter::errors_refused);
  worker_.admin().count_error(error);
  std::string line(error);
  line += "\r\n";
  answer_now(line);
}

void Session::put(std::string_view text) {
  mark();
  if (!stream_ || (muted_ && silent())) [[unlikely]]
    return;
  base::append(stream_->output(), text);
}

void Session::complete(std::uint64_t number, std::string_view text) {
  if (number == head_) {
    put(text);
    ++head_;
    if (head_ != tail_ && slot(head_).ready) advance();
    return;
  }
  Slot& waiting = slot(number);
  waiting.ready = true;
  if (!stream_) return;
  if (measure_ != nullptr) [[unlikely]]
    measure_->ready(number, worker_.loop().now());
  if (text.size() > kIdleAnswerBytes && waiting.answer.capacity() < text.size()) [[unlikely]]
    spare_texts.take(waiting.answer);
  waiting.answer.clear();
  base::append(waiting.answer, text);
  stored_bytes_ += text.size();
  if (stored_bytes_ > worker_.options().max_output_bytes) mark();  // To be counted.
}

void Session::count_written() {
  const std::uint64_t written = stream_->written_bytes();
  worker_.counters().add(Counter::bytes_out, written - counted_written_);
  counted_written_ = written;
}

// Puts out the answers that waited for the one at head_.
void Session::advance() {
  while (head_ != tail_ && slot(head_).ready) {
    Slot& next = slot(head_);
    put(next.answer);
    const bool is_whole = next.task == nullptr;
    if (stream_) stored_bytes_ -= next.answer.size();
    next.answer.clear();
    if (next.answer.capacity() > kIdleAnswerBytes) [[unlikely]]
      spare_texts.leave(next.answer);
    if (!is_whole) return go_on_pouring();
    next.ready = false;
    ++head_;
  }
}

// In one piece with complete(): each answer comes this way.
[[gnu::flatten]] void Session::on_reply(std::uint64_t tag, std::string_view raw) {
  if (raw[0] == '-') [[unlikely]]
    count_member_error(raw);
  complete(tag, raw);
}

[[gnu::noinline]] void Session::count_member_error(std::string_view error) {
  worker_.counters().add(Counter::errors_member);
  worker_.admin().count_error(error);
}

void Session::on_failure(std::uint64_t tag, const backend::Failure& failure) {
  count_failure(failure.kind);
  complete(tag, failure_reply(failure));
}

void Session::count_failure(backend::Failure::Kind kind) {
  using Kind = backend::Failure::Kind;
  worker_.counters().add(kind == Kind::unknown      ? Counter::errors_unknown
                         : kind == Kind::overloaded ? Counter::errors_overloaded
                                                    : Counter::errors_unsent);
}

void Session::task_done(std::uint64_t number, std::string_view answer) {
  const std::unique_ptr<Task> dies_here = std::move(slot(number).task);
  complete(number, answer);
}

// --- the end of a wakeup, and of the session --------------------------------------------------------------

void Session::end_of_wakeup() {
  marked_ = false;
  if (stream_ && !finished_) {
    if (leaving_ && owes_nothing()) [[unlikely]]
      leave();
    stream_->flush();
    count_written();
    if (const std::size_t left = unread(); left != 0 && left > output_bound()) [[unlikely]]
      cut("it holds more unread answers than allowed");
  }
  last_active_ = worker_.loop().now();
  if (unread() != counted_unread_) [[unlikely]]
    count_unread();
  if (numbered_) [[unlikely]]
    settle_measure();
  if (!stream_) {
    // Marked once more when a task ended as it was cut: then it comes by again in this same wakeup.
    if (in_flight() == 0 && !marked_) worker_.remove(*this);
    return;
  }
  if (paused_ || barrier_) [[unlikely]]
    resume_if_caught_up();
  if (in_flight() != 0) return;
  if (slot_count_ > kIdleSlots) {
    std::vector<Slot>().swap(slots_);
    slot_count_ = 0;
  }
  if (closing_ && stream_->queued_bytes() == 0) finish();
}

// Everything is answered and written. Closing at once would discard the last answer at the client if it has
// sent bytes that we did not read: so our end is shut, and what still comes is read and dropped for a while.
void Session::finish() {
  if (peer_ended_ || worker_.stopping()) {
    stream_.reset();
    if (!marked_) worker_.remove(*this);
    return;
  }
  if (finished_) return;
  finished_ = true;
  stream_->finish_writing();
  if (!worker_.draining()) worker_.linger();  // Else the draining does it.
}

void Session::cut(std::string_view why) {
  base::log(base::LogLevel::warning, "proxy: disconnected client {} ({}): {}: {} bytes", id_, stream_->peer(),
            why, unread());
  worker_.counters().add(Counter::clients_cut);
  count_written();
  stream_.reset();
  abandon_tasks();
}

void Session::close_when_done() {
  closing_ = true;
  mark();
}

void Session::linger_over() {
  if (!finished_ || !stream_) return;
  stream_.reset();
  mark();
}

}  // namespace ringshift::proxy
