// What the articles claim of cost: ways to search a ring, their memory, and their hashes.
#include <algorithm>
#include <map>
#include <utility>

#include "hashing/hash64.h"
#include "hashing/peers/crc32.h"
#include "hashing/peers/md5.h"
#include "placement/ring.h"
#include "plan/compare/articles.h"
#include "plan/compare/cost.h"

namespace ringshift::plan::compare {
namespace {

using placement::MemberIndex;
using placement::Ring;
using Points = std::vector<Ring::Point>;
using Batch = std::vector<std::string_view>;

// Of a std::map's node: colour, three links, the pair, and what the allocator adds to it.
constexpr std::size_t kTreeNodeBytes = 4 * sizeof(void*) + sizeof(std::pair<std::uint64_t, MemberIndex>);
constexpr std::size_t kAllocationBytes = sizeof(std::size_t);

MemberIndex by_linear_scan(const Points& points, std::uint64_t hash) {
  for (const Ring::Point& point : points) {
    if (point.hash >= hash) return point.member;
  }
  return points.front().member;
}

MemberIndex by_binary_search(const Points& points, std::uint64_t hash) {
  const auto found = std::ranges::lower_bound(points, hash, {}, &Ring::Point::hash);
  return found == points.end() ? points.front().member : found->member;
}

MemberIndex by_tree(const std::map<std::uint64_t, MemberIndex>& tree, std::uint64_t hash) {
  const auto found = tree.lower_bound(hash);
  return found == tree.end() ? tree.begin()->second : found->second;
}

template <class Owner>
double time_owners(const Batch& keys, Owner owner) {
  return lookup_ns(keys, [&](const Batch& batch) {
    std::uint64_t sum = 0;
    for (const std::string_view key : batch) sum += owner(hashing::xxh3(key));
    return sum;
  });
}

template <class Hash>
HashCost time_hash(std::string name, const Batch& keys, Hash hash) {
  return {std::move(name), lookup_ns(keys, [&](const Batch& batch) {
            std::uint64_t sum = 0;
            for (const std::string_view key : batch) sum += hash(key);
            return sum;
          })};
}

// As the articles write it: byte by byte.
std::uint32_t fnv1a_32(std::string_view key) noexcept {
  std::uint32_t hash = 2166136261;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return hash;
}

}  // namespace

std::vector<LookupCost> lookup_costs(std::size_t members, const KeySet& keys) {
  const auto list = synthetic_members(members);
  std::vector<placement::Member> inputs;
  for (const auto& member : list) inputs.push_back({member.id, 1.0, static_cast<MemberIndex>(inputs.size())});
  const Batch all = timing_keys(keys);
  constexpr std::size_t kSlowKeys = 256;  // A pass by linear scan takes about a millisecond.
  const Batch few(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(kSlowKeys, all.size())));
  std::vector<LookupCost> out;
  for (const std::uint32_t points : {1U, 160U, 1000U}) {
    const Ring ring(inputs, points);
    const Points sorted(ring.points().begin(), ring.points().end());
    std::map<std::uint64_t, MemberIndex> tree;
    for (const Ring::Point& point : sorted) tree.emplace(point.hash, point.member);
    LookupCost& cost = out.emplace_back();
    cost.points = points;
    cost.linear_ns = time_owners(few, [&](std::uint64_t hash) { return by_linear_scan(sorted, hash); });
    cost.binary_ns = time_owners(all, [&](std::uint64_t hash) { return by_binary_search(sorted, hash); });
    cost.map_ns = time_owners(all, [&](std::uint64_t hash) { return by_tree(tree, hash); });
    cost.ours_ns = time_owners(all, [&](std::uint64_t hash) { return ring.owner(hash); });
    cost.array_bytes = sorted.size() * sizeof(Ring::Point);
    cost.map_bytes = sorted.size() * (kTreeNodeBytes + kAllocationBytes);
    cost.ours_bytes = ring.bytes();
  }
  return out;
}

std::vector<HashCost> hash_costs(const KeySet& keys) {
  const Batch batch = timing_keys(keys);
  return {time_hash("md5", batch, [](std::string_view key) { return hashing::peers::md5(key)[0]; }),
          time_hash("crc32", batch, [](std::string_view key) { return hashing::peers::crc32(key); }),
          time_hash("fnv1a", batch, [](std::string_view key) { return fnv1a_32(key); }),
          time_hash("xxh3", batch, [](std::string_view key) { return hashing::xxh3(key); })};
}

}  // namespace ringshift::plan::compare
