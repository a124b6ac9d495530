#include "placement/ring.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "hashing/xxh3_inline.h"

namespace ringshift::placement {
namespace {

// The points of a member by number. A point's name (the id, a zero byte, the number) that was written a
// moment ago cannot be read in wider pieces without a stall, so a block of names is written before any is
// hashed.
class PointHashes {
 public:
  explicit PointHashes(hashing::Hash64 hash) : hash_(hash) {}

  // visit(hash) for points 0..count-1 of the member called `id`.
  template <class Visit>
  void of(std::string_view id, std::uint32_t count, Visit visit) {
    const std::size_t size = id.size() + 1 + sizeof(std::uint32_t);
    names_.assign(size * kBlock, '\0');
    for (std::size_t name = 0; name < kBlock; ++name) id.copy(names_.data() + name * size, id.size());
    for (std::uint32_t begin = 0; begin < count; begin += kBlock) {
      const std::uint32_t block = std::min(kBlock, count - begin);
      for (std::uint32_t i = 0; i < block; ++i) set_number(names_.data() + (i + 1) * size, begin + i);
      for (std::uint32_t i = 0; i < block; ++i) {
        const std::string_view name(names_.data() + i * size, size);
        visit(hash_ == hashing::Hash64::xxh3 ? hashing::xxh3_inline(name) : hashing::hash64(hash_, name));
      }
    }
  }

 private:
  static constexpr std::uint32_t kBlock = 64;

  static void set_number(char* end, std::uint32_t i) noexcept {
    if constexpr (std::endian::native == std::endian::big) i = __builtin_bswap32(i);
    std::memcpy(end - sizeof i, &i, sizeof i);
  }

  hashing::Hash64 hash_;
  std::string names_;
};

}  // namespace

std::uint64_t Ring::point_count(double weight, std::uint32_t points_per_weight) noexcept {
  const double count = std::round(static_cast<double>(points_per_weight) * weight);
  return count >= 1 ? static_cast<std::uint64_t>(count) : 0;
}

std::uint64_t Ring::point_hash(std::string_view id, std::uint32_t i, hashing::Hash64 hash) {
  std::string name(id);
  name += '\0';
  for (std::size_t byte = 0; byte < sizeof i; ++byte) name += static_cast<char>((i >> (8 * byte)) & 0xff);
  return hashing::hash64(hash, name);
}

template <class Generate>
void Ring::sort(std::size_t count, Generate generate, std::span<const Member> members) {
  // Two counting passes over the top bits: the first cuts the circle into parts that fit the nearest cache,
  // the second sorts within a part, and leaves next to nothing to an insertion sort. (One pass over as many
  // cells as points misses the cache for each point, twice.)
  constexpr std::size_t kPartPoints = 128, kParts = 4096, kCells = 256, kCrowd = kPartPoints * 8;
  const std::size_t parts = std::bit_ceil(std::clamp<std::size_t>(count / kPartPoints, 2, kParts));
  const int part_shift = 64 - std::countr_zero(parts), cell_shift = part_shift - 8;
  std::vector<std::uint32_t> ends(parts + 1);
  generate([&](std::uint64_t hash, MemberIndex) { ++ends[(hash >> part_shift) + 1]; });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<std::uint32_t> next(ends.begin(), ends.end() - 1);
  points_.reserve(count + 1);  // With the artificial one.
  points_.resize(count);
  generate([&](std::uint64_t hash, MemberIndex position) {
    points_[next[hash >> part_shift]++] = {hash, position};
  });

  // Until here a point's `member` is a position in `members`, whose ids break ties.
  const auto before = [&](const Point& a, const Point& b) {
    return a.hash != b.hash ? a.hash < b.hash : members[a.member].id < members[b.member].id;
  };
  std::array<Point, kCrowd> copy;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::span<Point> to(points_.data() + ends[part], ends[part + 1] - ends[part]);
    if (to.size() > kCrowd) {  // Larger than usual: tokens by hand, or a huge ring.
      std::sort(to.begin(), to.end(), before);
    } else {
      const std::span<const Point> from(copy.data(), to.size());
      std::copy(to.begin(), to.end(), copy.begin());
      std::array<std::uint16_t, kCells + 1> cells{};
      for (const Point& point : from) ++cells[(point.hash >> cell_shift & (kCells - 1)) + 1];
      std::partial_sum(cells.begin(), cells.end(), cells.begin());
      for (const Point& point : from) to[cells[point.hash >> cell_shift & (kCells - 1)]++] = point;
      for (std::size_t i = 1; i < to.size(); ++i) {
        const Point point = to[i];
        std::size_t at = i;
        for (; at > 0 && before(point, to[at - 1]); --at) to[at] = to[at - 1];
        to[at] = point;
      }
    }
    for (Point& point : to) point.member = members[point.member].index;
  }
  finish();
}

Ring::Ring(std::span<const Member> members, std::uint32_t points_per_weight, hashing::Hash64 hash) {
  std::uint64_t total = 0;
  for (const Member& member : members) total += point_count(member.weight, points_per_weight);
  PointHashes hashes(hash);
  const auto generate = [&](auto visit) {
    for (std::size_t position = 0; position < members.size(); ++position) {
      const Member& member = members[position];
      const auto count = static_cast<std::uint32_t>(point_count(member.weight, points_per_weight));
      hashes.of(member.id, count,
                [&](std::uint64_t point) { visit(point, static_cast<MemberIndex>(position)); });
    }
  };
  sort(total, generate, members);
}

Ring::Ring(std::vector<Point> points) {
  MemberIndex last = 0;
  for (const Point& point : points) last = std::max(last, point.member);
  std::vector<Member> anonymous;  // Ids break ties, and there are none.
  for (MemberIndex index = 0; index <= last; ++index) anonymous.push_back({{}, 1.0, index});
  const auto generate = [&](auto visit) {
    for (const Point& point : points) visit(point.hash, point.member);
  };
  sort(points.size(), generate, anonymous);
}

void Ring::finish() {
  const std::size_t count = points_.size();
  points_.push_back({std::numeric_limits<std::uint64_t>::max(), count == 0 ? kNoMember : points_[0].member});
  line_count_ = count / kPointsPerLine + 1;
  lines_.resize(line_count_);
  const Point* point = points_.data();
  const Point* const end = point + count;
  for (std::size_t number = 0; number < line_count_; ++number) {
    Line& line = lines_[number];
    line.ends.fill(0xffff);
    const Point* const begin = point;
    while (point != end && place(point->hash).line == number) ++point;
    const auto size = static_cast<std::size_t>(point - begin);
    if (size <= kLinePoints && count > 0) {
      for (std::size_t i = 0; i < size; ++i) {
        line.ends[i] = place(begin[i].hash).fragment;
        line.owners[i] = static_cast<std::uint16_t>(begin[i].member);
      }
      line.owners[size] = static_cast<std::uint16_t>(point->member);
      continue;
    }
    line.owners.fill(kSearch);
    const std::array<std::uint32_t, 2> range{static_cast<std::uint32_t>(begin - points_.data()),
                                             static_cast<std::uint32_t>(point - points_.data())};
    std::memcpy(line.ends.data(), range.data(), sizeof range);
    line.ends.back() = 0xffff;
  }
}

MemberIndex Ring::search(std::uint64_t hash) const noexcept {
  const Line& line = lines_[place(hash).line];
  std::array<std::uint32_t, 2> range{0, static_cast<std::uint32_t>(size())};
  if (line.owners[0] == kSearch) std::memcpy(range.data(), line.ends.data(), sizeof range);
  const auto* begin = points_.data() + range[0];
  const auto* end = points_.data() + range[1];
  return std::lower_bound(begin, end, hash,
                          [](const Point& point, std::uint64_t h) { return point.hash < h; })
      ->member;  // At the latest the artificial point's.
}

std::size_t Ring::bytes() const noexcept {
  return points_.size() * sizeof(Point) + lines_.size() * sizeof(Line);
}

// Two passes over a block: ask for all its lines, unless a near cache holds the index, then answer.
void Ring::owners(std::span<const std::uint64_t> hashes, std::span<MemberIndex> owners) const noexcept {
  constexpr std::size_t kBlock = 64, kNearLines = 4096;  // 256 KiB.
  for (std::size_t begin = 0; begin < hashes.size(); begin += kBlock) {
    const std::size_t end = std::min(hashes.size(), begin + kBlock);
    for (std::size_t i = begin; i < end && line_count_ > kNearLines; ++i)
      __builtin_prefetch(&lines_[place(hashes[i]).line]);
    for (std::size_t i = begin; i < end; ++i) owners[i] = owner(hashes[i]);
  }
}

std::size_t Ring::first_point(std::uint64_t hash) const noexcept {
  const auto real = points();
  return static_cast<std::size_t>(std::ranges::lower_bound(real, hash, {}, &Point::hash) - real.begin());
}

}  // namespace ringshift::placement
