// Figures that one worker thread counts and any thread may read.
//
// Each worker has its own Counters, on cache lines of its own: one writer, so that counting is a plain load,
// add and store. Readers see each figure whole, but not all at one instant.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringshift::telemetry {

enum class Counter : std::uint8_t {
  requests,           // Commands read from clients, refused ones included.
  get_hits,           // Keys that GET, GETEX, GETDEL and MGET found; added up from members' counters.
  get_misses,         // And that they did not.
  errors_protocol,    // Connections closed for what they sent.
  errors_refused,     // Unknown, unsupported or malformed commands; reserved keys.
  errors_member,      // Error replies from members, passed on.
  errors_unsent,      // Not executed: member not reachable in time.
  errors_unknown,     // Sent, not answered in time: may have been executed.
  errors_overloaded,  // Not executed: a member's queue was full.
  errors_denied,      // No password, or a wrong one; the user may not do this.
  errors_limited,     // Over a rate limit.
  bytes_in,           // From clients.
  bytes_out,          // To clients.
  clients_accepted,
  clients_rejected,  // Over max_clients.
  clients_closed,
  clients_cut,  // Closed by us for replies that they did not read.
  keys_pulled,  // Moved between members because a client's command needed them there.
  bytes_pulled,
  messages,         // Published ones, delivered to a client.
  subscribers_cut,  // Closed by us because a member's connection for subscriptions broke.
  count_of_counters,
};
inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::count_of_counters);

// The name as INFO and metrics show it.
[[nodiscard]] std::string_view name(Counter counter) noexcept;

using Totals = std::array<std::uint64_t, kCounterCount>;
[[nodiscard]] inline std::uint64_t get(const Totals& totals, Counter counter) noexcept {
  return totals[static_cast<std::size_t>(counter)];
}

// All that are named errors_*.
[[nodiscard]] std::uint64_t errors(const Totals& totals) noexcept;

class alignas(64) Counters {
 public:
  // The owner's thread only.
  void add(Counter counter, std::uint64_t n = 1) noexcept {
    std::atomic<std::uint64_t>& value = values_[static_cast<std::size_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  // Any thread.
  void add_to(Totals& totals) const noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, kCounterCount> values_{};
};

}  // namespace ringshift::telemetry
