// One pipelined connection to one member. A shared one is made again whenever it breaks, until it is retired;
// a private one (private_connection.h) is made once, and then lost.
//
//   resting -> connecting -> greeting -> [confirming] -> serving
//      ^___________|____________|_____________|____________|        on any failure; private: -> lost
//
// Commands wait in queue_ until the connection serves; then they go into the stream's output. The ring
// holds one entry for each, in order. Invariant: a connection that breaks with commands written and not
// answered leaves an Orphan with its member, and does so before it connects again.
//
// While `down` (an attempt failed since it last served) commands fail at once instead of waiting; but for
// reads that an earlier connection did not write: see retry.cpp.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/handshake.h"
#include "backend/member_counters.h"
#include "backend/pending_ring.h"
#include "base/append.h"
#include "net/stream.h"
#include "protocol/resp/reply_framer.h"

namespace ringshift::backend {

class Connection;
class Errands;
class PrivateHandle;

// Takes the replies that concern nobody: those before the last of a block, and of connections let go.
class Swallow final : public ReplySink {
 public:
  void on_reply(std::uint64_t, std::string_view) override {}
  void on_failure(std::uint64_t, const Failure&) override {}
  [[nodiscard]] static Swallow& instance() noexcept {
    static Swallow swallow;  // Has no state.
    return swallow;
  }
};

// A connection of ours that the member may still be executing commands of.
struct Orphan {
  std::uint64_t client_id = 0;         // 0: not known, cannot be killed; goes when the member restarts.
  std::string run_id;                  // Of the member's process.
  std::uint64_t connection = 0;        // Connection::serial().
  std::uint64_t first_unanswered = 0;  // Count of commands answered before it broke.
  bool being_killed = false;           // By an errand whose answer is due.
  bool lamented = false;               // That it could not be killed is in the log.
};

// What the connections to one member share, in both RESP versions and across changes of address.
struct MemberState {
  static constexpr std::size_t kMaxOrphans = 1024;
  std::string id;
  std::shared_ptr<MemberCounters> counters;
  bool gone = false;  // Left the snapshot, or is lost for good: its orphans concern nobody.
  std::vector<Orphan> orphans;
  Connection* shared = nullptr;  // The shared RESP2 connection, which runs the errands; null once gone.
};

// What all connections of a pool share.
struct PoolShared {
  PoolShared(net::Loop& l, Options o, Look* k)
      : loop(l), options(std::move(o)), look(k), random(std::random_device{}()) {}
  net::Loop& loop;
  Options options;
  Look* look;
  std::vector<Connection*> dirty;  // With output that was not flushed.
  struct Deferred {                // Failures that send() must not report itself.
    const Connection* from;
    ReplySink* sink;
    std::uint64_t tag;
    Failure::Kind kind;
    std::shared_ptr<const MemberState> member;
    std::string reason;
  };
  std::vector<Deferred> deferred, delivering;
  Errands* errands = nullptr;
  std::size_t private_count = 0;  // Private connections that are not lost.
  bool orphans_wait = false;      // For an errand that kills them.
  std::function<void(Connection&)>
      replace;                  // A shared one that serves nobody else any more: see large_reply.
  std::size_t handed_over = 0;  // Of those that are left.
  bool ticking = false;
  bool draining = false;             // Some drain() waits, so progress is worth a look.
  std::unique_ptr<net::Timer> tick;  // Deadlines.
  std::unique_ptr<net::Timer> soon;  // Housekeeping in the next wakeup.
  std::mt19937_64 random;

  bool soon_armed = false;

  void start_ticking();
  // Arming a timer that is due already would move it, for ever under load: hence once only.
  void keep_house_soon() {
    if (!std::exchange(soon_armed, true)) soon->arm(base::Duration(0));
  }
};

class Connection final : public Backend, private net::StreamHandler, private LargeReply {
 public:
  static constexpr std::size_t kMaxPending = 1U << 20;  // Commands waiting for replies.
  static constexpr std::chrono::milliseconds kFirstBackoff{10};
  static constexpr std::chrono::milliseconds kMaxBackoff{1000};

  enum class Use { shared, one_owner, refused };  // refused: a private one beyond Options::max_private.
  Connection(PoolShared& shared, std::shared_ptr<MemberState> member, std::string address, Resp resp,
             std::uint64_t serial, Use use = Use::shared);
  ~Connection() override;

  void send(std::string_view command, ReplySink& sink, std::uint64_t tag, Traffic traffic) override;
  void send_block(std::string_view commands, std::size_t count, ReplySink& sink, std::uint64_t tag,
                  Traffic traffic) override;
  [[nodiscard]] bool connected() const noexcept override { return state_ == State::serving; }

  void flush();
  // What has changed of what is under way, and of the bytes: at each tick, which comes while commands are
  // under way and once more, and when some fail. Not for each command, read or write.
  void tell_counters();
  void check_deadlines(base::TimePoint now);
  // The routers' barrier moved on: what waits here was routed before it, and must not be sent after it.
  void drop_queue();
  void retire();  // Answers what it has, then is idle for good.
  [[nodiscard]] bool finished() const noexcept {
    return is_private() ? abandoned_ && state_ == State::lost : retired_ && ring_.empty() && large_left_ == 0;
  }
  [[nodiscard]] bool needs_ticks() const noexcept {
    if (!is_private()) return !ring_.empty() || large_left_ != 0;
    if (state_ != State::serving) return state_ != State::lost;
    return (!ring_.empty() && ring_.front().sent != kUntimed) || wants_unblock() || in_pieces_;
  }

  // Private connections, for their handle and the pool.
  [[nodiscard]] bool is_private() const noexcept { return use_ != Use::shared; }
  void send_untimed(std::string_view command, ReplySink& sink, std::uint64_t tag, Traffic traffic);
  void send_for_pushes(std::string_view command);
  // in_pieces.cpp
  void begin_command(ReplySink& sink, std::uint64_t tag, Traffic traffic);
  void add_piece(std::string_view bytes);
  void end_command();
  [[nodiscard]] std::size_t unsent() const noexcept {
    return state_ == State::serving ? stream_->queued_bytes() : 0;
  }
  void own(PrivateHandle& handle);
  void set_exempt(bool exempt);
  void unblock(bool with_error);
  void try_to_unblock();  // Another errand, if one is wanted and none is under way.
  void unblock_answered() noexcept { unblock_asked_ = false; }
  [[nodiscard]] bool release();  // Its owner is done with it: true when another may have it.
  void abandon();                // Its owner is gone; settle() closes it.
  void lose_soon(std::string reason, Failure::Kind kind = Failure::Kind::unsent);
  [[nodiscard]] bool doomed() const noexcept { return doomed_; }
  void settle();  // What abandon(), own() or lose_soon() left to be done. May call the owner.
  [[nodiscard]] bool lost() const noexcept { return state_ == State::lost; }
  [[nodiscard]] bool exempt() const noexcept { return exempt_; }
  [[nodiscard]] std::size_t unanswered() const noexcept { return ring_.size(); }
  [[nodiscard]] Resp resp() const noexcept { return resp_; }
  [[nodiscard]] const MemberState& member() const noexcept { return *member_; }
  [[nodiscard]] std::uint64_t client_id() const noexcept {
    return connected() && handshake_ ? handshake_->client_id() : 0;
  }
  [[nodiscard]] std::string_view run_id() const noexcept {
    return connected() && handshake_ ? std::string_view(handshake_->run_id()) : std::string_view();
  }

  [[nodiscard]] std::uint64_t serial() const noexcept { return serial_; }
  [[nodiscard]] std::uint64_t accepted() const noexcept { return answered_ + ring_.size(); }
  [[nodiscard]] std::uint64_t answered() const noexcept { return answered_; }  // Or failed.
  void add_to(MemberFigures& figures) const;

 private:
  enum class State { resting, connecting, greeting, confirming, serving, lost };

  std::size_t on_data(std::string_view bytes) override;
  void on_end() override { broke("the member closed the connection"); }
  void on_closed(std::string_view reason) override { broke(reason); }
  void on_connected() override;
  void on_drained() override;
  // in_pieces.cpp
  [[nodiscard]] bool begin_large(std::size_t size);
  std::size_t take_large(std::string_view bytes);
  void resume() override;
  void forget() override;
  void check_large(base::TimePoint now);
  [[nodiscard]] bool pieces_move(base::TimePoint now);

  [[nodiscard]] bool admit(std::size_t bytes, std::size_t count, ReplySink& sink, std::uint64_t tag,
                           Traffic traffic);
  void put(std::string_view bytes);
  void become_dirty();
  void turn_away(std::size_t queued, ReplySink& sink, std::uint64_t tag, Traffic traffic);
  void reject(ReplySink& sink, std::uint64_t tag, Traffic traffic, Failure::Kind kind, std::string reason);
  // The one that tells whether the member is up.
  [[nodiscard]] bool is_the_first() const noexcept { return !is_private() && !retired_ && resp_ == Resp::v2; }
  void took(base::TimePoint sent, std::uint64_t count);
  void check_private_deadlines(base::TimePoint now);
  void become_lost(const std::string& reason);
  void let_go();
  [[nodiscard]] bool wants_unblock() const noexcept { return unblock_until_ > answered_; }
  void connect();
  void rest();
  void timer_fired();
  [[nodiscard]] bool on_handshake_reply(std::string_view raw);
  void handshake_done();
  void confirm();
  void serve();
  void expire_queued(base::TimePoint now);
  void broke(std::string_view reason, bool timed_out = false);
  // retry.cpp
  struct Unwritten {
    std::string bytes;
    std::uint64_t begin = 0;
  };
  [[nodiscard]] Unwritten take_unwritten();
  void keep_reads(PendingRing& failed, const Unwritten& unwritten);
  [[nodiscard]] std::vector<std::uint64_t> orphans_to_kill();
  void forget_killed();
  void add_orphan();
  [[nodiscard]] std::uint64_t written() const noexcept { return stream_->written_bytes() - output_base_; }
  void progressed();
  void mark_dirty();

  PoolShared& shared_;
  const std::shared_ptr<MemberState> member_;
  MemberCounters& counters_;
  const std::string address_;
  const Resp resp_;
  const std::uint64_t serial_;
  const Use use_;
  State state_ = State::resting;
  bool dirty_ = false;
  bool retired_ = false;
  bool refusing_ = false;  // A command of this wakeup did not fit: those behind it must not overtake it.
  bool down_ = false;
  std::string down_reason_;
  Failure::Kind down_kind_ = Failure::Kind::unsent;
  int failed_attempts_ = 0;  // Since it last served.
  PendingRing ring_;
  std::uint64_t answered_ = 0;
  std::uint64_t failed_ = 0;            // Of those, and of the rejected.
  std::string queue_;                   // Commands that wait for `serving`.
  std::uint64_t queue_begin_ = 0;       // Where queue_ begins, in the terms of Pending::end.
  std::uint64_t enqueued_ = 0;          // Where the next command begins.
  std::uint64_t sent_again_until_ = 0;  // Those that end up to here were kept from an earlier connection.
  std::uint64_t output_base_ = 0;       // Stream's count at offset 0 of Pending::end (modulo 2^64).
  // As the counters know it.
  std::uint64_t told_enqueued_ = 0, received_ = 0, told_received_ = 0;
  std::int64_t told_in_flight_ = 0, told_unsent_ = 0;
  bool ever_served_ = false;
  std::unique_ptr<net::Stream> stream_;
  protocol::resp::ReplyFramer framer_;
  std::optional<Handshake> handshake_;
  bool second_round_ = false;
  std::unique_ptr<net::Timer> timer_;  // By state: end of the rest, limit of the greeting, confirm again.
  // Replaced with each connection, so that an answer to an earlier confirm() finds it gone.
  std::shared_ptr<int> confirm_token_;

  // A reply in pieces: the rest of it comes before anything else.
  std::size_t large_left_ = 0;         // Bytes that are still to come; 0: there is none.
  PieceTaker* large_taker_ = nullptr;  // Null: it is dropped.
  bool large_paused_ = false;
  bool handed_over_ = false;                         // Counted in PoolShared::handed_over.
  std::uint64_t large_refused_ = ~std::uint64_t{0};  // Nobody wants the reply with this number in pieces.
  base::TimePoint large_hurried_at_{};               // Never: it was not.
  base::TimePoint large_moved_{};  // When the last one moved: no deadline counts from before it.

  // Private ones only.
  bool in_pieces_ = false;          // Since begin_command(), until its answer.
  std::uint64_t pieces_moved_ = 0;  // written(), as of
  base::TimePoint pieces_moved_at_{};
  PrivateHandle* handle_ = nullptr;  // Null: it is idle, or abandoned.
  bool abandoned_ = false;
  bool exempt_ = false;
  bool tell_ready_ = false;     // The owner got it connected, and hears so from settle().
  bool doomed_ = false;         // settle() breaks it for down_reason_.
  bool unblock_asked_ = false;  // An errand is under way.
  bool unblock_error_ = false;
  std::uint64_t unblock_until_ = 0;  // Wanted until so many commands are answered.
  base::TimePoint opened_{};
  base::TimePoint last_answer_{};  // A deadline does not count from before it.
};

// ---- what every command passes ----

inline void Connection::mark_dirty() {
  if (!dirty_) become_dirty();
}

// Whether there is room for all of it; the sink hears it soon if not.
[[gnu::always_inline]] inline bool Connection::admit(std::size_t bytes, std::size_t count, ReplySink& sink,
                                                     std::uint64_t tag, Traffic traffic) {
  const std::size_t queued = state_ == State::serving ? stream_->queued_bytes() : queue_.size();
  if (!down_ && !refusing_ && queued + bytes <= shared_.options.max_queued_bytes &&
      ring_.size() + count <= kMaxPending) [[likely]]
    return true;
  turn_away(queued, sink, tag, traffic);
  return false;
}

[[gnu::always_inline]] inline void Connection::put(std::string_view bytes) {
  if (state_ == State::serving) [[likely]] {
    base::append(stream_->output(), bytes);
    mark_dirty();
  } else {
    base::append(queue_, bytes);
  }
  if (!shared_.ticking) [[unlikely]]
    shared_.start_ticking();
}

}  // namespace ringshift::backend
