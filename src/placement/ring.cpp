#include "placement/ring.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
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
  unsorted.reserve(total + 1);  // It becomes points_, with the artificial one.
  for (std::size_t position = 0; position < members.size(); ++position) {
    std::string name = point_name(members[position].id);
    const auto count = static_cast<std::uint32_t>(point_count(members[position].weight, points_per_weight));
    for (std::uint32_t i = 0; i < count; ++i) {
      set_number(name, i);
      unsorted.push_back({hashing::hash64(hash, name), static_cast<MemberIndex>(position)});
    }
  }
  place(std::move(unsorted), members);
}

Ring::Ring(std::vector<Point> points) {
  MemberIndex last = 0;
  for (const Point& point : points) last = std::max(last, point.member);
  std::vector<Member> anonymous;  // place() breaks ties by id, and there are none.
  for (MemberIndex index = 0; index <= last; ++index) anonymous.push_back({{}, 1.0, index});
  place(std::move(points), anonymous);
}

// Two counting passes over the top bits: the first cuts the circle into parts that fit the nearest cache, the
// second sorts within a part, and leaves next to nothing to an insertion sort. (One pass over as many buckets
// as points misses the cache for each point, twice.)
void Ring::place(std::vector<Point> unsorted, std::span<const Member> members) {
  constexpr std::size_t kPartPoints = 128, kParts = 4096, kCells = 256;
  const std::size_t parts = std::bit_ceil(std::clamp<std::size_t>(unsorted.size() / kPartPoints, 2, kParts));
  const int part_shift = 64 - std::countr_zero(parts), cell_shift = part_shift - 8;
  std::vector<std::uint32_t> ends(parts + 1);
  for (const Point& point : unsorted) ++ends[(point.hash >> part_shift) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Point> parted(unsorted.size());
  std::vector<std::uint32_t> next(ends.begin(), ends.end() - 1);
  for (const Point& point : unsorted) parted[next[point.hash >> part_shift]++] = point;

  const auto before = [&](const Point& a, const Point& b) {
    return a.hash != b.hash ? a.hash < b.hash : members[a.member].id < members[b.member].id;
  };
  points_ = std::move(unsorted);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::span<const Point> from(parted.data() + ends[part], ends[part + 1] - ends[part]);
    const std::span<Point> to(points_.data() + ends[part], from.size());
    std::array<std::uint32_t, kCells + 1> cells{};
    for (const Point& point : from) ++cells[(point.hash >> cell_shift & (kCells - 1)) + 1];
    std::partial_sum(cells.begin(), cells.end(), cells.begin());
    const bool crowded = from.size() > kPartPoints * 8;  // Larger than usual: tokens by hand, or a huge ring.
    for (const Point& point : from) to[cells[point.hash >> cell_shift & (kCells - 1)]++] = point;
    if (crowded) {
      std::sort(to.begin(), to.end(), before);
      continue;
    }
    for (std::size_t i = 1; i < to.size(); ++i) {
      const Point point = to[i];
      std::size_t at = i;
      for (; at > 0 && before(point, to[at - 1]); --at) to[at] = to[at - 1];
      to[at] = point;
    }
  }
  for (Point& point : points_) point.member = members[point.member].index;
  finish();
}

void Ring::finish() {
  const std::size_t count = points_.size();
  const MemberIndex first = count == 0 ? kNoMember : points_.front().member;
  points_.push_back({std::numeric_limits<std::uint64_t>::max(), first});
  const std::size_t buckets = std::bit_ceil(std::max<std::size_t>(kGroup, count * kBucketsPerPoint));
  shift_ = 64 - std::countr_zero(buckets);
  buckets_.resize(buckets);
  groups_.resize(buckets / kGroup);
  // An empty ring's only "owner" has no place in an entry, and is reached as a point.
  const std::uint16_t rest = count == 0 ? kIndirect : static_cast<std::uint16_t>(first);
  std::size_t filled = 0, grouped = 0;  // Buckets and groups that have their entries.
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bucket = points_[i].hash >> shift_;
    if (filled > bucket) continue;  // Not the first point of its bucket.
    while (filled < bucket) buckets_[filled++] = static_cast<std::uint16_t>(points_[i].member);
    while (grouped <= bucket / kGroup) groups_[grouped++] = static_cast<std::uint32_t>(i);
    const std::size_t distance = std::min<std::size_t>(i - groups_[bucket / kGroup], kIndirect - 1);
    buckets_[filled++] = static_cast<std::uint16_t>(kIndirect + distance);
  }
  std::fill(buckets_.begin() + static_cast<std::ptrdiff_t>(filled), buckets_.end(), rest);
  std::fill(groups_.begin() + static_cast<std::ptrdiff_t>(grouped), groups_.end(),
            static_cast<std::uint32_t>(count));
}

std::size_t Ring::bytes() const noexcept {
  return points_.size() * sizeof(Point) + buckets_.size() * sizeof(std::uint16_t) +
         groups_.size() * sizeof(std::uint32_t);
}

// Three passes over a block, each free of branches that depend on the one before: ask for the index entries,
// then for the points that some of them name, then answer.
void Ring::owners(std::span<const std::uint64_t> hashes, std::span<MemberIndex> owners) const noexcept {
  constexpr std::size_t kBlock = 32;
  constexpr MemberIndex kPoint = MemberIndex{1} << 31;  // Marks a position in points_ among owners.
  for (std::size_t begin = 0; begin < hashes.size(); begin += kBlock) {
    const auto block = hashes.subspan(begin, std::min(kBlock, hashes.size() - begin));
    const auto answers = owners.subspan(begin, block.size());
    for (const std::uint64_t hash : block) __builtin_prefetch(&buckets_[hash >> shift_]);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::uint64_t bucket = block[i] >> shift_;
      answers[i] = buckets_[bucket];
      if (answers[i] < kIndirect) continue;
      answers[i] = groups_[bucket / kGroup] + (answers[i] - kIndirect);
      __builtin_prefetch(&points_[answers[i]]);
      answers[i] |= kPoint;
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (answers[i] < kPoint) continue;
      const Point* point = points_.data() + (answers[i] & ~kPoint);
      while (point->hash < block[i]) ++point;
      answers[i] = point->member;
    }
  }
}

std::size_t Ring::first_point(std::uint64_t hash) const noexcept {
  const auto real = points();
  return static_cast<std::size_t>(std::ranges::lower_bound(real, hash, {}, &Point::hash) - real.begin());
}

}  // namespace ringshift::placement
