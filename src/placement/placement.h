// key -> member: the hash-tag rule, the hash and one of the algorithms, behind one contract.
//
//   owner(key) == owner_of(hash(tag().apply(key)))
//
// Threads: immutable. Cost: one hash and one lookup, no allocation. A new algorithm is one class with
// owner(hash) and walk(hash, visit), one alternative of Algorithm, and its hash in hash().
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "hashing/crc16.h"
#include "hashing/hash64.h"
#include "hashing/hash_tag.h"
#include "hashing/xxh3_inline.h"
#include "placement/bounded_ring.h"
#include "placement/jump.h"
#include "placement/maglev.h"
#include "placement/memento.h"
#include "placement/modulo.h"
#include "placement/multi_probe.h"
#include "placement/partitions.h"
#include "placement/peers/placement.h"
#include "placement/rendezvous.h"
#include "placement/ring.h"
#include "placement/slots.h"
#include "placement/tokens.h"

namespace ringshift::placement {

using Algorithm = std::variant<Ring, Modulo, Slots, Jump, Rendezvous, Maglev, MultiProbe, Memento, Partitions,
                               Tokens, BoundedRing, PeerPlacement>;

class Placement {
 public:
  Placement(hashing::HashTag tag, Algorithm algorithm, hashing::Hash64 hash = hashing::Hash64::xxh3)
      : tag_(tag), hash_(hash), algorithm_(std::move(algorithm)) {}

  [[nodiscard]] MemberIndex owner(std::string_view key) const noexcept {
    const std::string_view tagged = tag_.apply(key);
    // Not std::visit: its jump table costs more than the ring's whole lookup.
    if (const auto* ring = std::get_if<Ring>(&algorithm_)) {
      return ring->owner(own_hash(tagged));
    }
    if (const auto* slots = std::get_if<Slots>(&algorithm_)) return slots->owner(hashing::crc16(tagged));
    if (const auto* peer = std::get_if<PeerPlacement>(&algorithm_)) return peer->owner(peer->hash(tagged));
    return owner_of(hashing::hash64(hash_, tagged));
  }

  // What owner_of() takes: the slot for slots, a peer's own hash, else the placement's 64-bit hash.
  [[nodiscard]] std::uint64_t hash(std::string_view tagged) const noexcept {
    if (std::holds_alternative<Slots>(algorithm_)) return hashing::crc16(tagged) & (kSlotCount - 1);
    if (const auto* peer = std::get_if<PeerPlacement>(&algorithm_)) return peer->hash(tagged);
    return own_hash(tagged);
  }
  [[nodiscard]] MemberIndex owner_of(std::uint64_t hash) const noexcept {
    return std::visit([&](const auto& algorithm) { return algorithm.owner(hash); }, algorithm_);
  }
  // hash() of each key's tagged part, in the algorithm's own loop. REQUIRES: hashes.size() == keys.size().
  void hashes(std::span<const std::string_view> keys, std::span<std::uint64_t> hashes) const noexcept {
    if (hash_ == hashing::Hash64::xxh3 && std::holds_alternative<Ring>(algorithm_)) [[likely]] {
      for (std::size_t i = 0; i < keys.size(); ++i) hashes[i] = hashing::xxh3_inline(tag_.apply(keys[i]));
      return;
    }
    const auto* peer = std::get_if<PeerPlacement>(&algorithm_);
    if (peer != nullptr && !tag_.enabled()) return peer->peer().key_hash().many(keys, hashes);
    for (std::size_t i = 0; i < keys.size(); ++i) hashes[i] = hash(tag_.apply(keys[i]));
  }
  // owner_of() for each hash; on a ring the cache misses of a batch overlap.
  // REQUIRES: owners.size() == hashes.size().
  void owners(std::span<const std::uint64_t> hashes, std::span<MemberIndex> owners) const noexcept {
    if (const auto* ring = std::get_if<Ring>(&algorithm_)) return ring->owners(hashes, owners);
    for (std::size_t i = 0; i < hashes.size(); ++i) owners[i] = owner_of(hashes[i]);
  }
  template <class Visit>
  void walk(std::uint64_t hash, Visit visit) const {
    std::visit([&](const auto& algorithm) { algorithm.walk(hash, visit); }, algorithm_);
  }

  [[nodiscard]] const hashing::HashTag& tag() const noexcept { return tag_; }
  [[nodiscard]] hashing::Hash64 hash_function() const noexcept { return hash_; }  // Not of slots and peers.
  [[nodiscard]] const Algorithm& algorithm() const noexcept { return algorithm_; }

 private:
  [[nodiscard]] std::uint64_t own_hash(std::string_view tagged) const noexcept {
    return hash_ == hashing::Hash64::xxh3 ? hashing::xxh3_inline(tagged) : hashing::hash64(hash_, tagged);
  }

  hashing::HashTag tag_;
  hashing::Hash64 hash_;
  Algorithm algorithm_;
};

}  // namespace ringshift::placement
