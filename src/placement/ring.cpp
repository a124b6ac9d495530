#include "placement/ring.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "hashing/xxh3.h"

namespace ringshift::placement {
namespace {

constexpr std::size_t kBucketsPerPoint = 4;

// The bytes that are hashed for a point: the id, a zero byte, and room for the number.
std::string point_name(std::string_view id) {
  std::string name(id);
  name.append(1 + sizeof(std::uint32_t), '\0');
  return name;
}

void set_number(std::string& name, std::uint32_t i) noexcept {
  for (std::size_t byte = 0; byte < sizeof i; ++byte) {
    name[name.size() - sizeof i + byte] = static_cast<char>((i >> (8 * byte)) & 0xff);
  }
}

}  // namespace

std::uint64_t Ring::point_count(double weight, std::uint32_t points_per_weight) noexcept {
  const double count = std::round(static_cast<double>(points_per_weight) * weight);
  return count >= 1 ? static_cast<std::uint64_t>(count) : 0;
}

std::uint64_t Ring::point_hash(std::string_view id, std::uint32_t i, hashing::Hash64 hash) {
  std::string name = point_name(id);
  set_number(name, i);
  return hashing::hash64(hash, name);
}

Ring::Ring(std::span<const Member> members, std::uint32_t points_per_weight, hashing::Hash64 hash) {
  std::uint64_t total = 0;
  for (const Member& member : members) total += point_count(member.weight, points_per_weight);
  // During the build a point's `member` is a position in `members`, whose ids break ties.
  std::vector<Point> unsorted;
  unsorted.reserve(total);
  for (std::size_t position = 0; position < members.size(); ++position) {
    std::string name = point_name(members[position].id);
    const auto count = static_cast<std::uint32_t>(point_count(members[position].weight, points_per_weight));
    for (std::uint32_t i = 0; i < count; ++i) {
      set_number(name, i);
      unsorted.push_back({hashing::hash64(hash, name), static_cast<MemberIndex>(position)});
    }
  }
  place(std::move(unsorted), members);
  index_buckets();
}

Ring::Ring(std::vector<Point> points) {
  MemberIndex last = 0;
  for (const Point& point : points) last = std::max(last, point.member);
  std::vector<Member> anonymous;  // place() breaks ties by id, and there are none.
  for (MemberIndex index = 0; index <= last; ++index) anonymous.push_back({{}, 1.0, index});
  place(std::move(points), anonymous);
  index_buckets();
}

// Hashes are evenly spread, so one counting pass over the top bits leaves about a quarter of a point a
// bucket, and what is left to sort is next to nothing. buckets_ is used to count: after it, entry b is where
// bucket b ends.
void Ring::place(std::vector<Point> unsorted, std::span<const Member> members) {
  const std::size_t count = unsorted.size();
  const std::size_t buckets = std::bit_ceil(std::max<std::size_t>(2, count * kBucketsPerPoint));
  shift_ = 64 - std::countr_zero(buckets);
  buckets_.assign(buckets, 0);
  points_.resize(count + 1);
  for (const Point& point : unsorted) ++buckets_[point.hash >> shift_];
  std::uint32_t begin = 0;
  for (std::uint32_t& bucket : buckets_) {
    const std::uint32_t size = bucket;
    bucket = begin;
    begin += size;
  }
  for (const Point& point : unsorted) points_[buckets_[point.hash >> shift_]++] = point;

  const auto before = [&](const Point& a, const Point& b) {
    return a.hash != b.hash ? a.hash < b.hash : members[a.member].id < members[b.member].id;
  };
  begin = 0;
  for (const std::uint32_t end : buckets_) {
    if (end - begin > 1) std::sort(points_.begin() + begin, points_.begin() + end, before);
    begin = end;
  }
  for (std::size_t i = 0; i < count; ++i) points_[i].member = members[points_[i].member].index;
  points_[count] = {std::numeric_limits<std::uint64_t>::max(), count == 0 ? kNoMember : points_[0].member};
}

void Ring::index_buckets() {
  std::uint32_t begin = 0;
  for (std::uint32_t& bucket : buckets_) {
    const std::uint32_t end = bucket;
    // An empty ring's only "owner" has the top bit set, and is reached as a point.
    bucket = end == begin && size() != 0 ? points_[begin].member : kIndirect | begin;
    begin = end;
  }
}

// Three passes over a block, each free of branches that depend on the one before: ask for the index entries,
// then for the points that some of them name, then answer.
void Ring::owners(std::span<const std::uint64_t> hashes, std::span<MemberIndex> owners) const noexcept {
  constexpr std::size_t kBlock = 32;
  for (std::size_t begin = 0; begin < hashes.size(); begin += kBlock) {
    const auto block = hashes.subspan(begin, std::min(kBlock, hashes.size() - begin));
    for (const std::uint64_t hash : block) __builtin_prefetch(&buckets_[hash >> shift_]);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::uint32_t entry = buckets_[block[i] >> shift_];
      owners[begin + i] = entry;
      __builtin_prefetch(&points_[entry < kIndirect ? 0 : entry & ~kIndirect]);
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::uint32_t entry = owners[begin + i];
      if (entry < kIndirect) continue;
      const Point* point = points_.data() + (entry & ~kIndirect);
      while (point->hash < block[i]) ++point;
      owners[begin + i] = point->member;
    }
  }
}

std::size_t Ring::first_point(std::uint64_t hash) const noexcept {
  const auto real = points();
  return static_cast<std::size_t>(std::ranges::lower_bound(real, hash, {}, &Point::hash) - real.begin());
}

}  // namespace ringshift::placement
