// A cache-aside application under steady load: GET; on a miss read the origin and SET; on an update write the
// origin and DEL. It checks every answer against what was acknowledged before (ledger.h).
//
// Steady by construction: keys are Zipf-distributed, and the fill leaves out the share of keys that is absent
// on average (u / (g + u) for u updates and g GETs), so the hit rate does not drift from the first second on.
// Each thread owns every n-th key, with a connection and a database session of its own; requests leave in
// pipelines on a fixed schedule. Latency runs from the scheduled time, so waiting for a slow answer counts.
// Slots that passed while waiting are skipped and counted, never caught up in a burst.
//
// A Load is driven by one thread: create, fill, then start and stop any number of times, and verify between.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "drill/origin.h"
#include "drill/recorder.h"
#include "ringshift/error.h"

namespace ringshift::drill {

struct LoadOptions {
  std::vector<std::string> addresses;  // Proxies; thread i uses the (i modulo size)-th.
  unsigned threads = 4;
  std::uint64_t objects = 220'000;    // Rounded up to a multiple of `threads`.
  double requests_per_second = 8000;  // GETs and probes; SETs and DELs come on top.
  double zipf_exponent = 0.99;
  unsigned pipeline = 8;            // Requests sent together by one thread.
  unsigned batches_per_update = 2;  // One object is updated in every so many pipelines.
  std::uint64_t seed = 1;
};

struct Verdicts {
  std::uint64_t lost_writes = 0;
  std::uint64_t stale_reads = 0;
  std::uint64_t reads_checked = 0;
  std::uint64_t writes_acknowledged = 0;
  std::uint64_t unknown_outcomes = 0;  // Sent and not answered: neither lost nor good.
  std::uint64_t unverified_keys = 0;   // Touched by such an outcome, or unreadable at the end.
  std::vector<std::string> examples;   // The first few faults, for people.
};

class Load {
 public:
  // Called with (done, total) now and then; false asks to stop early.
  using Progress = std::function<bool(std::uint64_t, std::uint64_t)>;

  // REQUIRES: the origin has objects_of(options) objects and outlives the Load.
  [[nodiscard]] static Result<std::unique_ptr<Load>> create(LoadOptions options, Origin& origin);
  virtual ~Load() = default;

  [[nodiscard]] virtual Status fill(const Progress& progress) = 0;
  virtual void start() = 0;
  virtual void stop() = 0;
  // REQUIRES: stopped. Reads back every key that was ever acknowledged.
  [[nodiscard]] virtual Status verify(const Progress& progress) = 0;

  [[nodiscard]] virtual Verdicts verdicts() const = 0;  // While stopped: exact; while running: so far.
  [[nodiscard]] virtual Recorder& recorder() noexcept = 0;
};

// The number of objects that a Load with these options uses.
[[nodiscard]] std::uint64_t objects_of(const LoadOptions& options) noexcept;
// The share of the objects that is out of the cache at any time, and so the miss rate.
[[nodiscard]] double absent_share(const LoadOptions& options) noexcept;
[[nodiscard]] std::string object_key(std::uint64_t id);

}  // namespace ringshift::drill
