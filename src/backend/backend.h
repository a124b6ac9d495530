// A worker's connections to members. Per worker, member and RESP version there is one pipelined connection
// that all share: replies come in the order of the commands. What needs a connection of its own (WATCH,
// blocking commands, subscriptions) opens a private one. Everything belongs to the worker's loop thread.
//
// A connection serves only after its handshake: HELLO 3 if asked for, CLIENT SETNAME, CLIENT ID, CLIENT KILL
// of every connection of ours to this member that broke with commands unanswered (closing our end does not
// stop the member from executing what it had read), and then the Look (RESIZE.md, I4).
//
// Failure: each command has one deadline, from the moment of send(). A command that could not be sent fails
// as `unsent` and was not executed; one that was sent and not answered fails as `unknown` and may have been;
// its connection is closed, so that a late reply reaches nobody.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/loop.h"
#include "protocol/resp/command_table.h"
#include "ringshift/snapshot.h"

namespace ringshift::backend {

enum class Resp : std::uint8_t { v2 = 2, v3 = 3 };

using protocol::resp::Traffic;

struct Failure {
  enum class Kind {
    unsent,      // Not connected in time: not executed.
    unknown,     // Sent, no reply: may have been executed.
    overloaded,  // The backend's queue is at its bound: not executed.
  };
  Kind kind = Kind::unsent;
  std::string_view member;  // Id.
  std::string_view reason;  // "timed out after 1000 ms", "Connection refused", ...
};

// A reply of one large bulk that is on its way, as its connection offers it to whoever takes it in pieces.
class LargeReply {
 public:
  virtual void resume() = 0;  // After a piece that was too much.
  virtual void forget() = 0;  // The taker is not called any more; what is still to come is dropped.

 protected:
  ~LargeReply() = default;
};

// Takes a large reply in pieces. Called from the loop alone, and not any more after the last piece,
// on_broken() or on_gone(), when the LargeReply is gone, too. May call forget() in on_piece(), but not
// resume().
class PieceTaker {
 public:
  // The pieces make up the raw reply. False: the next one only after resume().
  virtual bool on_piece(std::string_view bytes, bool last) = 0;
  // Commands behind this reply are about to miss their deadline: take the rest as it comes.
  virtual void hurry() = 0;
  virtual void on_broken(const Failure& failure) = 0;  // The rest does not come.
  virtual void on_gone() = 0;                          // Nor here: the pool is being destroyed.

 protected:
  ~PieceTaker() = default;
};

// Waits for replies. REQUIRES: outlives its last reply or failure.
class ReplySink {
 public:
  // A reply that is a bulk of more than Options::large_reply bytes has begun; `size` is the whole's. Who is
  // returned gets it in pieces, and the sink hears no more of this command; null: on_reply() when it is
  // there.
  virtual PieceTaker* on_large_reply(std::uint64_t /*tag*/, std::size_t /*size*/, LargeReply& /*from*/) {
    return nullptr;
  }
  // `raw` is one whole reply as the member sent it; good only during the call.
  virtual void on_reply(std::uint64_t tag, std::string_view raw) = 0;
  virtual void on_failure(std::uint64_t tag, const Failure& failure) = 0;

 protected:
  ~ReplySink() = default;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Appends `command` (one whole command in RESP) to the output; it leaves at the end of the wakeup. The
  // sink is never called from inside send(). Copies the bytes. Amortised O(bytes), no allocation. `traffic`:
  // as what it counts (member_counters.h). REQUIRES, here and below: tag < 2^60.
  virtual void send(std::string_view command, ReplySink& sink, std::uint64_t tag,
                    Traffic traffic = Traffic::none) = 0;
  // The same for `count` whole commands as one unit: all are appended, one behind the other, or none is. The
  // sink gets one reply, the last command's, or one failure; earlier replies are swallowed, and count for
  // nobody.
  // REQUIRES: count >= 1, and nothing takes effect before the last command (MULTI ... EXEC): a block whose
  // last command was not wholly written fails as unsent. A connection that breaks inside a block is closed,
  // so that nobody meets an open MULTI.
  virtual void send_block(std::string_view commands, std::size_t count, ReplySink& sink, std::uint64_t tag,
                          Traffic traffic = Traffic::none) = 0;
  [[nodiscard]] virtual bool connected() const noexcept = 0;  // Handshake and Look are done.
};

// Whoever has a private connection. Called from the loop alone, never from inside a call of the owner's, and
// not any more once the connection is destroyed or given back. REQUIRES: outlives the connection.
class PrivateOwner {
 public:
  virtual void on_ready() {}  // It is connected; what was sent before then has left, too.
  // An out-of-band reply of RESP3 ('>'), whole; good only during the call.
  virtual void on_push(std::string_view /*raw*/) {}
  // Broken for good, or it never came to be; the sinks of its commands were told before. The connection may
  // be destroyed from in here. Kinds: overloaded (Options::max_private), unsent (it was never ready, or had
  // nothing unanswered), unknown (something it had sent was unanswered).
  virtual void on_lost(const Failure& failure) = 0;
  virtual void on_drained() {}  // unsent() was not 0, and is.

 protected:
  ~PrivateOwner() = default;
};

// A connection to one member for one owner: same handshake, name and Look as the shared ones, but never made
// again: once broken it stays so. Commands may be sent before it is ready; they wait, send()'s up to their
// deadline, the others up to the one for connecting (connect_timeout + request_timeout from opening).
//
// Destroying it closes it, and no sink of its commands is called any more. Commands that are unanswered then
// are an orphan: the member is told at once, through a shared connection, to kill it, and drains wait for
// that.
class PrivateConnection : public Backend {
 public:
  // Without a deadline once it is ready: for commands that block. (send() behind such a one has its deadline
  // from when its turn comes.)
  virtual void send_untimed(std::string_view command, ReplySink& sink, std::uint64_t tag,
                            Traffic traffic = Traffic::none) = 0;
  // A command whose answers are pushes: SUBSCRIBE and its kin in RESP3. An error in reply to it breaks the
  // connection, and on_lost's reason names that error. Does not count as unanswered.
  virtual void send_for_pushes(std::string_view command) = 0;

  // One command in pieces, which leave at once; the member executes it no earlier than after end_command().
  // Until then it counts as unanswered, and no other may be sent. Its deadline runs from end_command();
  // before and after, bytes that do not move for request_timeout break the connection. A command that was not
  // wholly written fails as unsent. REQUIRES: connected() at begin_command(); the owner waits for
  // on_drained() while unsent() is more than it wants to have queued.
  virtual void begin_command(ReplySink& sink, std::uint64_t tag, Traffic traffic = Traffic::none) = 0;
  virtual void add_piece(std::string_view bytes) = 0;
  virtual void end_command() = 0;
  [[nodiscard]] virtual std::size_t unsent() const noexcept = 0;

  [[nodiscard]] virtual bool lost() const noexcept = 0;
  [[nodiscard]] virtual std::size_t unanswered() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t client_id() const noexcept = 0;    // At the member; 0 until ready.
  [[nodiscard]] virtual const std::string& member() const noexcept = 0;  // Id.

  // Whether drains go on in spite of its unanswered commands; false at first. A command that blocks must not
  // hold up every new snapshot, so say true while none of its keys is in HOLD. With each snapshot, before the
  // drain, look again, and end the others: set_exempt(false) and unblock().
  virtual void set_exempt(bool exempt) = 0;
  // Ends the commands that block: CLIENT UNBLOCK (as a timeout, or with an UNBLOCKED error) through a shared
  // connection, again until whatever was sent before now has its answer. Their sinks get what the member
  // answers, which may be a value that came first. Another blocking command on this same connection could
  // still meet the last UNBLOCK; give_back() looks to that by itself.
  virtual void unblock(bool with_error = false) = 0;
};

// Decides whether a fresh connection may serve (I4).
class Look {
 public:
  virtual ~Look() = default;
  // `stamp`: the member's rs:stamp, if any; `run_id`: the member's own, from INFO server. True when both
  // agree with the worker's current snapshot, so that no registry is needed.
  virtual bool stamp_matches(std::string_view member_id, const std::optional<std::string>& stamp,
                             std::string_view run_id) = 0;
  // Reads the registry (linearizable), brings the worker's snapshot up to date, then calls `done` on the
  // loop's thread: true when that worked. A false is tried again by the caller, with back-off.
  virtual void confirm(std::function<void(bool)> done) = 0;
};

class MemberAccess;
class MemberBoard;  // backend/member_counters.h

struct Options {
  std::shared_ptr<const MemberAccess> access;  // Null: plain, without a password.
  std::string name;                            // For CLIENT SETNAME: "rs:<router id>".
  unsigned database = 0;                       // That its connections have selected.
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds request_timeout{1000};
  std::size_t max_queued_bytes = 64U << 20;  // Unsent output of one connection.
  std::size_t max_reply_bytes = (512U << 20) + (1U << 20);
  // A reply of one bulk larger than this is offered in pieces (on_large_reply). From then on its connection
  // serves nobody else: commands go over a fresh one. Of such connections there are at most max_handed_over;
  // beyond that, replies are kept until they are whole, as all others are.
  std::size_t large_reply = 4U << 20;
  std::size_t max_handed_over = 256;
  // Before that happens: what is in flight may be executed later than what is sent from then on, so whoever
  // wants an order has to wait for its answers. May be empty.
  std::function<void()> on_hand_over;
  std::size_t max_private = 1024;        // Private connections, the idle ones among them.
  std::size_t max_idle_per_member = 8;   // Of those given back.
  std::shared_ptr<MemberBoard> board{};  // Where others read what is counted; null: nobody does.
};

// One member's connections, as of now.
struct MemberFigures {
  bool connected = false;           // The shared one serves.
  std::string down_reason;          // Why not, once an attempt has failed.
  std::size_t queued_commands = 0;  // Waiting for the connection.
  std::size_t in_flight = 0;        // Sent, not answered.
  std::uint64_t answered = 0;       // Commands answered or failed, since the worker knows this address.
  std::uint64_t failed = 0;         // Of those, without an answer.
  std::size_t private_connections = 0;
};

class Pool {
 public:
  virtual ~Pool() = default;
  // Follows the snapshot's members: connects to new ones, drops those that are gone (once idle).
  virtual void adopt(std::shared_ptr<const topology::Snapshot> snapshot) = 0;
  // REQUIRES: `member` is an index of the adopted snapshot.
  [[nodiscard]] virtual Backend& at(topology::MemberIndex member, Resp resp) = 0;
  // Calls `done` once every command sent before now has its reply, or its connection was killed on the
  // member (or the member restarted). Waits as long as that takes; a later drain() does not replace it.
  virtual void drain(std::function<void()> done) = 0;
  // One gathered write for each connection with new output. Call at the end of a wakeup.
  virtual void flush() = 0;

  // Never null, and never calls the owner from inside: one that cannot be had is lost soon (on_lost). A
  // member that leaves the snapshot, or moves to another address, loses its private connections.
  // REQUIRES: `member` is an index of the adopted snapshot; `owner` outlives the connection. The connection
  // may outlive the pool, and is lost then without a word.
  [[nodiscard]] virtual std::unique_ptr<PrivateConnection> open_private(topology::MemberIndex member,
                                                                        Resp resp, PrivateOwner& owner) = 0;
  // For another owner to use. REQUIRES: it is clean (no MULTI, WATCH, subscription, tracking, nothing that
  // CLIENT or HELLO set); otherwise destroy it. One that is lost, or has commands unanswered, is closed.
  virtual void give_back(std::unique_ptr<PrivateConnection> connection) = 0;
  // CLIENT UNBLOCK through the shared connection, once; nobody hears the answer. It may overtake a command
  // that was sent just now, and come too late for one that was answered: PrivateConnection::unblock() does
  // not.
  virtual void unblock(topology::MemberIndex member, std::uint64_t client_id) = 0;
  // O(connections). REQUIRES: `member` is an index of the adopted snapshot.
  [[nodiscard]] virtual MemberFigures figures(topology::MemberIndex member) const = 0;
};

// `look` null: a static cluster, where a connection serves after its handshake. It must outlive the pool.
[[nodiscard]] std::unique_ptr<Pool> make_pool(net::Loop& loop, Options options, Look* look);

}  // namespace ringshift::backend
