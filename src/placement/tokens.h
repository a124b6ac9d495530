// Token placement: a circle of points that the spec lists, member by member, as Cassandra's operators do
// (`initial_token`): a key belongs to the first token at or after its hash, wrapping.
//
// Tokens are 0..2^64-1. Cassandra's Murmur3Partitioner counts from -2^63: its token t is t + 2^63 here (and
// its hash of bytes above 0x7f is its own). Weights do not matter: the tokens say it all. Tokens are unique
// (validated), so there are no ties.
//
// Behaves badly when few tokens are placed without care: shares are as uneven as their gaps, and a lost
// member's keys fall to its neighbours only. Threads: immutable. Cost: the ring's.
#pragma once
#include <cstdint>
#include <utility>

#include "placement/ring.h"

namespace ringshift::placement {

class Tokens {
 public:
  // REQUIRES: the points' hashes are unique; their members are what owner() answers.
  explicit Tokens(std::vector<Ring::Point> tokens) : ring_(std::move(tokens)) {}

  [[nodiscard]] MemberIndex owner(std::uint64_t hash) const noexcept { return ring_.owner(hash); }
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    ring_.walk(hash, visit);
  }
  [[nodiscard]] const Ring& ring() const noexcept { return ring_; }

 private:
  Ring ring_;
};

}  // namespace ringshift::placement
