// What acknowledged operations promise about cached objects that many threads read, fill and update at once;
// ledger.h has the like for one thread's.
//
// The rules of the application, without which cache-aside itself shows old values and no cache could be
// blamed: who updates an object holds its guard from before the origin's UPDATE until the DEL is answered;
// who fills it holds the guard from a look at the version until the SET is answered, and does not fill with
// an older version than the last. Reads take no guard: what is sent after a DEL was acknowledged must not
// show an older version, and what is sent while an acknowledged copy has time to live, and no DEL was sent
// since, must find it.
//
// Any thread. A call costs about 50 ns; guards are shared by keys (kGuards of them), data locks too.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "drill/ledger.h"

namespace ringshift::drill {

class SharedLedger {
 public:
  explicit SharedLedger(std::size_t keys) : keys_(keys) {}

  // A copy may run out this much before we think so: clocks tick in milliseconds, and time to live is
  // rounded when a copy moves.
  static constexpr base::Duration kTtlMargin = std::chrono::milliseconds(250);

  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }
  [[nodiscard]] std::mutex& guard(std::size_t key) { return guards_[key % kGuards]; }

  // REQUIRES, for these five: the caller holds the guard, or is alone.
  [[nodiscard]] bool may_fill(std::size_t key, std::uint32_t version) const;
  void filled(std::size_t key, base::TimePoint until);   // The SET was acknowledged.
  void updated(std::size_t key, std::uint32_t version);  // The origin's; the DEL is about to be sent.
  void deleted(std::size_t key);                         // The DEL was acknowledged.
  void outcome_unknown(std::size_t key);                 // Of a SET or a DEL: not judged from here on.

  // Taken before a GET is sent, judged when its answer is there.
  struct Expectation {
    std::uint32_t floor = 1, epoch = 0;
    base::TimePoint present_until{};  // The epoch of the clock: not expected to be there.
    bool clouded = false;
  };
  [[nodiscard]] Expectation before_read(std::size_t key) const;
  [[nodiscard]] Verdict hit(std::size_t key, const Expectation& expected, std::uint32_t version) const;
  // A loss is reported once.
  [[nodiscard]] Verdict miss(std::size_t key, const Expectation& expected, base::TimePoint answered);

  [[nodiscard]] std::uint32_t version(std::size_t key) const;
  [[nodiscard]] bool present(std::size_t key, base::TimePoint now) const;  // As far as acknowledged.
  [[nodiscard]] std::uint64_t clouded() const;

 private:
  static constexpr std::size_t kGuards = 4096, kLocks = 1024;
  struct Key {
    std::uint32_t version = 1, floor = 1, epoch = 0;
    bool clouded = false;
    base::TimePoint present_until{};
  };
  [[nodiscard]] std::mutex& lock_of(std::size_t key) const { return locks_[key % kLocks]; }

  std::vector<Key> keys_;  // Each guarded by its lock.
  mutable std::array<std::mutex, kLocks> locks_;
  std::array<std::mutex, kGuards> guards_;
};

}  // namespace ringshift::drill
