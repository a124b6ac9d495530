#include "placement/peers/peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace ringshift::placement::peers {
namespace {

// From `first` on over all of `items`, wrapping.
template <class Items, class MemberOf>
void walk_from(const Items& items, std::size_t first, const std::function<bool(MemberIndex)>& visit,
               MemberOf member_of) {
  const std::size_t size = std::size(items);
  for (std::size_t i = 0; i < size; ++i) {
    if (visit(member_of(items[(first + i) % size]))) return;
  }
}

template <class Points>
std::vector<Arc> arcs_of(const Points& points, std::uint64_t last) {
  std::vector<Arc> arcs;
  if (std::empty(points)) return arcs;
  for (const auto& point : points) {
    // Only the first of points that collide owns anything.
    if (arcs.empty() || arcs.back().end != point.hash) arcs.push_back({point.hash, point.member});
  }
  if (arcs.back().end != last) arcs.push_back({last, points[0].member});
  return arcs;
}

}  // namespace

void RingPeer::walk(std::uint64_t hash, const std::function<bool(MemberIndex)>& visit) const {
  walk_from(ring_.points(), ring_.first_point(static_cast<std::uint32_t>(hash)), visit,
            [](const Point32& point) { return point.member; });
}

std::vector<Arc> RingPeer::arcs() const {
  constexpr int kLeastBits = 31;  // With fewer, most points are beyond every hash.
  if (key_hash().bits() < kLeastBits) return {};
  return arcs_of(ring_.points(), (std::uint64_t{1} << key_hash().bits()) - 1);
}

std::string RingPeer::explain(std::uint64_t hash) const {
  const std::size_t at = ring_.first_point(static_cast<std::uint32_t>(hash));
  if (ring_.points().empty()) return "the ring has no point";
  return fmt::format("point {:08x}, number {} of {}", ring_.points()[at].hash, at, ring_.points().size());
}

WideRingPeer::WideRingPeer(KeyHash hash, std::vector<Point> points)
    : Peer(std::move(hash)), points_(std::move(points)) {
  std::ranges::stable_sort(points_, {}, &Point::hash);
}

std::size_t WideRingPeer::first_point(std::uint64_t hash) const noexcept {
  const auto found = std::ranges::lower_bound(points_, hash, {}, &Point::hash);
  return found == points_.end() ? 0 : static_cast<std::size_t>(found - points_.begin());
}

MemberIndex WideRingPeer::owner_of(std::uint64_t hash) const noexcept {
  return points_.empty() ? kNoMember : points_[first_point(hash)].member;
}

void WideRingPeer::walk(std::uint64_t hash, const std::function<bool(MemberIndex)>& visit) const {
  walk_from(points_, first_point(hash), visit, [](const Point& point) { return point.member; });
}

std::vector<Arc> WideRingPeer::arcs() const {
  return arcs_of(points_, std::numeric_limits<std::uint64_t>::max());
}

std::string WideRingPeer::explain(std::uint64_t hash) const {
  if (points_.empty()) return "the ring has no point";
  const std::size_t at = first_point(hash);
  return fmt::format("point {:016x}, number {} of {}", points_[at].hash, at, points_.size());
}

void TablePeer::walk(std::uint64_t hash, const std::function<bool(MemberIndex)>& visit) const {
  if (table_.empty()) return;
  walk_from(table_, hash % table_.size(), visit, [](MemberIndex member) { return member; });
}

std::string TablePeer::explain(std::uint64_t hash) const {
  if (table_.empty()) return "the table is empty";
  return fmt::format("entry {} of {}", hash % table_.size(), table_.size());
}

}  // namespace ringshift::placement::peers
