// key -> member: the hash-tag rule, the hash and one of the algorithms, behind one contract.
//
//   owner(key) == owner_of(hash(tag().apply(key)))
//
// Threads: immutable. Cost: one hash and one lookup, no allocation. A new algorithm is one class with
// owner(hash) and walk(hash, visit), one alternative of Algorithm, and its hash in hash().
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "hashing/crc16.h"
#include "hashing/hash_tag.h"
#include "hashing/xxh3.h"
#include "placement/modulo.h"
#include "placement/peers/placement.h"
#include "placement/ring.h"
#include "placement/slots.h"

namespace ringshift::placement {

using Algorithm = std::variant<Ring, Modulo, Slots, PeerPlacement>;

class Placement {
 public:
  Placement(hashing::HashTag tag, Algorithm algorithm) : tag_(tag), algorithm_(std::move(algorithm)) {}

  [[nodiscard]] MemberIndex owner(std::string_view key) const noexcept {
    const std::string_view tagged = tag_.apply(key);
    // Not std::visit: its jump table costs more than the ring's whole lookup.
    if (const auto* ring = std::get_if<Ring>(&algorithm_)) return ring->owner(hashing::xxh3(tagged));
    if (const auto* slots = std::get_if<Slots>(&algorithm_)) return slots->owner(hashing::crc16(tagged));
    if (const auto* peer = std::get_if<PeerPlacement>(&algorithm_)) return peer->owner(peer->hash(tagged));
    return std::get_if<Modulo>(&algorithm_)->owner(hashing::xxh3(tagged));
  }

  // What owner_of() takes: XXH3-64 for ring and modulo, the slot for slots, a peer's own hash.
  [[nodiscard]] std::uint64_t hash(std::string_view tagged) const noexcept {
    if (std::holds_alternative<Slots>(algorithm_)) return hashing::crc16(tagged) & (kSlotCount - 1);
    if (const auto* peer = std::get_if<PeerPlacement>(&algorithm_)) return peer->hash(tagged);
    return hashing::xxh3(tagged);
  }
  [[nodiscard]] MemberIndex owner_of(std::uint64_t hash) const noexcept {
    return std::visit([&](const auto& algorithm) { return algorithm.owner(hash); }, algorithm_);
  }
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    std::visit([&](const auto& algorithm) { algorithm.walk(hash, visit); }, algorithm_);
  }

  [[nodiscard]] const hashing::HashTag& tag() const noexcept { return tag_; }
  [[nodiscard]] const Algorithm& algorithm() const noexcept { return algorithm_; }

 private:
  hashing::HashTag tag_;
  Algorithm algorithm_;
};

}  // namespace ringshift::placement
