#include "drill/ledger.h"

#include <algorithm>

namespace ringshift::drill {

Verdict KeyLedger::hit(std::size_t key, std::uint32_t version) {
  const Key& k = keys_[key];
  if (k.clouded) return Verdict::good;
  if (k.copy == Copy::absent) return Verdict::stale;  // A deleted value came back.
  return version >= k.floor && version <= k.version ? Verdict::good : Verdict::stale;
}

Verdict KeyLedger::miss(std::size_t key) {
  Key& k = keys_[key];
  if (k.clouded || k.copy == Copy::absent) return Verdict::good;
  k.copy = Copy::absent;
  return Verdict::lost;
}

Verdict Register::read(std::uint64_t floor_at_send, bool present, std::uint64_t value) const noexcept {
  if (clouded()) return Verdict::good;
  if (!present) return floor_at_send == 0 ? Verdict::good : Verdict::lost;
  return value >= floor_at_send && value <= started_.load() ? Verdict::good : Verdict::stale;
}

void Counter::incremented(std::uint64_t floor_at_send, std::uint64_t value) noexcept {
  acknowledged_.fetch_add(1);
  if (value > floor_at_send) return;
  const std::uint64_t deficit = floor_at_send + 1 - value;
  std::uint64_t worst = worst_deficit_.load();
  while (worst < deficit && !worst_deficit_.compare_exchange_weak(worst, deficit)) {
  }
}

std::uint64_t Counter::lost(std::uint64_t final_value) const noexcept {
  const std::uint64_t acknowledged = acknowledged_.load();
  return std::max(worst_deficit_.load(), acknowledged > final_value ? acknowledged - final_value : 0);
}

std::uint64_t Counter::excess(std::uint64_t final_value) const noexcept {
  const std::uint64_t most = acknowledged_.load() + unknown_.load();
  return final_value > most ? final_value - most : 0;
}

}  // namespace ringshift::drill
