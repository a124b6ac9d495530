#include "telemetry/counters.h"

namespace ringshift::telemetry {

std::string_view name(Counter counter) noexcept {
  static constexpr std::array<std::string_view, kCounterCount> kNames = {
      "requests",       "get_hits",      "get_misses",     "errors_protocol",   "errors_refused",
      "errors_member",  "errors_unsent", "errors_unknown", "errors_overloaded", "errors_denied",
      "errors_limited", "bytes_in",      "bytes_out",      "clients_accepted",  "clients_rejected",
      "clients_closed", "clients_cut",   "keys_pulled",    "bytes_pulled",      "messages",
      "subscribers_cut"};
  return kNames[static_cast<std::size_t>(counter)];
}

std::uint64_t errors(const Totals& totals) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    if (name(static_cast<Counter>(i)).starts_with("errors_")) sum += totals[i];
  }
  return sum;
}

void Counters::add_to(Totals& totals) const noexcept {
  for (std::size_t i = 0; i < kCounterCount; ++i) totals[i] += values_[i].load(std::memory_order_relaxed);
}

}  // namespace ringshift::telemetry
