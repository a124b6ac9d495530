// A cache-aside application under an open load: GET; on a miss read the origin through the pool and SET with
// a time to live; an update writes the origin and DELs. Beside the objects it keeps registers and counters
// that live in the cache alone (as rate limits and sessions do), one request in kSlotsPerProbe.
//
// Requests are due on a fixed schedule and taken in order by whichever thread is free; latency counts from
// the time when a request was due, so waiting for a thread counts. One that is not begun within `deadline` is
// shed: its user has gone. In a stampede all threads wait for the pool, and then hits wait, too: as in life.
//
// Steady from the first second: the fill puts each object into the cache with the chance, and the remaining
// time to live, that it has in the long run (workload.h).
//
// Every answer is checked against what was acknowledged before (shared_ledger.h, ledger.h). What was lost
// with a switch of placements is found when somebody asks for it, or by verify() at the end.
//
// Driven by one thread: fill, start, stop, verify. Threads: options.threads, each with its connections.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "drill/cache.h"
#include "drill/load.h"
#include "drill/pool.h"
#include "drill/schedule.h"
#include "drill/shared_ledger.h"
#include "drill/timeline.h"
#include "drill/workload.h"

namespace ringshift::drill {

struct AppOptions {
  unsigned threads = 64;
  double requests_per_second = 5000;
  Ttl ttl{60'000};  // Each copy's own: up to a tenth shorter or longer.
  std::chrono::milliseconds deadline{1000};
  std::uint64_t seed = 1;
};
inline constexpr unsigned kMaxAppThreads = 512;
inline constexpr std::uint64_t kSlotsPerProbe = 50;

class App {
 public:
  using Progress = Load::Progress;

  // REQUIRES: the others outlive the App; the pool's origin has workload.keys() objects.
  App(AppOptions options, const Workload& workload, Cache& cache, OriginPool& pool);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  [[nodiscard]] Status fill(const Progress& progress);
  // Request 0 is due at `schedule`'s start, and so begins the timeline.
  void start(const Schedule& schedule, Timeline& timeline);
  void stop();
  // REQUIRES: stopped. Reads back what should be there.
  [[nodiscard]] Status verify(const Progress& progress);

  [[nodiscard]] Verdicts verdicts() const;  // REQUIRES: stopped.
  [[nodiscard]] const SharedLedger& ledger() const noexcept { return ledger_; }

 private:
  class Thread;  // One of them; app_thread.cpp.
  struct Probes;

  void judge(Verdict verdict, base::TimePoint due, const std::function<std::string()>& what);
  [[nodiscard]] Ttl ttl_of(std::uint64_t key, std::uint64_t turn) const;
  [[nodiscard]] Status verify_probes(CacheClient& client);

  const AppOptions options_;
  const Workload& workload_;
  Cache& cache_;
  OriginPool& pool_;
  SharedLedger ledger_;
  std::unique_ptr<Probes> probes_;
  Timeline* timeline_ = nullptr;  // While running.
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> lost_{0}, stale_{0}, checked_{0}, acknowledged_{0}, unknown_{0};
  std::uint64_t lost_increments_ = 0, excess_increments_ = 0;  // As of the last verify().
  mutable std::mutex mutex_;
  std::vector<std::string> examples_;  // Guarded by mutex_.
  std::vector<std::jthread> threads_;  // Last: they use all of the above.
};

}  // namespace ringshift::drill
