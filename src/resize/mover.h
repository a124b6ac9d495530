// Moves every key of the slices in DUAL: a thread for each source SCANs it, keeps the keys that move, and
// transfers them in batches within the shared rates, pass after pass, until one finds nothing. Keys that a
// router is moving just now, and those whose claim was lost, are left to the next pass.
//
// A slice on OLD only shrinks after HOLD, and SCAN returns every key that is there all along: so a pass that
// found nothing proves that nothing is left, provided that OLD did not restart meanwhile.
#pragma once
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "resize/throttle.h"
#include "ringshift/snapshot.h"
#include "transfer/batch.h"

namespace ringshift::resize {

class Mover {
 public:
  struct Options {
    std::string name;  // For CLIENT SETNAME: "rs:<controller id>".
    std::uint32_t batch_keys = 10;
    TokenBucket* keys = nullptr;                            // Keys a second, over all sources.
    TokenBucket* bytes = nullptr;                           // Bytes a second.
    std::shared_ptr<const backend::MemberAccess> access{};  // Null: plain, without a password.
  };
  // What has been done so far; a snapshot of the counts at one moment.
  struct Progress {
    std::uint64_t moved = 0, bytes = 0;
    std::map<std::pair<std::string, std::string>, std::uint64_t> pairs;  // (from, to) -> moved
    std::vector<std::string> big_keys;
  };
  enum class Outcome {
    clean,        // Nothing left on any source.
    gated,        // A destination does not let transfers in: look at its stamp.
    restarted,    // A source restarted during its last pass.
    failed,       // A member answered an error (for example OOM): see error().
    unreachable,  // A connection broke: see error().
    stopped,      // stop() was called.
  };

  // REQUIRES: the snapshot has slices in DUAL. The first pass begins at once.
  Mover(std::shared_ptr<const topology::Snapshot> snapshot, Options options);
  ~Mover();  // stop(), and waits.
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  void stop();
  // True when every source is done, within `patience`; then outcome() and error() are final.
  [[nodiscard]] bool wait(std::chrono::milliseconds patience);
  [[nodiscard]] Outcome outcome() const;
  [[nodiscard]] std::string error() const;
  [[nodiscard]] Progress progress() const;

 private:
  struct Source;
  void work(topology::MemberIndex source);
  Outcome run_source(Source& source, std::string& error);
  // One SCAN through the source. `found`: keys that still had to move.
  Outcome pass(Source& source, std::uint64_t& found, std::string& error);
  Outcome move_keys(Source& source, topology::MemberIndex to, const std::vector<std::string>& keys,
                    std::string& error);
  bool wait_for_tokens(std::size_t keys);
  void book(const Source& source, topology::MemberIndex to, const transfer::BatchResult& result);
  bool pause(base::Duration duration);  // False when stopped.

  const std::shared_ptr<const topology::Snapshot> snapshot_;
  const Options options_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  Progress progress_;
  std::size_t running_ = 0;
  Outcome outcome_ = Outcome::clean;
  std::string error_;

  std::vector<std::thread> threads_;
};

}  // namespace ringshift::resize
