// What acknowledged operations promise about keys, and so which answers of the cache are wrong.
//
// KeyLedger is for the cached objects of one thread, which alone reads, fills and invalidates them: every
// answer about them is then determined, and each is checked. Registers and counters are shared: one writer
// (registers) or many (counters), any reader; they check what one connection's writes look like on another.
//
// A command whose outcome is unknown (sent, no answer) may be executed late; what it may change is not judged
// from then on: the key is `clouded`, and counted as such, neither as lost nor as good.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

namespace ringshift::drill {

enum class Verdict : std::uint8_t {
  good,
  lost,   // An acknowledged write is not there.
  stale,  // An older value than an acknowledged one, or a deleted one, or another key's.
};

class KeyLedger {  // One thread.
 public:
  explicit KeyLedger(std::size_t keys) : keys_(keys) {}

  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }
  [[nodiscard]] std::uint32_t origin_version(std::size_t key) const { return keys_[key].version; }
  [[nodiscard]] bool clouded(std::size_t key) const { return keys_[key].clouded; }
  [[nodiscard]] bool expected_present(std::size_t key) const { return keys_[key].copy == Copy::present; }

  void updated(std::size_t key, std::uint32_t version) { keys_[key].version = version; }  // The origin's.
  void set_acknowledged(std::size_t key) { keys_[key].copy = Copy::present; }
  void deleted_acknowledged(std::size_t key) {
    keys_[key].copy = Copy::absent;
    keys_[key].floor = keys_[key].version;
  }
  void outcome_unknown(std::size_t key) { keys_[key].clouded = true; }

  [[nodiscard]] Verdict hit(std::size_t key, std::uint32_t version);
  [[nodiscard]] Verdict miss(std::size_t key);  // A loss is reported once.

 private:
  enum class Copy : std::uint8_t { absent, present };
  struct Key {
    std::uint32_t version = 1;  // The origin's.
    std::uint32_t floor = 1;    // No acknowledged invalidation allows a version below it.
    Copy copy = Copy::absent;
    bool clouded = false;
  };
  std::vector<Key> keys_;
};

// A value that only grows, written by one thread.
class Register {
 public:
  [[nodiscard]] std::uint64_t next() noexcept {
    return started_.fetch_add(1) + 1;
  }  // Before its SET is sent.
  void acknowledged(std::uint64_t value) noexcept { acknowledged_.store(value); }
  void outcome_unknown() noexcept { clouded_.store(true); }

  [[nodiscard]] std::uint64_t floor() const noexcept {
    return acknowledged_.load();
  }  // Before a GET is sent.
  [[nodiscard]] Verdict read(std::uint64_t floor_at_send, bool present, std::uint64_t value) const noexcept;
  [[nodiscard]] bool clouded() const noexcept { return clouded_.load(); }

 private:
  std::atomic<std::uint64_t> started_{0}, acknowledged_{0};
  std::atomic<bool> clouded_{false};
};

// A counter that any thread increments.
class Counter {
 public:
  [[nodiscard]] std::uint64_t floor() const noexcept { return acknowledged_.load(); }
  // `value` is INCR's answer. Too low an answer means that increments before it are gone.
  void incremented(std::uint64_t floor_at_send, std::uint64_t value) noexcept;
  void outcome_unknown() noexcept { unknown_.fetch_add(1); }
  // With the value read at the end: how many acknowledged increments were lost, and how many there are that
  // nobody sent.
  [[nodiscard]] std::uint64_t lost(std::uint64_t final_value) const noexcept;
  [[nodiscard]] std::uint64_t excess(std::uint64_t final_value) const noexcept;

 private:
  std::atomic<std::uint64_t> acknowledged_{0}, unknown_{0}, worst_deficit_{0};
};

}  // namespace ringshift::drill
