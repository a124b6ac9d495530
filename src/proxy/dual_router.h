// Routes the commands of keys that are between two members (RESIZE.md): parks them in HOLD, pulls a key to
// its new member before a command needs it there, and reads the old copy where that is enough.
//
// One per worker, on the worker's loop thread. The session hands over every single-key command whose route
// is not `settled`, and every one whose key has commands pending here (`busy()` makes that test one load
// nearly always): so commands on one key keep the order in which they were submitted.
//
// REQUIRES: the pool and the loop call nothing of ours after this is destroyed: destroy it when the loop has
// stopped, after the pool.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "net/loop.h"
#include "ringshift/snapshot.h"
#include "telemetry/counters.h"

namespace ringshift::proxy {

inline constexpr std::string_view kCrossSlot = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";

class HotKeyBoard;

enum class KeyAccess : std::uint8_t {
  get,    // GET: a nil reply means that the key is absent.
  read,   // Any other read.
  write,  // Everything else.
};

struct KeyCommand {
  std::string bytes;  // The whole command, in RESP.
  std::string key;
  KeyAccess access = KeyAccess::write;
  backend::Traffic traffic = backend::Traffic::none;  // Counts at the member whose reply is the answer.
  backend::Resp resp = backend::Resp::v2;
  backend::ReplySink* sink = nullptr;  // Gets exactly one reply or failure, never from inside submit().
  std::uint64_t tag = 0;
};

// One command on several keys (RENAME, MSETNX, SINTERSTORE, EVAL ...), or a MULTI ... EXEC block.
struct MultiCommand {
  std::string bytes;              // `count` whole commands, in RESP.
  std::size_t count = 1;          // More than one: as Backend::send_block wants them.
  std::vector<std::string> keys;  // All that the commands name; the same one twice is legal.
  std::string member;             // Id of the member to use when there is no key.
  backend::Traffic traffic = backend::Traffic::none;
  backend::Resp resp = backend::Resp::v2;
  backend::ReplySink* sink = nullptr;  // Gets exactly one reply or failure, never from inside submit_multi().
  std::uint64_t tag = 0;
};

// Where keys are, for a command that goes over a private connection.
struct Pulled {
  topology::MemberIndex member = topology::kNoMember;  // Of all the keys, in the router's snapshot of now.
  // Of the fence under which that holds.
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::string error;  // Not empty: a whole error reply; the keys could not be had.
};

class DualRouter {
 public:
  struct Options {
    std::chrono::milliseconds request_timeout{1000};  // From submit() to the reply, parking excluded.
    std::chrono::milliseconds hold_timeout{10000};    // Longest parking; then the command fails as unsent.
    std::size_t max_parked_bytes = 64U << 20;
    std::size_t max_waiting_bytes = 128U
                                    << 20;  // Parked, or behind a transfer: beyond it commands are refused.
    std::size_t max_known_bytes = 64U << 20;
    telemetry::Counters* counters = nullptr;  // Of this worker; keys and bytes pulled are counted there.
    std::shared_ptr<HotKeyBoard> hot_keys{};  // Null: none are looked for.
  };
  DualRouter(net::Loop& loop, backend::Pool& pool, Options options);
  ~DualRouter();
  DualRouter(const DualRouter&) = delete;
  DualRouter& operator=(const DualRouter&) = delete;

  // Call after Pool::adopt and before any command is routed by the new snapshot. Parked commands that may
  // go on are routed again, in order.
  void adopt(std::shared_ptr<const topology::Snapshot> snapshot);

  // True also as long as a resize runs: then note() each key.
  [[nodiscard]] bool busy() const noexcept { return busy_keys_ != 0; }
  void note(std::string_view key);  // A client's command names it.
  [[nodiscard]] bool pending(std::string_view key) const noexcept;
  void submit(KeyCommand command);

  // For commands any of whose keys is not `settled` or is pending(). The command waits for its turn in the
  // queues of all its keys at once; when it has it, and none of them is in HOLD, those between two members
  // are pulled to their new one; then it is sent there on the shared connection, and the queues go on. Keys
  // whose owners differ: answers kCrossSlot, and nothing is executed.
  void submit_multi(MultiCommand command);
  // The same with nothing to send: `done` hears, from the loop, where the keys are. The member has the newest
  // value of each until a snapshot with another fence, or another owner of a key, is adopted: then what is
  // under way there is to be cancelled, and the keys pulled again. REQUIRES: at least one key.
  void pull(std::vector<std::string> keys, std::function<void(const Pulled&)> done);

  struct Impl;  // proxy/dual_router_impl.h

 private:
  std::size_t busy_keys_ = 0;  // Keys with a command here, waiting or in flight; see Impl::note_busy().
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::proxy
