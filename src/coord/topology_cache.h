// The last settled topology that a router obeyed, on its disk: what it begins with when it starts while the
// registry does not answer.
//
// What is in the file is a claim, not the truth: whoever serves by it lets each connection look at its
// member's stamp first (RESIZE.md, I4), and that refuses a topology that a resize has left behind. So only a
// settled topology is kept, and the file is removed as soon as the router sees a resize begin. Before the
// first resize members bear no stamp; then the file also says which processes the members were when the
// registry itself vouched that no resize had been, and only those same processes are believed.
//
// Invariant: the file is whole or absent (written beside, fsync, rename, fsync of the directory); what was
// changed, cut off or belongs to another cluster is refused by its checksum and its names, with the reason.
// One thread at a time. Cost: one small write a settled topology, one utimensat a minute. Failure: a disk
// that cannot be written is a warning; the router serves on.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "ringshift/error.h"
#include "ringshift/snapshot.h"

namespace ringshift::coord {

using Processes = std::map<std::string, std::string, std::less<>>;  // Member id -> the run id of its process.

struct CachedTopology {
  std::shared_ptr<const topology::Snapshot> snapshot;  // Settled.
  std::uint64_t cluster_id = 0;                        // The registry's own id.
  Processes processes;                                 // Of fence epoch 0 alone.
  std::chrono::seconds age{0};  // Since the registry was last known to answer, by this host's clock.
};

class TopologyCache {
 public:
  static constexpr std::size_t kMaxFileBytes = 16U << 20;
  static constexpr std::chrono::seconds kTouchInterval{60};

  // `prefix`: of the cluster's keys, which tells clusters and namespaces apart.
  TopologyCache(std::string file, std::string prefix) : file_(std::move(file)), prefix_(std::move(prefix)) {}

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  // not_found: there is no file. Other errors name it, and say what is wrong with it.
  [[nodiscard]] Result<CachedTopology> read() const;
  // REQUIRES: the snapshot has no resize.
  [[nodiscard]] Status write(const topology::Snapshot& snapshot, std::uint64_t cluster_id,
                             const Processes& processes);
  // Says by the file's time that the registry answers and had nothing newer; at most once in kTouchInterval.
  void touch(std::chrono::steady_clock::time_point now);
  void remove();

 private:
  const std::string file_, prefix_;
  bool present_ = false;  // We wrote it.
  std::chrono::steady_clock::time_point touched_{};
};

}  // namespace ringshift::coord
