// Keeps one record in the registry for as long as this lives: under a lease, renewed three times in its TTL,
// and again with a new lease whenever that was lost (a pause of ours, a restart of theirs). For ever, with
// full jitter between attempts, before the first one too.
//
// Invariant: a record of somebody else is never overwritten. The key is taken when it is absent, or when it
// bears a lease that was ours in this life (a registry may show the old one a while after it ended); any
// other lease belongs to a living agent of the same id, or to one that died within its TTL: both are waited
// for.
//
// Threads: its own. Public functions: any thread. Cost: a renewal and a write or a read every third of the
// TTL.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "coord/coordinator.h"

namespace ringshift::agent {

class Registrar {
 public:
  static constexpr std::chrono::milliseconds kFirstAttempt{500};   // The upper end of the jitter.
  static constexpr std::chrono::milliseconds kLongestPause{5000};  // Likewise, after many failures.
  static constexpr std::size_t kLeasesKnown = 16;                  // Of this life.

  struct Options {
    std::string key;
    std::string drained_key;  // Where an operator marks the instance as drained.
    std::chrono::seconds lease_ttl{15};
  };
  // `coordinator` must outlive this. `record`: the value to write, asked on the registrar's thread.
  Registrar(coord::Coordinator& coordinator, Options options, std::function<std::string()> record);
  // Revokes the lease: the record is gone with it, at once where the registry answers, else when it ends.
  ~Registrar();

  void changed();  // The record has news that should not wait for the next beat.
  [[nodiscard]] bool registered() const;
  [[nodiscard]] bool drained() const;  // The operator's mark, as of the last beat that got an answer.

 private:
  void work();
  [[nodiscard]] bool stopping() const;
  Status beat();
  Status take();
  Status put();
  Status read_mark();

  coord::Coordinator& coordinator_;
  const Options options_;
  const std::function<std::string()> record_;
  std::minstd_rand random_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_:
  bool stopping_ = false, due_ = false, registered_ = false, drained_ = false;

  // Of the thread:
  coord::LeaseId lease_ = 0;
  std::set<coord::LeaseId> ours_;
  std::string written_;
  std::string told_;     // The last trouble in the log.
  bool answers_ = true;  // The registry, to the last beat.
  std::thread thread_;
};

}  // namespace ringshift::agent
