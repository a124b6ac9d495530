// Rendezvous placement: every member draws a number for the key, and the best number wins.
//
// Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998; weights as in
// Schindelhauer and Schomaker, "Weighted Distributed Hash Tables", SPAA 2005 (their logarithmic method):
// score = -w / ln(u), u the member's number for the key in (0, 1). A change of members or weights moves keys
// only to or from the member that changed; a removed member's keys spread over the others by weight.
//
//   bits = mix(h(key) ^ XXH3-64(id)), u = (bits >> 11 + 1/2) / 2^53; smaller -ln(u)/w wins (the larger score)
// Ties: larger bits, then smaller id. With equal weights bits alone decide, with no logarithm. The logarithm
// is our own, made of correctly rounded operations, so that all machines agree on the last bit (libm's do
// not).
//
// Behaves badly with many members: a look-up asks each of them. Threads: immutable.
// Cost: O(n), about 1 ns a member with equal weights and some 5 with others; 32 bytes a member.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "hashing/xxh3.h"
#include "placement/member.h"

namespace ringshift::placement {

class Rendezvous {
 public:
  explicit Rendezvous(std::span<const Member> members);

  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept;

  // Calls visit(member) from the best score to the worst, each member once, until it gives true. O(n) a step.
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    Rank last;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const Rank next = best_after(hash, i == 0 ? nullptr : &last);
      if (visit(members_[next.position].index)) return;
      last = next;
    }
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return members_.size() * sizeof(Entry); }

 private:
  struct Entry {
    std::uint64_t hash = 0;  // Of the id.
    double inverse_weight = 1;
    MemberIndex index = kNoMember;
  };
  struct Rank {
    double cost = 0;  // -ln(u)/w; 0 for all with equal weights.
    std::uint64_t bits = 0;
    std::uint32_t position = 0;
    [[nodiscard]] bool before(const Rank& other) const noexcept {
      if (cost != other.cost) return cost < other.cost;
      return bits != other.bits ? bits > other.bits : position < other.position;
    }
  };

  [[nodiscard]] Rank rank(std::uint64_t hash, std::uint32_t position) const noexcept;
  // The best of all, or of those that come after `last`.
  [[nodiscard]] Rank best_after(std::uint64_t hash, const Rank* last) const noexcept;

  std::vector<Entry> members_;  // By id, so that a position breaks ties.
  bool equal_weights_ = true;
};

// ln(x) for 0 < x < 1, to a few units in the last place; the same bits on every IEEE machine.
[[nodiscard]] double exact_log(double x) noexcept;

}  // namespace ringshift::placement
