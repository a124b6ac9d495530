// A worker's connections to members. Per worker, member and RESP version there is one pipelined connection:
// replies come in the order of the commands. Everything belongs to the worker's loop thread.
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
#include "ringshift/snapshot.h"

namespace ringshift::backend {

enum class Resp : std::uint8_t { v2 = 2, v3 = 3 };

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

// Waits for replies. REQUIRES: outlives its last reply or failure.
class ReplySink {
 public:
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
  // sink is never called from inside send(). Copies the bytes. Amortised O(bytes), no allocation.
  virtual void send(std::string_view command, ReplySink& sink, std::uint64_t tag) = 0;
  [[nodiscard]] virtual bool connected() const noexcept = 0;  // Handshake and Look are done.
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

struct Options {
  std::string name;  // For CLIENT SETNAME: "rs:<router id>".
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds request_timeout{1000};
  std::size_t max_queued_bytes = 64U << 20;  // Unsent output of one connection.
  std::size_t max_reply_bytes = (512U << 20) + (1U << 20);
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
};

// `look` null: a static cluster, where a connection serves after its handshake. It must outlive the pool.
[[nodiscard]] std::unique_ptr<Pool> make_pool(net::Loop& loop, Options options, Look* look);

}  // namespace ringshift::backend
