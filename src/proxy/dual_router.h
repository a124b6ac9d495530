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
#include <memory>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "net/loop.h"
#include "ringshift/snapshot.h"
#include "telemetry/counters.h"

namespace ringshift::proxy {

enum class KeyAccess : std::uint8_t {
  get,    // GET: a nil reply means that the key is absent.
  read,   // Any other read.
  write,  // Everything else.
};

struct KeyCommand {
  std::string bytes;  // The whole command, in RESP.
  std::string key;
  KeyAccess access = KeyAccess::write;
  backend::Resp resp = backend::Resp::v2;
  backend::ReplySink* sink = nullptr;  // Gets exactly one reply or failure, never from inside submit().
  std::uint64_t tag = 0;
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
  };
  DualRouter(net::Loop& loop, backend::Pool& pool, Options options);
  ~DualRouter();
  DualRouter(const DualRouter&) = delete;
  DualRouter& operator=(const DualRouter&) = delete;

  // Call after Pool::adopt and before any command is routed by the new snapshot. Parked commands that may
  // go on are routed again, in order.
  void adopt(std::shared_ptr<const topology::Snapshot> snapshot);

  [[nodiscard]] bool busy() const noexcept { return busy_keys_ != 0; }
  [[nodiscard]] bool pending(std::string_view key) const noexcept;
  void submit(KeyCommand command);

  struct Impl;  // proxy/dual_router_impl.h

 private:
  std::size_t busy_keys_ = 0;  // Keys with a command here, waiting or in flight.
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::proxy
