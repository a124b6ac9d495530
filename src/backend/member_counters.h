// What goes to one member and what comes of it, as one pool counts it; and the board where those of all pools
// of a cluster are added up.
//
// A client's command counts at the one member that answered it, once: steps of our own (transfers, claims,
// handshakes) have Traffic::none and are only in `times`, `in_flight` and the bytes. MemberCounters has one
// writer, its pool's thread, so counting is a plain load, add and store; any thread may read, and reads each
// figure whole, but not all of one instant. 2.3 KiB each.
//
// MemberBoard: thread-safe. What a member that is gone had counted stays in all(), so that sums never fall.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "protocol/resp/command_table.h"
#include "telemetry/times.h"

namespace ringshift::backend {

// Sums over pools.
struct MemberSums {
  // Client commands answered, error replies among them, by class.
  std::uint64_t reads = 0, writes = 0, others = 0;
  // Keys found and not found by GET and MGET (read), and by GETEX and GETDEL (write).
  std::uint64_t read_hits = 0, read_misses = 0, write_hits = 0, write_misses = 0;
  // Client commands that have no answer, by Failure::Kind; and how many of them for a deadline that passed.
  std::uint64_t unsent = 0, unknown = 0, overloaded = 0, timeouts = 0;
  std::uint64_t error_replies = 0;
  std::uint64_t connects = 0, reconnects = 0, connect_failures = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;                      // To the member, and from it.
  std::uint64_t steps = 0;                                        // Commands of our own that it answered.
  std::int64_t in_flight = 0, unsent_bytes = 0, connections = 0;  // Now.
  std::uint64_t pools = 0, pools_connected = 0;  // Now; connected: by their shared connection.
  telemetry::TimesTotals times{};                // From send() to the reply, of all commands with a deadline.
  std::uint64_t micros = 0;                      // Of these together.

  [[nodiscard]] std::uint64_t hits() const noexcept { return read_hits + write_hits; }
  [[nodiscard]] std::uint64_t misses() const noexcept { return read_misses + write_misses; }
  [[nodiscard]] std::uint64_t failures() const noexcept { return unsent + unknown + overloaded; }
  [[nodiscard]] std::uint64_t requests() const noexcept { return reads + writes + others + failures(); }
  void add(const MemberSums& other) noexcept;
};

class alignas(64) MemberCounters {
 public:
  using Traffic = protocol::resp::Traffic;

  // `raw`: a whole reply, or its beginning when it is one large bulk. A value and OK need no second look:
  // what they were is told by the difference to what did.
  void answered(Traffic traffic, std::string_view raw) noexcept {
    bump(answers_[static_cast<std::size_t>(traffic)]);
    if (raw[0] == '$' ? raw[1] != '-' : raw[0] == '+') [[likely]]
      return;
    look_at(traffic, raw);
  }
  void failed(Traffic traffic, Failure::Kind kind, bool timed_out = false) noexcept;
  // `count` replies that took so long.
  void took(base::Duration time, std::uint64_t count) noexcept {
    const std::int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    times_.add(micros, count);
    bump(micros_, static_cast<std::uint64_t>(micros) * count);
  }
  void connected(bool again) noexcept {
    bump(connects_);
    if (again) bump(reconnects_);
  }
  void connect_failed() noexcept { bump(connect_failures_); }
  void serves(bool yes) noexcept { serves_.store(yes, std::memory_order_relaxed); }
  void moved_out(std::uint64_t bytes) noexcept { bump(bytes_out_, bytes); }
  void moved_in(std::uint64_t bytes) noexcept { bump(bytes_in_, bytes); }
  void change(std::int64_t in_flight, std::int64_t unsent_bytes) noexcept {
    in_flight_.store(in_flight_.load(std::memory_order_relaxed) + in_flight, std::memory_order_relaxed);
    unsent_.store(unsent_.load(std::memory_order_relaxed) + unsent_bytes, std::memory_order_relaxed);
  }
  void change_connections(std::int64_t by) noexcept {
    connections_.store(connections_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  void add_to(MemberSums& sums) const noexcept;  // Any thread.

 private:
  using Count = std::atomic<std::uint64_t>;
  static constexpr std::size_t kKinds = static_cast<std::size_t>(Traffic::count_of_kinds);

  static void bump(Count& count, std::uint64_t by = 1) noexcept {
    count.store(count.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  static bool is_nil(std::string_view raw) noexcept {
    return (raw[0] == '$' && raw[1] == '-') || raw[0] == '_';
  }
  void look_at(Traffic traffic, std::string_view raw) noexcept;
  [[nodiscard]] static std::size_t index(Traffic traffic) noexcept {
    return static_cast<std::size_t>(traffic);
  }
  [[nodiscard]] std::uint64_t at(Traffic traffic) const noexcept {
    return answers_[static_cast<std::size_t>(traffic)].load(std::memory_order_relaxed);
  }

  std::array<Count, kKinds> answers_{};
  std::array<Count, kKinds> nils_{};    // Of them: nil for a GET and its kin, "no" for an EXISTS.
  std::array<Count, kKinds> errors_{};  // Of them.
  Count mget_hits_{}, mget_misses_{};
  std::array<Count, 3> failures_{};  // By Failure::Kind.
  Count timeouts_{}, connects_{}, reconnects_{}, connect_failures_{}, bytes_out_{}, bytes_in_{}, micros_{};
  std::atomic<std::int64_t> in_flight_{}, unsent_{}, connections_{};
  std::atomic<bool> serves_{};
  telemetry::Times times_;
};

class MemberBoard {
 public:
  // For one pool, which lets go of it when the member is gone and its last connection, too.
  [[nodiscard]] std::shared_ptr<MemberCounters> join(std::string_view member);
  // Of the members that some pool knows.
  [[nodiscard]] std::map<std::string, MemberSums, std::less<>> members() const;
  // Of all members that there ever were.
  [[nodiscard]] MemberSums all() const;

 private:
  struct Entry {
    MemberSums left;  // By pools that are gone.
    std::vector<std::shared_ptr<MemberCounters>> pools;
  };
  void settle() const;  // Moves what nobody else holds any more. REQUIRES: mutex_ is held.

  mutable std::mutex mutex_;
  mutable std::map<std::string, Entry, std::less<>> entries_;  // Guarded by mutex_, as is the next.
  mutable MemberSums gone_;
};

}  // namespace ringshift::backend
