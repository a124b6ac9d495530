#include "backend/connection.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace ringshift::backend {
namespace {

using protocol::resp::ReplyFramer;

// Full jitter: anywhere between nothing and the cap, which doubles with each failed attempt.
base::Duration backoff(int failed_attempts, std::mt19937_64& random) {
  const auto cap = std::min<base::Duration>(
      Connection::kMaxBackoff, Connection::kFirstBackoff * (1LL << std::min(failed_attempts, 10)));
  return base::Duration(std::uniform_int_distribution<std::int64_t>(0, cap.count())(random));
}

}  // namespace

Connection::Connection(PoolShared& shared, std::shared_ptr<MemberState> member, std::string address,
                       Resp resp, std::uint64_t serial)
    : shared_(shared),
      member_(std::move(member)),
      address_(std::move(address)),
      resp_(resp),
      serial_(serial) {
  timer_ = shared_.loop.timer([this] { timer_fired(); });
  connect();
}

Connection::~Connection() { std::erase(shared_.dirty, this); }

// ---- commands ----

void Connection::send(std::string_view command, ReplySink& sink, std::uint64_t tag) {
  const bool serving = state_ == State::serving;
  const std::size_t queued = serving ? stream_->queued_bytes() : queue_.size();
  if (down_) return reject(sink, tag, Failure::Kind::unsent, down_reason_);
  if (refusing_ || queued + command.size() > shared_.options.max_queued_bytes ||
      ring_.size() >= kMaxPending) {
    refusing_ = true;
    mark_dirty();  // flush() ends it.
    return reject(sink, tag, Failure::Kind::overloaded,
                  "its queue is full (" + std::to_string(ring_.size()) + " commands, " +
                      std::to_string(queued) + " bytes unsent, limit " +
                      std::to_string(shared_.options.max_queued_bytes) + ")");
  }
  enqueued_ += command.size();
  ring_.push({&sink, tag, shared_.loop.now(), enqueued_});
  if (serving) {
    stream_->append(command);
    mark_dirty();
  } else {
    queue_.append(command);
  }
  if (!shared_.ticking) shared_.start_ticking();
}

void Connection::reject(ReplySink& sink, std::uint64_t tag, Failure::Kind kind, std::string reason) {
  shared_.keep_house_soon();
  shared_.deferred.push_back({&sink, tag, kind, member_, std::move(reason)});
}

void Connection::mark_dirty() {
  if (dirty_) return;
  dirty_ = true;
  shared_.dirty.push_back(this);
}

void Connection::flush() {
  dirty_ = false;
  refusing_ = false;
  if (state_ == State::serving) stream_->flush();
}

std::size_t Connection::on_data(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ReplyFramer::Frame frame = framer_.next(bytes.substr(at));
    if (frame.state != ReplyFramer::State::complete) [[unlikely]] {
      if (frame.state == ReplyFramer::State::broken) {
        broke(std::string("bad reply: ") + framer_.problem());
        return bytes.size();
      }
      if (bytes.size() - at > shared_.options.max_reply_bytes) {
        broke("a reply is longer than " + std::to_string(shared_.options.max_reply_bytes) + " bytes");
        return bytes.size();
      }
      break;
    }
    const std::string_view raw = bytes.substr(at, frame.size);
    at += frame.size;
    if (frame.push) continue;  // Out of band; nobody here subscribes to anything.
    if (state_ != State::serving) [[unlikely]] {
      if (!on_handshake_reply(raw)) return bytes.size();
      continue;
    }
    if (ring_.empty() || ring_.front().end > written()) [[unlikely]] {
      broke("a reply to nothing: " + std::string(raw.substr(0, 80)));
      return bytes.size();
    }
    const Pending pending = ring_.pop();
    ++answered_;
    pending.sink->on_reply(pending.tag, raw);
  }
  progressed();
  return at;
}

void Connection::progressed() {
  if (shared_.draining || (retired_ && ring_.empty())) shared_.keep_house_soon();
}

// ---- deadlines and failures ----

void Connection::check_deadlines(base::TimePoint now) {
  if (ring_.empty() || ring_.front().sent + shared_.options.request_timeout > now) return;
  if (state_ != State::serving) return expire_queued(now);
  broke("timed out after " + std::to_string(shared_.options.request_timeout.count()) + " ms");
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
  const std::string reason = "not connected within " +
                             std::to_string(shared_.options.request_timeout.count()) + " ms (" +
                             (state_ == State::confirming ? "waiting for the registry" : address_) + ")";
  for (const Pending& pending : expired) {
    pending.sink->on_failure(pending.tag, {Failure::Kind::unsent, member_->id, reason});
  }
  progressed();
}

void Connection::broke(std::string_view why) {
  const std::string reason(why);  // It may live in the stream.
  const bool served = state_ == State::serving;
  // A command that was written in part is incomplete for the member, too, so it cannot be executed.
  const std::uint64_t whole = served ? written() : 0;
  if (served && !ring_.empty() && ring_.front().end <= whole) add_orphan();
  PendingRing failed;
  failed.swap(ring_);
  answered_ += failed.size();
  queue_.clear();
  queue_begin_ = enqueued_ = output_base_ = 0;
  confirm_token_.reset();
  handshake_.reset();
  framer_.reset();
  stream_.reset();
  if (served) {
    failed_attempts_ = 0;
  } else {
    ++failed_attempts_;
    if (!down_ && !retired_) {
      base::log(base::LogLevel::warning, "member {} at {}: cannot be used: {}", member_->id, address_,
                reason);
    }
    down_ = true;
    down_reason_ = reason;
  }
  rest();
  while (!failed.empty()) {
    const Pending pending = failed.pop();
    const auto kind = pending.end <= whole ? Failure::Kind::unknown : Failure::Kind::unsent;
    pending.sink->on_failure(pending.tag, {kind, member_->id, reason});
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

void Connection::drop_queue() {
  if (state_ == State::serving) return;  // Then drain() waits for it, or the member killed the connection.
  PendingRing dropped;
  dropped.swap(ring_);
  answered_ += dropped.size();
  queue_.clear();
  queue_begin_ = enqueued_;
  while (!dropped.empty()) {
    const Pending pending = dropped.pop();
    reject(*pending.sink, pending.tag, Failure::Kind::unsent,
           "a resize step passed while it was not connected");
  }
}

void Connection::retire() {
  retired_ = true;
  if (ring_.empty()) shared_.keep_house_soon();
}

// ---- connecting ----

void Connection::connect() {
  state_ = State::connecting;
  second_round_ = false;
  stream_ = net::Stream::connect(shared_.loop, address_, shared_.options.connect_timeout, *this);
}

void Connection::rest() {
  state_ = State::resting;
  timer_->cancel();
  if (!retired_) timer_->arm(backoff(failed_attempts_, shared_.random));
}

void Connection::timer_fired() {
  switch (state_) {
    case State::resting:
      return connect();
    case State::confirming:
      return confirm();
    case State::greeting:
      return broke("connected, but no answer within " +
                   std::to_string(shared_.options.connect_timeout.count()) + " ms");
    case State::connecting:
    case State::serving:
      return;
  }
}

void Connection::on_connected() {
  state_ = State::greeting;
  timer_->arm(shared_.options.connect_timeout);
  handshake_.emplace(resp_, shared_.options.name, shared_.look != nullptr);
  stream_->append(handshake_->first_round());
  stream_->flush();
}

// False when the connection broke.
bool Connection::on_handshake_reply(std::string_view raw) {
  if (state_ != State::greeting || !handshake_->waiting()) {
    broke("a reply to nothing: " + std::string(raw.substr(0, 80)));
    return false;
  }
  if (const Status status = handshake_->on_reply(raw); !status) {
    broke(status.error().message);
    return false;
  }
  forget_killed();
  if (handshake_->waiting()) return true;
  if (!second_round_) {
    second_round_ = true;
    const std::string commands = handshake_->second_round(orphans_to_kill());
    stream_->append(commands);
    stream_->flush();
    if (handshake_->waiting()) return true;
  }
  handshake_done();
  return true;
}

// What is left of the orphans once those of earlier processes of the member are dropped.
std::vector<std::uint64_t> Connection::orphans_to_kill() {
  const auto died_with_its_process = [this](const Orphan& orphan) {
    return orphan.run_id != handshake_->run_id();
  };
  if (std::erase_if(member_->orphans, died_with_its_process) != 0) progressed();
  std::vector<std::uint64_t> ids;
  for (const Orphan& orphan : member_->orphans) {
    if (orphan.client_id != 0) ids.push_back(orphan.client_id);
  }
  return ids;
}

void Connection::forget_killed() {
  const std::vector<std::uint64_t> killed = handshake_->take_killed();
  if (killed.empty()) return;
  std::erase_if(member_->orphans, [&](const Orphan& orphan) {
    return orphan.run_id == handshake_->run_id() &&
           std::ranges::find(killed, orphan.client_id) != killed.end();
  });
  progressed();
}

void Connection::handshake_done() {
  timer_->cancel();
  if (shared_.look == nullptr ||
      shared_.look->stamp_matches(member_->id, handshake_->stamp(), handshake_->run_id())) {
    return serve();
  }
  state_ = State::confirming;
  down_ = false;  // The member is well: commands may wait for the registry, up to their deadlines.
  confirm();
}

void Connection::confirm() {
  confirm_token_ = std::make_shared<int>();
  const std::weak_ptr<int> token = confirm_token_;
  shared_.look->confirm([this, token](bool ok) {
    if (token.expired()) return;  // That connection is gone, or we are.
    confirm_token_.reset();
    if (ok) return serve();
    ++failed_attempts_;
    timer_->arm(backoff(failed_attempts_, shared_.random));
  });
}

void Connection::serve() {
  if (down_) base::log(base::LogLevel::info, "member {} at {}: serves again", member_->id, address_);
  state_ = State::serving;
  failed_attempts_ = 0;
  down_ = false;
  output_base_ = stream_->written_bytes() + stream_->queued_bytes() - queue_begin_;
  stream_->append(queue_);
  std::string().swap(queue_);
  stream_->flush();
}

}  // namespace ringshift::backend
