// The inside of DualRouter: one queue a key, reads that may still be answered by OLD, and pulls.
//
// A key's entry lives while it has a command here. Its queue is handled from the front:
//   hold     wait;
//   settled  send to the owner, done with it;
//   dual     known: send to NEW, done with it. A read: ask (ReadOperation), together with other reads, but
//            not past a write. A write: pull the key first (PullOperation), alone.
//
// A command on several keys (MultiOperation) has an entry, its lock, in the queue of each, all of them added
// in one go: so two of them meet in the same order everywhere, and none waits for the other in a circle. It
// acts when all its locks are in front, and always from the loop, never from inside pump().
//
// An operation works under the step it was born in. Each continuation looks at the snapshot again: if the
// step is over, it gives its command back to the queue and sends nothing more (RESIZE.md, I3).
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "proxy/dual_router.h"
#include "proxy/hot_keys.h"
#include "transfer/steps.h"

namespace ringshift::proxy {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

inline constexpr std::string_view kTooMuchParked = "too many commands wait for a resize step";

class Operation;
class PullOperation;
struct MultiOperation;

struct PendingCommand {
  KeyCommand command;
  base::TimePoint deadline;
  MultiOperation* multi = nullptr;  // A lock: command and deadline are the operation's.
  std::uint32_t multi_key = 0;      // Which of its keys this is.
  bool parked = false;              // Waited for a HOLD to end; its deadline starts anew then.
};

struct KeyQueue {
  explicit KeyQueue(std::string key) : name(std::move(key)) {}
  const std::string name;
  std::deque<PendingCommand> waiting;
  unsigned reads = 0;             // ReadOperations in flight.
  PullOperation* pull = nullptr;  // At most one; owned by Impl::operations.
};

// A command on several keys, or a pull of several.
struct MultiOperation {
  static constexpr std::size_t kMaxPullsAtOnce = 64;
  struct Key {
    KeyQueue* queue;      // Lives at least as long as our lock in it.
    bool pulled = false;  // In `epoch` and `step`.
  };
  struct Outcome {  // Instead of sending. A whole reply, or else a failure.
    std::string reply;
    backend::Failure::Kind kind = backend::Failure::Kind::unsent;
    std::string member, reason;
  };
  std::uint64_t id = 0;
  MultiCommand command;
  std::function<void(const Pulled&)> pulled;  // Set: there is nothing to send.
  std::vector<Key> keys;                      // No two are the same.
  std::size_t bytes = 0;                      // As it counts in waiting_bytes.
  base::TimePoint deadline;
  std::uint64_t epoch = 0, step = 0;
  bool parked = false;
  bool scheduled = false;
  std::optional<Outcome> outcome;
};

struct DualRouter::Impl {
  Impl(net::Loop& l, backend::Pool& p, Options o, std::size_t& busy);
  ~Impl();

  net::Loop& loop;
  backend::Pool& pool;
  const Options options;
  std::size_t& busy_keys;
  void note_busy() noexcept { busy_keys = keys.size() + (heat ? kCounting : 0); }
  // While a resize runs. In busy(), so that a command asks one thing of us when none does.
  static constexpr std::size_t kCounting = std::size_t{1} << 48;
  std::unique_ptr<HotKeyCounter> heat;
  std::shared_ptr<const topology::Snapshot> snapshot;
  std::unordered_map<std::string, KeyQueue, StringHash, std::equal_to<>> keys;
  std::unordered_map<Operation*, std::unique_ptr<Operation>> operations;
  std::unordered_set<std::string, StringHash, std::equal_to<>> known;  // Pulled in this step (I6).
  std::size_t known_bytes = 0;
  std::size_t waiting_bytes = 0;  // Of all commands in queues; those that are parked among them.
  std::size_t parked_bytes = 0;
  transfer::TokenSource tokens;
  std::unordered_map<std::uint64_t, std::unique_ptr<MultiOperation>> multis;  // By id.
  std::uint64_t last_multi = 0;
  std::unique_ptr<net::Timer> sweep;  // Ends parking that lasts too long.
  bool sweep_armed = false;

  [[nodiscard]] std::uint64_t step() const noexcept { return snapshot->topology().fence.step; }
  [[nodiscard]] bool is_known(std::string_view key) const noexcept { return known.contains(key); }
  void remember(std::string_view key);
  [[nodiscard]] std::string stamp_for(topology::MemberIndex member) const;

  // Handles the front of the queue as far as it goes; `queue` may be gone afterwards.
  void pump(KeyQueue& queue);
  bool pump_front(KeyQueue& queue);  // False: the front must wait.
  void park(KeyQueue& queue);
  void send_now(topology::MemberIndex member, PendingCommand command);
  [[nodiscard]] PendingCommand take_front(KeyQueue& queue);
  void give_back(KeyQueue& queue, PendingCommand command);
  // Later, from the loop: a sink is never called from inside submit().
  void fail_later(const KeyCommand& command, backend::Failure::Kind kind, std::string member,
                  std::string reason);
  void drop_if_idle(KeyQueue& queue);

  // dual_multi.cpp
  void submit(std::unique_ptr<MultiOperation> operation);
  void schedule(MultiOperation& operation);  // advance() soon.
  void advance(MultiOperation& operation);   // As far as it goes; `operation` may be gone afterwards.
  [[nodiscard]] bool has_its_turn(MultiOperation& operation);
  [[nodiscard]] topology::MemberIndex common_owner(MultiOperation& operation);
  [[nodiscard]] bool all_pulled(MultiOperation& operation);
  void park(MultiOperation& operation);
  void unpark(MultiOperation& operation);
  void end(MultiOperation& operation, MultiOperation::Outcome outcome);  // Soon.
  void finish(MultiOperation& operation, topology::MemberIndex member);
  void arm_sweep();
  void on_sweep();
  void adopt(std::shared_ptr<const topology::Snapshot> next);
};

// Something in flight for one key. Dies when it has no command left and no answer to come.
class Operation : public backend::ReplySink {
 public:
  Operation(DualRouter::Impl& router, KeyQueue& queue)
      : router_(router), queue_(&queue), step_(router.step()) {}
  virtual ~Operation() = default;

  void on_reply(std::uint64_t tag, std::string_view raw) final;
  void on_failure(std::uint64_t tag, const backend::Failure& failure) final;

 protected:
  virtual void handle_reply(std::uint64_t tag, std::string_view raw) = 0;
  virtual void handle_failure(std::uint64_t tag, const backend::Failure& failure) = 0;
  [[nodiscard]] virtual bool waits_for_timer() const noexcept { return false; }

  void send(topology::MemberIndex member, backend::Resp resp, std::string_view bytes, std::uint64_t tag,
            backend::Traffic traffic = backend::Traffic::none);
  // The key's route if this operation's step is still the current one and the key still in DUAL.
  [[nodiscard]] std::optional<topology::Route> valid_route() const;
  void bury_if_done();

  DualRouter::Impl& router_;
  KeyQueue* queue_;  // Null once this operation has left the queue.
  const std::uint64_t step_;
  unsigned outstanding_ = 0;
};

class ReadOperation final : public Operation {
 public:
  ReadOperation(DualRouter::Impl& router, KeyQueue& queue, PendingCommand command);
  void start(const topology::Route& route);

 private:
  enum Tag : std::uint64_t { kNewFirst, kOld, kExists, kSeal, kFinal };
  void handle_reply(std::uint64_t tag, std::string_view raw) override;
  void handle_failure(std::uint64_t tag, const backend::Failure& failure) override;
  void ask_old(const topology::Route& route);
  void old_answered(std::string_view raw);
  void exists_answered(std::string_view raw);
  void absent_on_old();
  void answer(std::string_view raw);
  void leave_queue();

  PendingCommand command_;
  std::string held_reply_;  // The read's answer, until EXISTS says whether it counts.
  bool seal_failed_ = false;
  bool answered_ = false;
};

class PullOperation final : public Operation {
 public:
  using Operation::Operation;
  void start();  // Step 1, with a fresh token. For the front of the queue, which stays there until the end.

 private:
  enum Tag : std::uint64_t { kClaim, kExists, kDump, kRestore, kUnlink, kSeal, kFinal };
  static constexpr std::uint64_t kTagBits = 3;
  void handle_reply(std::uint64_t tag, std::string_view raw) override;
  void handle_failure(std::uint64_t tag, const backend::Failure& failure) override;
  [[nodiscard]] bool waits_for_timer() const noexcept override { return timer_armed_ || burial_posted_; }

  void step(topology::MemberIndex member, std::string_view bytes, Tag kind);
  void continue_pull(Tag kind, std::string_view raw, protocol::resp::Value reply,
                     const topology::Route& route);
  void act_on_claim(std::string_view raw, const topology::Route& route);
  void send_dump(const topology::Route& route);
  void send_restore(const topology::Route& route);
  void send_unlink(const topology::Route& route);
  void seal_and_send(const topology::Route& route);
  void retry_after_pause(bool same_token);
  void on_timer();
  void refuse(std::string_view raw);  // An error that the client gets; its command was not executed.
  void give_up();                     // The step is over: the command goes back to the queue's care.
  void leave_queue();
  void final_answered(std::string_view raw);
  [[nodiscard]] MultiOperation* lock() const { return queue_->waiting.front().multi; }
  void lock_sealed(std::string_view raw);

  std::string token_, payload_;
  std::int64_t ttl_ms_ = 0;
  std::uint64_t attempt_ = 0;  // Answers to earlier attempts are ignored.
  unsigned pauses_ = 0;
  std::optional<transfer::Claim> claim_;
  std::string claim_raw_;
  bool present_on_old_ = false;
  bool was_busy_ = false;
  bool seal_failed_ = false;
  bool timer_armed_ = false;
  bool retry_same_token_ = false;
  bool burial_posted_ = false;  // The timer's last act is to be looked at again by the loop.
  std::optional<PendingCommand> final_;
  std::unique_ptr<net::Timer> timer_;
};

}  // namespace ringshift::proxy
