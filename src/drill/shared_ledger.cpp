#include "drill/shared_ledger.h"

#include <algorithm>

namespace ringshift::drill {

bool SharedLedger::may_fill(std::size_t key, std::uint32_t version) const {
  const std::lock_guard lock(lock_of(key));
  return keys_[key].version == version;
}

void SharedLedger::filled(std::size_t key, base::TimePoint until) {
  const std::lock_guard lock(lock_of(key));
  keys_[key].present_until = until;
}

void SharedLedger::updated(std::size_t key, std::uint32_t version) {
  const std::lock_guard lock(lock_of(key));
  Key& k = keys_[key];
  k.version = std::max(k.version, version);
  ++k.epoch;
  k.present_until = {};
}

void SharedLedger::deleted(std::size_t key) {
  const std::lock_guard lock(lock_of(key));
  keys_[key].floor = keys_[key].version;
}

void SharedLedger::outcome_unknown(std::size_t key) {
  const std::lock_guard lock(lock_of(key));
  keys_[key].clouded = true;
}

SharedLedger::Expectation SharedLedger::before_read(std::size_t key) const {
  const std::lock_guard lock(lock_of(key));
  const Key& k = keys_[key];
  return {k.floor, k.epoch, k.present_until, k.clouded};
}

Verdict SharedLedger::hit(std::size_t key, const Expectation& expected, std::uint32_t version) const {
  const std::lock_guard lock(lock_of(key));
  const Key& k = keys_[key];
  if (expected.clouded || k.clouded) return Verdict::good;
  // No fill has a version that its guard did not let through, so nothing above the present one is possible.
  return version >= expected.floor && version <= k.version ? Verdict::good : Verdict::stale;
}

Verdict SharedLedger::miss(std::size_t key, const Expectation& expected, base::TimePoint answered) {
  const std::lock_guard lock(lock_of(key));
  Key& k = keys_[key];
  if (expected.clouded || k.clouded || k.epoch != expected.epoch) return Verdict::good;
  if (expected.present_until == base::TimePoint{} || answered + kTtlMargin >= expected.present_until)
    return Verdict::good;
  // Somebody filled it anew while this answer was under way: that copy may be there, this one was lost.
  if (k.present_until == expected.present_until) k.present_until = {};
  ++k.epoch;
  return Verdict::lost;
}

std::uint32_t SharedLedger::version(std::size_t key) const {
  const std::lock_guard lock(lock_of(key));
  return keys_[key].version;
}

bool SharedLedger::present(std::size_t key, base::TimePoint now) const {
  const std::lock_guard lock(lock_of(key));
  return now < keys_[key].present_until;
}

std::uint64_t SharedLedger::clouded() const {
  std::uint64_t count = 0;
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    const std::lock_guard lock(lock_of(key));
    count += keys_[key].clouded ? 1 : 0;
  }
  return count;
}

}  // namespace ringshift::drill
