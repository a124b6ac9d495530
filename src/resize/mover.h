// Moves every key of the slices in DUAL. Each source has a thread that SCANs it, keeps the keys that move,
// measures them and packs them into batches, and a few lanes that transfer batches, each over connections of
// its own; pass after pass, until one finds nothing. Keys that a router is moving just now, and those whose
// claim was lost or whose batch failed, are left to the next pass.
//
// A slice on OLD only shrinks after HOLD, and SCAN returns every key that is there all along: so a pass that
// found nothing proves that nothing is left, provided that OLD did not restart meanwhile. A batch that is
// under way when a pass ends is waited for first.
//
// Order: the steps of one key are those of transfer/batch.h, one after the other, in one lane. Two batches
// never need an order between them: a key that is in both (SCAN may name it twice) is claimed by one.
//
// Bounds: batches in flight of a source and in all, payload in memory, batches packed ahead (kBatchesAhead),
// tries against a member that does not answer (kTriesMax), all named in Options or mover_source.h.
#pragma once
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "resize/throttle.h"
#include "ringshift/snapshot.h"
#include "transfer/batch.h"

namespace ringshift::resize {

struct MoverShared;

// A key above the limit, which waits for the operator's word or for a client that writes it.
struct BigKey {
  std::string key;  // As it is: any bytes.
  std::uint64_t bytes = 0;
  std::string from, to;
  bool operator==(const BigKey&) const = default;
};

class Mover {
 public:
  static constexpr std::size_t kBigKeysListed = 100;
  static constexpr std::size_t kHotKeysMax =
      10'000;  // Remembered as given; further ones are left to the scan.

  struct Options {
    std::string name{};  // For CLIENT SETNAME: "rs:<controller id>".
    topology::Limits limits{};
    TokenBucket* keys = nullptr;                            // Keys a second, over all sources.
    TokenBucket* bytes = nullptr;                           // Bytes a second.
    std::shared_ptr<const backend::MemberAccess> access{};  // Null: plain, without a password.
    std::uint64_t big_key_limit = 0;  // Keys above limits.big_key_bytes are moved up to this size.
    transfer::Verify verify = transfer::Verify::counts;
  };
  // What has been done so far; a snapshot of the counts at one moment.
  struct Progress {
    std::uint64_t moved = 0, bytes = 0;
    std::map<std::pair<std::string, std::string>, std::uint64_t> pairs;  // (from, to) -> moved
    std::map<std::pair<std::string, std::string>, std::uint64_t> pair_bytes;
    std::vector<std::string> big_keys;   // Moved, and above transfer::kBigKeyBytes.
    std::vector<BigKey> waiting;         // At most kBigKeysListed of those that wait.
    std::uint64_t waiting_keys = 0;      // All of them, as the last pass over each source left it.
    std::uint64_t verified = 0;          // Compared with their originals.
    std::uint64_t retries = 0;           // Batches and passes begun again because a member did not answer.
    double rate = 0;                     // Keys a second that the slowest rules allow, over all sources.
    std::vector<std::string> held_back;  // Why that is below the configured rate, source by source.
  };
  enum class Outcome {
    clean,        // Nothing left on any source.
    big_keys,     // Nothing but keys above the limit.
    gated,        // A destination does not let transfers in: look at its stamp.
    restarted,    // A source restarted during its last pass.
    failed,       // A member answered an error (for example OOM): see error().
    mismatched,   // A copy was not what its original is: see error(). The key is on its source.
    unreachable,  // A member did not answer for kTriesMax tries: see error(). The other sources are done.
    stopped,      // stop() was called.
  };

  // REQUIRES: the snapshot has slices in DUAL. The first pass begins at once.
  Mover(std::shared_ptr<const topology::Snapshot> snapshot, Options options);
  ~Mover();  // stop(), and waits.
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // All thread-safe.
  void stop();
  // Keys to move before what the scan finds. Those that do not move, or are not there, cost one look.
  void prefer(const std::vector<std::string>& keys);
  // While true every source is moved from more slowly: the origin is asked more often than it may be.
  void hold_back_for_origin(bool over);
  // True when every source is done, within `patience`; then outcome() and error() are final.
  [[nodiscard]] bool wait(std::chrono::milliseconds patience);
  [[nodiscard]] Outcome outcome() const;
  [[nodiscard]] std::string error() const;
  [[nodiscard]] Progress progress() const;
  [[nodiscard]] std::uint64_t most_payload_held() const;  // Bytes, of limits.move_memory_bytes.

 private:
  void work(topology::MemberIndex source);

  const std::unique_ptr<MoverShared> shared_;
  std::vector<std::thread> threads_;
};

}  // namespace ringshift::resize
