#include "placement/peers/ring32.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace ringshift::placement::peers {
namespace {

constexpr std::size_t kBucketsPerPoint = 2;
constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void sort_points(Points32& points) { std::ranges::stable_sort(points, {}, &Point32::hash); }

void keep_first(Points32& points) {
  const auto rest = std::ranges::unique(points, {}, &Point32::hash);
  points.erase(rest.begin(), rest.end());
}

void keep_last(Points32& points) {
  std::size_t kept = 0;
  for (const Point32& point : points) {
    if (kept != 0 && points[kept - 1].hash == point.hash) --kept;
    points[kept++] = point;
  }
  points.resize(kept);
}

Ring32::Ring32(Points32 points) : points_(std::move(points)) {
  const std::size_t count = points_.size();
  points_.push_back({kLast, count == 0 ? kNoMember : points_.front().member});
  const std::size_t buckets = std::bit_ceil(std::max<std::size_t>(2, count * kBucketsPerPoint));
  shift_ = 32 - std::countr_zero(buckets);
  buckets_.resize(buckets);
  std::uint32_t at = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const bool direct = count != 0 && (at == count || points_[at].hash >> shift_ != bucket);
    buckets_[bucket] = direct ? points_[at].member : kIndirect | at;
    while (at < count && points_[at].hash >> shift_ == bucket) ++at;
  }
}

std::size_t Ring32::first_point(std::uint32_t hash) const noexcept {
  const auto real = points();
  const auto found = std::ranges::lower_bound(real, hash, {}, &Point32::hash);
  return found == real.end() ? 0 : static_cast<std::size_t>(found - real.begin());
}

// An arc [p, q) of the point p ends, in the common ring, by a point at q - 1.
Points32 from_floor(const Points32& sorted) {
  Points32 unique = sorted, out;
  keep_last(unique);
  for (std::size_t i = 0; i < unique.size(); ++i) {
    const Point32& next = unique[(i + 1) % unique.size()];
    out.push_back({next.hash - 1, unique[i].member});
  }
  sort_points(out);
  return out;
}

// Between two neighbours p and q, at distance d, p takes up to p + floor(d / 2) and q what is left. Of points
// that collide the first is met from below and the last at the point itself and above.
Points32 from_nearest(const Points32& sorted) {
  Points32 first = sorted, last = sorted, out;
  keep_first(first);
  keep_last(last);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const std::size_t next = (i + 1) % first.size();
    const std::uint64_t distance =
        first.size() == 1 ? std::uint64_t{1} << 32 : std::uint32_t{first[next].hash - first[i].hash};
    const auto half = static_cast<std::uint32_t>(distance / 2);
    out.push_back({first[i].hash + half, last[i].member});
    if (distance > half + std::uint64_t{1}) out.push_back({first[next].hash - 1, first[next].member});
  }
  sort_points(out);
  return out;
}

}  // namespace ringshift::placement::peers
