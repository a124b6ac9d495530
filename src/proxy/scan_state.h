// What the proxy remembers of a client's SCAN over all members: which were visited, under which topology, and
// which keys were returned that might be met again.
//
// Why: a key that moves from a visited member to one that is not would be returned twice, and one that moves
// the other way never. Promise: whoever follows the cursors to 0 gets every key that was there all the time,
// and none twice because it moved. (What a member itself repeats while it rehashes, it may repeat here.)
//
// How: an *era* is a time in which no key changes its mind: a topology without a resize, or one resize in one
// direction. In an era a key is either *certain*, at one member all the time, or moving. A visit of a member
// is recorded with the eras it was made in: a key that is certain there in all of them was returned then, if
// it was there. Of keys that were moving, and of all of a visit in whose midst another era began, a 64-bit
// hash is kept. When an era began that could have moved a key behind the scan's back, everything is visited
// once more (the next pass), but for members that were visited when all was settled as it still is.
//
// A lost answer may be asked for again with the same cursor: what an answer returned is taken as returned
// only when the next cursor comes. Thread-safe: workers share scans. Bounds: kMaxScans, kMaxPlaces, kMaxEras,
// kMaxHashes of one scan and kMaxHashesOfAll; beyond the bounds of hashes and eras keys may be returned
// again, never missed. Cost: a hash and a look-up a key.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ringshift/snapshot.h"

namespace ringshift::proxy {

// Where a scan is. As a cursor: (member's cursor << 20) | (name << 12) | (odd or even pass << 11) | place.
struct ScanPosition {
  static constexpr unsigned kPlaceBits = 11, kNameBits = 8;
  static constexpr std::uint64_t kMaxMemberCursor = (std::uint64_t{1} << 44) - 1;
  std::uint64_t member_cursor = 0;
  std::uint32_t name = 0;  // 1..255: whose state it is.
  std::uint32_t pass = 0;
  std::uint32_t place = 0;  // In the scan's list of members.
  [[nodiscard]] std::uint64_t cursor() const noexcept {
    return (member_cursor << 20U) | (std::uint64_t{name} << 12U) | (std::uint64_t{pass & 1U} << 11U) | place;
  }
  [[nodiscard]] static ScanPosition of(std::uint64_t cursor) noexcept {
    return {cursor >> 20U, static_cast<std::uint32_t>(cursor >> 12U) & 255U,
            static_cast<std::uint32_t>(cursor >> 11U) & 1U, static_cast<std::uint32_t>(cursor) & 2047U};
  }
};

// Hashes of keys: a set without removal. O(1), 16 bytes each.
class HashSet {
 public:
  [[nodiscard]] bool contains(std::uint64_t hash) const noexcept;
  void insert(std::uint64_t hash);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept;
  template <typename Visit>
  void each(Visit visit) const {
    for (const std::uint64_t hash : slots_) {
      if (hash != 0) visit(hash);
    }
  }

 private:
  [[nodiscard]] std::size_t find(std::uint64_t hash) const noexcept;
  std::vector<std::uint64_t> slots_;  // A power of two, at most half full; 0 is free.
  std::size_t size_ = 0;
};

class Scan {
 public:
  static constexpr std::size_t kMaxPlaces = std::size_t{1} << ScanPosition::kPlaceBits;
  static constexpr std::size_t kMaxEras = 32;
  static constexpr std::size_t kMaxHashes = 1U << 20;
  static constexpr std::size_t kMaxHashesOfAll = 8U << 20;
  using Views = std::span<const std::shared_ptr<const topology::Snapshot>>;  // By cluster.

  struct Target {
    std::size_t cluster = 0;
    topology::MemberIndex member = 0;
  };

  Scan(std::uint32_t name, std::atomic<std::size_t>& hashes_of_all);
  ~Scan();

  // The client asks from `cursor` (not 0). False when that is neither what the last answer said nor what was
  // asked then: it is another scan's.
  [[nodiscard]] bool resume(std::uint64_t cursor);
  // A new state that goes on from a cursor of one that is lost, or begins (0).
  void adopt(std::uint64_t cursor);

  // Where `cursor` is: ScanPosition::of(), with the whole number of the pass and our name.
  [[nodiscard]] ScanPosition position_of(std::uint64_t cursor) const;
  // REQUIRES of the rest: not more than kMaxPlaces.
  [[nodiscard]] std::size_t places(Views views) const;

  // The member that is asked next, from `position`, which is moved on over members that have left and to the
  // next pass; nullopt when the scan is over. Notes the era in which the command is about to be sent.
  // REQUIRES: `views` is what the worker routes by until the command is sent.
  [[nodiscard]] std::optional<Target> next(ScanPosition& position, Views views);

  // Of the keys that the member at `position` gave, those to return stay. `member_cursor`: what it said; with
  // 0 the visit is over.
  void take(const ScanPosition& position, std::uint64_t member_cursor, std::vector<std::string>& keys);
  // The cursor that goes with the answer, when the scan is to go on at `position`; 0 at the end.
  [[nodiscard]] std::uint64_t answer(ScanPosition position, Views views);

  [[nodiscard]] bool over() const;
  [[nodiscard]] std::uint32_t name() const noexcept { return name_; }

 private:
  struct Place {
    std::size_t cluster;
    std::string id;
    std::vector<std::uint32_t> visits;  // Whole ones: the eras of each, as bits.
  };
  struct Era {
    std::string name;
    bool resizes = false;
    std::shared_ptr<const topology::Snapshot> snapshot;  // The first that was seen of it.
    std::vector<std::uint32_t> place_of;                 // By its members' index.
  };
  struct Cluster {
    std::vector<Era> eras;
    std::uint32_t now = 0;
    std::shared_ptr<const topology::Snapshot> seen;
  };
  struct Pending {
    std::uint64_t hash;
    bool moving;
  };

  void commit();
  void add_members(Views views);
  void observe(std::size_t cluster, const std::shared_ptr<const topology::Snapshot>& snapshot);
  void start_eras_anew(Cluster& cluster);
  [[nodiscard]] bool settled_since(const Place& place) const;
  [[nodiscard]] static std::uint32_t certain_place(const Era& era, std::string_view key);
  [[nodiscard]] bool covered(std::span<const std::uint32_t> certain) const;
  [[nodiscard]] bool advance(ScanPosition& position, Views views);
  void keep(HashSet& set, std::uint64_t hash);
  void drop(HashSet& set);
  void keep_all_of_this_visit();
  void end_visit(std::uint32_t place);

  const std::uint32_t name_;
  std::atomic<std::size_t>& hashes_of_all_;
  mutable std::mutex mutex_;
  std::vector<Place> places_;
  std::unordered_map<std::string, std::uint32_t> place_of_id_;  // "<cluster>/<id>".
  std::vector<Cluster> clusters_;
  std::uint32_t pass_ = 0;
  bool once_more_ = false;  // Something may have moved behind this pass.
  bool passed_on_ = false;  // The next pass was begun since the client asked.

  // Of the visit under way.
  std::uint32_t visit_place_ = 0;
  std::uint32_t visit_eras_ = 0;
  bool visit_is_known_ = true;
  HashSet this_visit_;
  HashSet moving_;

  std::optional<std::uint64_t> asked_, answered_;
  std::uint32_t answered_pass_ = 0;
  std::vector<Pending> pending_;
  std::optional<std::uint32_t> pending_end_;  // The place whose visit the last answer ended.
};

// The scans of one proxy. Thread-safe.
class ScanTable {
 public:
  static constexpr std::size_t kMaxScans = 255;  // The one used least recently is replaced.
  static constexpr std::chrono::minutes kForgotten{10};

  // The scan that goes on at `cursor`; a new one for 0, and for one whose state is lost.
  [[nodiscard]] std::shared_ptr<Scan> find(std::uint64_t cursor, std::chrono::steady_clock::time_point now);

 private:
  struct Entry {
    std::shared_ptr<Scan> scan;
    std::chrono::steady_clock::time_point used;
  };
  std::mutex mutex_;
  std::atomic<std::size_t> hashes_{0};
  std::array<Entry, kMaxScans> entries_;  // By name - 1.
};

}  // namespace ringshift::proxy
