#include "placement/memento.h"

namespace ringshift::placement {

Memento::Memento(std::span<const MemberIndex> buckets, std::span<const std::uint32_t> removed)
    : buckets_(buckets.begin(), buckets.end()), replacer_(buckets.size(), kWorks) {
  auto working = static_cast<std::uint32_t>(buckets_.size());
  bool shrinking = true;  // While nothing but the tail was removed, the paper shortens the array instead.
  for (const std::uint32_t position : removed) {
    --working;
    if (shrinking && position + 1 == buckets_.size()) {
      buckets_.pop_back();
      replacer_.pop_back();
      continue;
    }
    shrinking = false;
    replacer_[position] = working;
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (replacer_[i] == kWorks) working_.push_back(buckets_[i]);
  }
}

// Algorithm 4 of the paper. A removed bucket's keys are hashed again over the buckets that worked after its
// removal; a bucket of those that was itself removed later is followed to what took its place.
std::uint32_t Memento::bucket(std::uint64_t hash) const noexcept {
  std::uint32_t bucket = jump_bucket(hash, static_cast<std::uint32_t>(buckets_.size()));
  std::uint32_t replacer = replacer_[bucket];
  while (replacer != kWorks) {
    // Twice mixed: neither the key's hash nor the bucket's number alone decides.
    const std::uint64_t again = hashing::mix(hash ^ hashing::mix(std::uint64_t{bucket} + 1));
    bucket = static_cast<std::uint32_t>(again % replacer);
    std::uint32_t next = replacer_[bucket];
    while (next != kWorks && next >= replacer) {
      bucket = next;
      next = replacer_[bucket];
    }
    replacer = next;
  }
  return bucket;
}

}  // namespace ringshift::placement
