// Which keys of a resize's slices clients ask for most, by each worker of a proxy (heavy_keeper.h). Works
// only while a resize runs; the controller moves these keys first.
//
// HotKeyBoard: thread-safe; workers put their lists up, the registry link reads them all. HotKeyCounter: one
// of a worker, on its thread; costs a hash and two cache lines a command.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

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
