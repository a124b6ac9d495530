#include "backend/connection.h"

#include <algorithm>
#include <utility>

#include "backend/private_connection.h"
#include "base/log.h"

namespace ringshift::backend {
namespace {

using protocol::resp::ReplyFramer;

}  // namespace

Connection::Connection(PoolShared& shared, std::shared_ptr<MemberState> member, std::string address,
                       Resp resp, std::uint64_t serial, Use use)
    : shared_(shared),
      member_(std::move(member)),
      counters_(*member_->counters),
      address_(std::move(address)),
      resp_(resp),
      serial_(serial),
      use_(use),
      opened_(shared.loop.now()) {
  counters_.change_connections(1);
  if (use_ == Use::refused) {
    lose_soon("this worker has its limit of " + std::to_string(shared_.options.max_private) +
                  " private connections",
              Failure::Kind::overloaded);
    return;
  }
  if (is_private()) {
    ++shared_.private_count;
    if (!shared_.ticking) shared_.start_ticking();
  }
  timer_ = shared_.loop.timer([this] { timer_fired(); });
  connect();
}

Connection::~Connection() {
  std::erase(shared_.dirty, this);
  counters_.change(-told_in_flight_, -told_unsent_);
  counters_.moved_in(received_ - told_received_);
  counters_.change_connections(-1);
  if (handed_over_) --shared_.handed_over;
  if (large_taker_ != nullptr) large_taker_->on_gone();
  if (handle_ != nullptr) handle_->forget();
}

// ---- commands ----

void Connection::send(std::string_view command, ReplySink& sink, std::uint64_t tag, Traffic traffic) {
  if (!admit(command.size(), 1, sink, tag, traffic)) return;
  enqueued_ += command.size();
  ring_.push({&sink, Pending::pack(tag, traffic), shared_.loop.now(), enqueued_});
  put(command);
}

void Connection::send_block(std::string_view commands, std::size_t count, ReplySink& sink, std::uint64_t tag,
                            Traffic traffic) {
  if (!admit(commands.size(), count, sink, tag, traffic)) return;
  // Where the earlier commands end is not looked for. A reply to one of them may come as soon as the block
  // has begun to leave, and whatever happens to the block is told by its last command.
  const Pending earlier{&Swallow::instance(), 0, shared_.loop.now(), enqueued_ + 1};
  for (std::size_t i = 1; i < count; ++i) ring_.push(earlier);
  enqueued_ += commands.size();
  ring_.push({&sink, Pending::pack(tag, traffic), earlier.sent, enqueued_});
  put(commands);
}

[[gnu::noinline]] void Connection::turn_away(std::size_t queued, ReplySink& sink, std::uint64_t tag,
                                             Traffic traffic) {
  if (down_) return reject(sink, tag, traffic, down_kind_, down_reason_);
  refusing_ = true;
  mark_dirty();  // flush() ends it.
  reject(sink, tag, traffic, Failure::Kind::overloaded,
         "its queue is full (" + std::to_string(ring_.size()) + " commands, " + std::to_string(queued) +
             " bytes unsent, limit " + std::to_string(shared_.options.max_queued_bytes) + ")");
}

void Connection::reject(ReplySink& sink, std::uint64_t tag, Traffic traffic, Failure::Kind kind,
                        std::string reason) {
  ++failed_;
  counters_.failed(traffic, kind);
  shared_.keep_house_soon();
  shared_.deferred.push_back({this, &sink, tag, kind, member_, std::move(reason)});
}

[[gnu::noinline]] void Connection::become_dirty() {
  dirty_ = true;
  shared_.dirty.push_back(this);
}

void Connection::flush() {
  dirty_ = false;
  refusing_ = false;
  if (state_ == State::serving) stream_->flush();
}

void Connection::tell_counters() {
  const auto in_flight = static_cast<std::int64_t>(ring_.size());
  const auto unsent =
      static_cast<std::int64_t>(state_ == State::serving ? stream_->queued_bytes() : queue_.size());
  counters_.change(in_flight - told_in_flight_, unsent - told_unsent_);
  counters_.moved_out(enqueued_ - told_enqueued_);
  counters_.moved_in(received_ - told_received_);
  told_received_ = received_;
  told_in_flight_ = in_flight;
  told_unsent_ = unsent;
  told_enqueued_ = enqueued_;
}

void Connection::took(base::TimePoint sent, std::uint64_t count) {
  if (count != 0 && sent != kUntimed) counters_.took(shared_.loop.now() - sent, count);
}

std::size_t Connection::on_data(std::string_view bytes) {
  std::size_t at = 0;
  if (large_left_ != 0) [[unlikely]]
    at = take_large(bytes);
  // Replies that come together were mostly sent together: they took as long.
  base::TimePoint sent_together{};
  std::uint64_t together = 0;
  while (at < bytes.size()) {
    const ReplyFramer::Frame frame = framer_.next({bytes.data() + at, bytes.size() - at});
    if (frame.state != ReplyFramer::State::complete) [[unlikely]] {
      if (frame.state == ReplyFramer::State::broken) {
        broke(std::string("bad reply: ") + framer_.problem());
        return bytes.size();
      }
      if (framer_.lone_bulk() > shared_.options.large_reply && begin_large(framer_.lone_bulk())) {
        at += take_large(bytes.substr(at));
        break;
      }
      if (bytes.size() - at > shared_.options.max_reply_bytes) {
        broke("a reply is longer than " + std::to_string(shared_.options.max_reply_bytes) + " bytes");
        return bytes.size();
      }
      break;
    }
    const std::string_view raw(bytes.data() + at, frame.size);
    at += frame.size;
    if (frame.push) [[unlikely]] {  // Out of band.
      if (handle_ != nullptr) handle_->pushed(raw);
      continue;
    }
    if (state_ != State::serving) [[unlikely]] {
      if (!on_handshake_reply(raw)) return bytes.size();
      if (state_ != State::serving || at == bytes.size()) continue;
      broke("it answers before it is asked");  // What waited for the handshake has left just now.
      return bytes.size();
    }
    if (ring_.empty() || ring_.front().end > written()) [[unlikely]] {
      broke("a reply to nothing: " + std::string(raw.substr(0, std::min<std::size_t>(80, raw.find('\r')))));
      return bytes.size();
    }
    const Pending pending = ring_.pop();
    ++answered_;
    if (pending.sent != sent_together) {
      took(sent_together, together);
      sent_together = pending.sent;
      together = 0;
    }
    ++together;
    counters_.answered(pending.traffic(), raw);
    pending.sink->on_reply(pending.tag(), raw);
  }
  took(sent_together, together);
  received_ += at;
  progressed();
  return at;
}

void Connection::progressed() {
  if (is_private()) [[unlikely]] {
    last_answer_ = shared_.loop.now();
    if (!shared_.ticking && needs_ticks()) shared_.start_ticking();  // For what an untimed one kept waiting.
  }
  if (shared_.draining || (retired_ && ring_.empty())) shared_.keep_house_soon();
}

// ---- deadlines and failures ----

void Connection::check_deadlines(base::TimePoint now) {
  if (is_private()) return check_private_deadlines(now);
  if (large_left_ != 0) return check_large(now);
  if (ring_.empty() || std::max(ring_.front().sent, large_moved_) + shared_.options.request_timeout > now)
    return;
  if (state_ != State::serving) return expire_queued(now);
  broke("timed out after " + std::to_string(shared_.options.request_timeout.count()) + " ms", true);
}

void Connection::expire_queued(base::TimePoint now) {
  // The queue loses their bytes before any sink hears of it: a sink may send again.
  std::vector<Pending> expired;
  while (!ring_.empty() && ring_.front().sent + shared_.options.request_timeout <= now)
    expired.push_back(ring_.pop());
  const std::uint64_t end = expired.back().end;
  queue_.erase(0, end - queue_begin_);
  queue_begin_ = end;
  answered_ += expired.size();
  failed_ += expired.size();
  const std::string reason = "not connected within " +
                             std::to_string(shared_.options.request_timeout.count()) + " ms (" +
                             (state_ == State::confirming ? "waiting for the registry" : address_) + ")";
  for (const Pending& pending : expired) counters_.failed(pending.traffic(), Failure::Kind::unsent, true);
  tell_counters();
  for (const Pending& pending : expired) {
    if (abandoned_) break;  // By a sink's doing: its owner wants to hear no more.
    pending.sink->on_failure(pending.tag(), {Failure::Kind::unsent, member_->id, reason});
  }
  progressed();
}

void Connection::broke(std::string_view why, bool timed_out) {
  const std::string reason(why);  // It may live in the stream.
  const bool served = state_ == State::serving;
  // A command that was written in part is incomplete for the member, too, so it cannot be executed.
  const std::uint64_t whole = served ? written() : 0;
  const bool leaves_orphan = served && !ring_.empty() && ring_.front().end <= whole;
  if (leaves_orphan) add_orphan();
  const bool told_nobody = abandoned_;  // Its owner has gone: what is unanswered concerns no client.
  tell_counters();
  const Unwritten unwritten = take_unwritten();
  PendingRing failed;
  failed.swap(ring_);
  queue_.clear();
  queue_begin_ = enqueued_ = output_base_ = 0;
  keep_reads(failed, unwritten);
  told_enqueued_ = enqueued_;  // Those were counted.
  answered_ += failed.size();
  failed_ += failed.size();
  confirm_token_.reset();
  handshake_.reset();
  framer_.reset();
  PieceTaker* const taker = std::exchange(large_taker_, nullptr);
  large_left_ = 0;
  large_paused_ = in_pieces_ = false;
  stream_.reset();
  if (served && is_the_first()) counters_.serves(false);
  if (!served && !doomed_ && !abandoned_) counters_.connect_failed();
  if (is_private()) {
    become_lost(reason);
  } else if (served) {
    failed_attempts_ = 0;
  } else {
    ++failed_attempts_;
    if (!down_ && !retired_) {
      base::log_fields(
          base::LogLevel::warning,
          {{"member", member_->id}, {"address", address_}, {"state", "down"}, {"reason", reason}},
          "member {} at {}: cannot be used: {}", member_->id, address_, reason);
    }
    down_ = true;
    down_reason_ = reason;
  }
  if (!is_private()) rest();
  tell_counters();
  if (taker != nullptr) taker->on_broken({Failure::Kind::unknown, member_->id, reason});
  while (!failed.empty() && !abandoned_) {  // Abandoned by a sink: its owner wants to hear no more.
    const Pending pending = failed.pop();
    const auto kind = pending.end <= whole ? Failure::Kind::unknown : Failure::Kind::unsent;
    if (!told_nobody) counters_.failed(pending.traffic(), kind, timed_out);
    pending.sink->on_failure(pending.tag(), {kind, member_->id, reason});
  }
  if (handle_ != nullptr) {
    const auto kind = leaves_orphan ? Failure::Kind::unknown : down_kind_;
    handle_->lost({kind, member_->id, reason});
  }
  progressed();
}

void Connection::add_orphan() {
  if (member_->gone) return;
  Orphan orphan{handshake_ ? handshake_->client_id() : 0, handshake_ ? handshake_->run_id() : "", serial_,
                answered_};
  // Beyond the bound an orphan cannot be remembered, so the last one stands for all that follow: it is not
  // killable, and drains wait for the member to restart.
  if (member_->orphans.size() >= MemberState::kMaxOrphans) {
    orphan = std::move(member_->orphans.back());
    orphan.client_id = 0;
    orphan.connection = 0;
    member_->orphans.pop_back();
  }
  member_->orphans.push_back(std::move(orphan));
}

void Connection::add_to(MemberFigures& figures) const {
  if (is_private()) {
    ++figures.private_connections;
  } else if (down_ && figures.down_reason.empty()) {
    figures.down_reason = down_reason_;
  }
  (state_ == State::serving ? figures.in_flight : figures.queued_commands) += ring_.size();
  figures.answered += answered_;
  figures.failed += failed_;
}

void Connection::drop_queue() {
  if (state_ == State::serving) return;  // Then drain() waits for it, or the member killed the connection.
  PendingRing dropped;
  dropped.swap(ring_);
  answered_ += dropped.size();
  queue_.clear();
  queue_begin_ = enqueued_;
  while (!dropped.empty()) {
    const Pending pending = dropped.pop();
    reject(*pending.sink, pending.tag(), pending.traffic(), Failure::Kind::unsent,
           "a resize step passed while it was not connected");
  }
  tell_counters();
}

void Connection::retire() {
  if (is_the_first()) counters_.serves(false);
  retired_ = true;
  if (ring_.empty()) shared_.keep_house_soon();
}

}  // namespace ringshift::backend
