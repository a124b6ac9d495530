// A peer's placement: the owner that another program would choose for a key, to the byte.
//
//   owner(key) == owner_of(hash(tagged key))
//
// Threads: immutable. Cost: a virtual call, the peer's hash and a lookup; no allocation. An empty set of
// members owns nothing: kNoMember.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "placement/member.h"
#include "placement/peers/key_hash.h"
#include "placement/peers/ring32.h"

namespace ringshift::placement::peers {

// Everything up to `end` (included) that no arc before it took.
struct Arc {
  std::uint64_t end = 0;
  MemberIndex member = kNoMember;
};

class Peer {
 public:
  explicit Peer(KeyHash hash) : hash_(std::move(hash)) {}
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] std::uint64_t hash(std::string_view tagged) const noexcept { return hash_(tagged); }
  [[nodiscard]] const KeyHash& key_hash() const noexcept { return hash_; }
  [[nodiscard]] virtual MemberIndex owner_of(std::uint64_t hash) const noexcept = 0;
  // Calls visit(member) from the owner on, in the order in which the peer's structure goes on, until it gives
  // true or everything was visited once. A member may be visited several times.
  virtual void walk(std::uint64_t hash, const std::function<bool(MemberIndex)>& visit) const = 0;
  // A ring's arcs over 0..2^bits-1, ascending; empty for what is no ring or whose hash is not spread evenly.
  [[nodiscard]] virtual std::vector<Arc> arcs() const { return {}; }
  // How the owner was found, for people.
  [[nodiscard]] virtual std::string explain(std::uint64_t hash) const = 0;

 private:
  KeyHash hash_;
};

class RingPeer final : public Peer {
 public:
  RingPeer(KeyHash hash, Points32 sorted) : Peer(std::move(hash)), ring_(std::move(sorted)) {}
  [[nodiscard]] MemberIndex owner_of(std::uint64_t hash) const noexcept override {
    return ring_.owner(static_cast<std::uint32_t>(hash));
  }
  void walk(std::uint64_t hash, const std::function<bool(MemberIndex)>& visit) const override;
  [[nodiscard]] std::vector<Arc> arcs() const override;
  [[nodiscard]] std::string explain(std::uint64_t hash) const override;
  [[nodiscard]] const Ring32& ring() const noexcept { return ring_; }

 private:
  Ring32 ring_;
};

// Points of 64 bits; otherwise as RingPeer. Cost: O(log points).
class WideRingPeer final : public Peer {
 public:
  struct Point {
    std::uint64_t hash = 0;
    MemberIndex member = kNoMember;
  };
  WideRingPeer(KeyHash hash, std::vector<Point> points);
  [[nodiscard]] MemberIndex owner_of(std::uint64_t hash) const noexcept override;
  void walk(std::uint64_t hash, const std::function<bool(MemberIndex)>& visit) const override;
  [[nodiscard]] std::vector<Arc> arcs() const override;
  [[nodiscard]] std::string explain(std::uint64_t hash) const override;
  [[nodiscard]] const std::vector<Point>& points() const noexcept { return points_; }

 private:
  [[nodiscard]] std::size_t first_point(std::uint64_t hash) const noexcept;
  std::vector<Point> points_;  // Sorted by hash, then as they were given.
};

// hash % n: table()[r] owns every hash of residue r.
class TablePeer final : public Peer {
 public:
  TablePeer(KeyHash hash, std::vector<MemberIndex> table) : Peer(std::move(hash)), table_(std::move(table)) {}
  [[nodiscard]] MemberIndex owner_of(std::uint64_t hash) const noexcept override {
    return table_.empty() ? kNoMember : table_[hash % table_.size()];
  }
  void walk(std::uint64_t hash, const std::function<bool(MemberIndex)>& visit) const override;
  [[nodiscard]] std::string explain(std::uint64_t hash) const override;
  [[nodiscard]] const std::vector<MemberIndex>& table() const noexcept { return table_; }

 private:
  std::vector<MemberIndex> table_;
};

}  // namespace ringshift::placement::peers
