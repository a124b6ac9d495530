// Our keys in an ensemble: reading them, and telling one ensemble's life from another's.
//
// A key is a node with data; a directory is a node without (null, which is not the same as empty), made as
// needed. CHROOT/ringshift is made at the first use and never removed: its birth is the ensemble's identity.
// Functions here use a Connection of the caller's thread; Identity is thread-safe.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coord/coordinator.h"
#include "coord/zookeeper/connection.h"
#include "coord/zookeeper/paths.h"
#include "coord/zookeeper/wire.h"

namespace ringshift::coord::zookeeper {

// Requests sent at once; more go in turns.
inline constexpr std::size_t kPipelineMax = 256;
// Directories at least this deep (/ringshift/NAMESPACE/CLUSTER/log/ID) are removed with their last key.
inline constexpr int kPrunedDepth = 5;

// The number in Range::cluster_id. It changes when CHROOT/ringshift was born at another time (the ensemble
// was built anew), and when the ensemble has forgotten a write for kBehindMax (it was restored from an older
// backup). For a shorter time a leader can be behind that was deposed and does not know it yet: calls fail
// then.
class Identity {
 public:
  static constexpr std::chrono::seconds kBehindMax{30};

  // The newest revision known. Take it before a `sync`, and give it to seen_after_sync().
  [[nodiscard]] std::int64_t newest() const;
  void saw(std::uint64_t cluster_id, std::int64_t mzxid);  // In a store of that identity.
  // `root`: of CHROOT/ringshift; `zxid`: the server's when it answered, after a `sync`.
  [[nodiscard]] Result<std::uint64_t> seen_after_sync(const Stat& root, std::int64_t zxid,
                                                      std::int64_t newest_before, Clock::time_point now);

 private:
  mutable std::mutex mutex_;
  std::uint64_t base_ = 0, salt_ = 0;
  std::int64_t newest_ = 0;
  std::optional<Clock::time_point> behind_since_;
};

struct Layout {
  std::string chroot;
  Access access = Access::world;

  [[nodiscard]] std::string root() const { return chroot + "/ringshift"; }
  [[nodiscard]] int depth(std::string_view path) const;  // Names below the chroot.
};

// Every key under the prefix. Nothing that was written by `revision` is missing, and each key is as it was at
// some moment between then and the return: entries may be newer than the revision, never older.
struct Listing {
  Range range;
  std::vector<std::string> top;  // The paths right below the prefix's directory that match, keys or not.
};
[[nodiscard]] Result<Listing> list_keys(Connection& connection, const Layout& layout, Identity& identity,
                                        std::string_view prefix, Deadline deadline);

[[nodiscard]] KeyValue to_key_value(std::string key, Node node);

// Makes the directory at `path` and those above it that are missing. `invalid` when a key is in the way.
[[nodiscard]] Status make_directories(Connection& connection, const Layout& layout, const std::string& path,
                                      Deadline deadline);
// CHROOT and CHROOT/ringshift.
[[nodiscard]] Status make_root(Connection& connection, const Layout& layout, Deadline deadline);

// Any number of requests, kPipelineMax at a time.
[[nodiscard]] Result<std::vector<Reply>> call_all(Connection& connection, std::vector<std::string> requests,
                                                  Deadline deadline);

}  // namespace ringshift::coord::zookeeper
