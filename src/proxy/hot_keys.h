// Which keys clients ask for most, by each worker of a proxy (heavy_keeper.h).
//
// HotKeyBoard: thread-safe; workers put their lists up, the registry link and metrics read them all.
// HotKeySampler: of all keys, of a sample of commands, always. HotKeyCounter: of a resize's slices, of every
// command while one runs: the controller moves these keys first. One of each a worker and cluster, on the
// worker's thread; a hash and two cache lines for what they count.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "proxy/heavy_keeper.h"
#include "ringshift/snapshot.h"

namespace ringshift::proxy {

class HotKeyBoard {
 public:
  void put_up(const void* worker, std::vector<HeavyKeeper::Counted> keys);
  void take_down(const void* worker);
  // Over all workers, the heaviest first, at most `most`.
  [[nodiscard]] std::vector<HeavyKeeper::Counted> top(std::size_t most) const;

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::vector<HeavyKeeper::Counted>> lists_;  // Guarded by mutex_.
};

class HotKeySampler {
 public:
  static constexpr std::chrono::seconds kWindow{10};  // What top() of its board is about.
  static constexpr std::size_t kKeysOfOne = 16;       // Of one command, the first.

  explicit HotKeySampler(std::shared_ptr<HotKeyBoard> board);
  ~HotKeySampler();
  HotKeySampler(const HotKeySampler&) = delete;
  HotKeySampler& operator=(const HotKeySampler&) = delete;

  // A key of a command of the sample.
  void count(std::string_view key) {
    keeper_.add(key, [](std::string_view) { return true; });
  }
  struct Seen {  // By the worker, ever.
    std::uint64_t commands = 0, of_them_sampled = 0;
  };
  // Puts up how often each key was asked for in the last kWindow: what this window has counted, and of the
  // one before as much as lies within that time, as if it had been even.
  void every_second(const Seen& seen, base::TimePoint now);

 private:
  const std::shared_ptr<HotKeyBoard> board_;
  HeavyKeeper keeper_;
  std::map<std::string, double> before_;  // Of the last window, scaled to all commands.
  Seen began_with_;
  base::TimePoint began_{};
};

class HotKeyCounter {
 public:
  static constexpr std::uint64_t kShownEvery = 1024;   // Commands; before that at each power of two.
  static constexpr std::uint64_t kAgesEvery = 65'536;  // Commands.

  HotKeyCounter(std::shared_ptr<HotKeyBoard> board, std::shared_ptr<const topology::Snapshot> snapshot);
  ~HotKeyCounter();
  HotKeyCounter(const HotKeyCounter&) = delete;
  HotKeyCounter& operator=(const HotKeyCounter&) = delete;

  void adopt(std::shared_ptr<const topology::Snapshot> snapshot) { snapshot_ = std::move(snapshot); }
  void count(std::string_view key);

 private:
  [[nodiscard]] bool will_move(std::string_view key) const;

  const std::shared_ptr<HotKeyBoard> board_;
  std::shared_ptr<const topology::Snapshot> snapshot_;  // With a resize in it.
  HeavyKeeper keeper_;
  std::uint64_t counted_ = 0;
};

}  // namespace ringshift::proxy
