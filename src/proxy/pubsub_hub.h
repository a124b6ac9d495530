// What one worker is subscribed to at the members of one cluster, for all of its clients.
//
// One private RESP3 connection for each member that is needed. A channel is subscribed to once, at the member
// that owns a key of its name, whatever the number of clients. Patterns, and the channels of keyspace events,
// which every member publishes for its own keys, are subscribed to at every member. A message is published at
// one member only, so it is delivered once however many of them we listen to.
//
// Resize: while a channel's owner changes, it is subscribed to at both members. A publisher goes to the new
// one in DUAL at the earliest, and the worker says that it has applied a snapshot (when_settled) only when
// all that this snapshot wants is confirmed: so nothing is missed.
//
// Invariant: of one name at one member at most one command is under way; when its confirmation has come, what
// is then wanted is compared with what is.
// Failure: when a connection that had confirmed subscriptions breaks, messages may have been missed, and the
// clients concerned are disconnected, as Redis' own would be, so that their libraries know and subscribe
// again. What was not yet confirmed to a client fails with an error. The worker's thread. Cost: a hash for a
// message, then one append for each client; a new snapshot: a look at every name. Bounds: kMaxNames,
// kNamesAtOnce, backend::Options::max_queued_bytes of unsent commands.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/clock.h"
#include "net/loop.h"
#include "proxy/proxy.h"
#include "proxy/pubsub_counts.h"
#include "telemetry/counters.h"

namespace ringshift::proxy {

class Subscriber;
class Upstream;

class PubsubHub final {
 public:
  static constexpr std::size_t kMaxNames = 1U << 20;      // Channels and patterns.
  static constexpr std::size_t kNamesAtOnce = 128;        // In one command to a member.
  static constexpr std::chrono::seconds kSettleTime{1};   // when_settled() waits no longer.
  static constexpr std::chrono::seconds kPingEvery{1};    // So that a member that vanished is noticed:
  static constexpr std::chrono::seconds kDeadAfter{5};    // it is lost when a PING is unanswered so long.
  static constexpr std::chrono::seconds kIdleLinger{10};  // A connection without subscriptions is kept.
  static constexpr std::chrono::milliseconds kFirstBackoff{50}, kLongestBackoff{1000};

  PubsubHub(net::Loop& loop, Upstream& upstream, telemetry::Counters& counters, PubsubCounts& counts);
  ~PubsubHub();
  PubsubHub(const PubsubHub&) = delete;
  PubsubHub& operator=(const PubsubHub&) = delete;

  // --- for subscribers. They are called back, never from inside, until they have left.
  // True when it is confirmed; else confirmed() or failed() comes later. REQUIRES: not yet joined; !full().
  bool join(ChannelKind kind, const std::string& name, Subscriber& who);
  // From now on messages are delivered. REQUIRES: confirmed.
  void admit(ChannelKind kind, const std::string& name, Subscriber& who);
  // False when left() comes later: as soon as the member has confirmed that nobody here is subscribed.
  bool leave(ChannelKind kind, const std::string& name, Subscriber& who, bool tell);
  // No left() comes.
  void forget(ChannelKind kind, std::string_view name, const Subscriber& who);
  // The member that has not confirmed; "" when all have.
  [[nodiscard]] std::string unconfirmed(ChannelKind kind, std::string_view name) const;
  [[nodiscard]] bool full() const noexcept { return names_ >= kMaxNames; }

  // --- for the upstream
  void topology_changed();  // Pool and snapshot are the new ones.
  // Calls `done` once all that is wanted is confirmed, or after kSettleTime. Perhaps from inside.
  void when_settled(std::function<void()> done);
  void flush();  // At the end of a wakeup, before the pool's.
  void close();  // The pool is about to go.

 private:
  enum class State : std::uint8_t { off, subscribing, on, unsubscribing };
  struct Link;
  struct Leg {  // One name at one member.
    Link* link;
    State state = State::off;
    bool wanted = false;
    [[nodiscard]] bool missing() const noexcept { return wanted && state != State::on; }
  };
  enum class Standing : std::uint8_t { waiting, confirmed, admitted };
  struct Subscription {
    Subscriber* who;
    Standing standing = Standing::waiting;
  };
  struct Entry {
    ChannelKind kind;
    std::string name;
    std::vector<Subscription> subscribers;
    std::vector<Subscriber*> leavers;
    std::vector<Leg> legs;
    [[nodiscard]] bool confirmed() const noexcept;
  };
  using Entries = ByName<Entry>;
  struct Settled {
    std::function<void()> done;
    base::TimePoint until;
  };

  [[nodiscard]] Entries& entries(ChannelKind kind) { return entries_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] Entry* find(ChannelKind kind, std::string_view name);
  void count_client(const Entry& entry, int by);
  void reconcile(Entry& entry);
  void want_at(Entry& entry, topology::MemberIndex member);
  void step(Entry& entry, Leg& leg);
  void change(Leg& leg, State state, bool wanted);
  void settle(Entry& entry);  // May erase it, and calls back.
  [[nodiscard]] Link& link_to(const std::string& member);
  void on_ready(Link& link);
  void on_push(Link& link, std::string_view raw);
  void on_confirmation(Link& link, ChannelKind kind, std::string_view name, bool subscribed);
  void on_lost(Link& link, const backend::Failure& failure);
  void drop_links_of_absent_members();
  void look_at_settled();
  void tick();
  void tick_soon();

  net::Loop& loop_;
  Upstream& upstream_;
  telemetry::Counters& counters_;
  PubsubCounts& counts_;
  std::array<Entries, kChannelKinds> entries_;
  std::size_t names_ = 0;
  std::size_t missing_ = 0;                             // Legs wanted and not on.
  std::map<std::string, std::unique_ptr<Link>> links_;  // By member.
  std::vector<Link*> unsent_;
  std::vector<Settled> settled_;
  std::unique_ptr<net::Timer> timer_;
  bool ticking_ = false, closed_ = false;
};

// "__keyspace@0__:key" and "__keyevent@0__:del": published by each member, for its own keys.
[[nodiscard]] bool is_keyspace_channel(std::string_view channel) noexcept;

}  // namespace ringshift::proxy
