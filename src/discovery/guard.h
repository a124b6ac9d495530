// A sink before a sink: what it lets through is settled and plausible.
//
// - Equal lists are dropped; a burst becomes one update: after kQuiet without another list, kWindow after the
// first
//   at most, and never two updates within kWindow. So an instance that flaps at 5 Hz costs one a second, or
//   none when it is back by then.
// - A list that is empty, or from which more than half of the ids are missing at once, is held: until it was
// seen
//   unchanged and without trouble for `confirm_after`, or an operator says confirm(). A list that is
//   plausible again ends it. Until then the last list stands, for ever if need be. Before the first list the
//   ids that are expected count as the last one: who begins to look while half of them are away is no wiser.
// - Pushes that are stale or out of order are dropped by the sources that have versions (registry, Consul,
// Kubernetes);
//   here only content counts.
//
// Threads: instances() and trouble() from the source's thread; `next` is called from the guard's own, one
// call at a time and none after the destructor; state() and confirm() from any. Destroy the source first.
// Bounds: one list is pending, one held, kTroublesMax troubles wait.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "discovery/source.h"

namespace ringshift::discovery {

// The rules, without a thread or a clock.
class GuardRules {
 public:
  static constexpr std::chrono::milliseconds kQuiet{100};
  static constexpr std::chrono::milliseconds kWindow{1000};

  struct Held {
    std::size_t seen = 0;              // Instances in the list that is held.
    std::vector<std::string> missing;  // Ids of the last list that it has not.
    std::size_t of = 0;                // Instances in the last list.
    base::TimePoint since{};           // When it, unchanged and without trouble, was seen first.

    // "shows 1 instance, without 2 of the 3 before (a, b)": what an operator is shown, and confirms.
    [[nodiscard]] std::string text() const;
  };
  static constexpr std::size_t kIdsNamed = 8;  // Of those that are missing.

  // `expected`: ids that were in the list when somebody looked last; none when nobody knows.
  explicit GuardRules(base::Duration confirm_after, std::vector<std::string> expected = {})
      : confirm_after_(confirm_after), before_(std::move(expected)) {}

  void saw(const std::vector<Instance>& all, base::TimePoint now);
  void troubled(base::TimePoint now);
  // The operator's word: what is held passes. False when nothing is.
  bool confirm(base::TimePoint now);
  // The list to pass on now, if there is one.
  [[nodiscard]] std::optional<std::vector<Instance>> take(base::TimePoint now);
  // When take() may have one; nothing: not before another saw().
  [[nodiscard]] std::optional<base::TimePoint> due() const;

  [[nodiscard]] const std::optional<Held>& held() const noexcept { return held_; }
  // How old what stands is: zero while its source answers and nothing is held; nothing before the first list.
  [[nodiscard]] std::optional<base::Duration> age(base::TimePoint now) const;
  [[nodiscard]] std::size_t size() const noexcept { return passed_ ? passed_->size() : 0; }

  std::uint64_t passed = 0, equal = 0, merged = 0, holds = 0;  // Lists, since the start.

 private:
  [[nodiscard]] std::optional<Held> suspicion(const std::vector<Instance>& all, base::TimePoint now) const;

  base::Duration confirm_after_;
  std::vector<std::string> before_;  // Ids of passed_, or those that are expected before it.
  std::optional<std::vector<Instance>> passed_, pending_;
  std::optional<Held> held_;  // Of pending_.
  base::TimePoint first_pending_{}, last_pending_{}, passed_at_{};
  std::optional<base::TimePoint> troubled_since_, behind_since_;
};

class Guard final : public Sink {
 public:
  static constexpr std::chrono::seconds kConfirmAfter{30};
  static constexpr std::size_t kTroublesMax = 16;

  struct State {
    std::size_t instances = 0;          // Of the list that stands.
    std::optional<base::Duration> age;  // As GuardRules::age().
    std::optional<GuardRules::Held> held;
    base::Duration held_for{0};
    std::uint64_t passed = 0, equal = 0, merged = 0, holds = 0;
    std::string trouble;  // The last one's message; "" when the source answers.
  };

  // `next` must outlive this. `expected`: as of GuardRules.
  explicit Guard(Sink& next, base::Duration confirm_after = kConfirmAfter,
                 std::vector<std::string> expected = {});
  ~Guard() override;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  void instances(const std::vector<Instance>& all) override;
  void trouble(const Error& why) override;

  // Lets the held list pass. False when none is held.
  bool confirm();
  [[nodiscard]] State state() const;

 private:
  void run();

  Sink& next_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  GuardRules rules_;
  std::deque<Error> troubles_;
  std::string last_trouble_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ringshift::discovery
