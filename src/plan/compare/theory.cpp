#include "plan/compare/theory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace ringshift::plan::compare {
namespace {

using placement::MemberIndex;
using topology::Member;

double total_weight(const std::vector<Member>& members) {
  return std::accumulate(members.begin(), members.end(), 0.0,
                         [](double sum, const Member& member) { return sum + member.weight; });
}

// The mean over the members of each one's relative variance.
double ring_variance(const std::vector<double>& points) {
  const double all = std::accumulate(points.begin(), points.end(), 0.0);
  double sum = 0;
  for (const double own : points) {
    if (own > 0) sum += (all - own) / (own * (all + 1));
  }
  return sum / static_cast<double>(points.size());
}

template <class Points>
std::vector<double> count_points(const Points& points, std::size_t members) {
  std::vector<double> counts(members, 0);
  for (const auto& point : points) counts[point.member] += 1;
  return counts;
}

std::optional<double> table_variance(std::span<const MemberIndex> table, const std::vector<Member>& members) {
  if (table.empty()) return std::nullopt;
  std::vector<double> counts(members.size(), 0);
  for (const MemberIndex owner : table) counts[owner] += 1;
  return std::pow(balance_of(counts, members).sd, 2);
}

std::optional<double> peer_variance(const topology::Spec& spec, const placement::peers::Peer& peer) {
  constexpr int kEnoughBits = 31;
  const std::size_t count = spec.members.size();
  if (const auto* table = dynamic_cast<const placement::peers::TablePeer*>(&peer))
    return table_variance(table->table(), spec.members);
  if (const auto* wide = dynamic_cast<const placement::peers::WideRingPeer*>(&peer))
    return ring_variance(count_points(wide->points(), count));
  const auto* ring = dynamic_cast<const placement::peers::RingPeer*>(&peer);
  if (ring == nullptr || peer.key_hash().bits() < kEnoughBits) return std::nullopt;
  if (spec.placement.algorithm == "haproxy") {  // Its ring is held as twice as many arcs.
    constexpr double kPointsPerWeight = 16;
    std::vector<double> points;
    points.reserve(count);
    for (const Member& member : spec.members) points.push_back(kPointsPerWeight * member.weight);
    return ring_variance(points) / 2;
  }
  const auto ketama_points = spec.placement.options.find("ketama_points");
  if (spec.placement.algorithm == "cache-memcached-fast" &&
      (ketama_points == spec.placement.options.end() || ketama_points->second == "0"))
    return std::nullopt;
  return ring_variance(count_points(ring->ring().points(), count));
}

// Of the shares of the keyspace.
std::optional<double> share_variance(const topology::Spec& spec, const placement::Placement& compiled) {
  const auto& algorithm = compiled.algorithm();
  const std::size_t count = spec.members.size();
  if (const auto* ring = std::get_if<placement::Ring>(&algorithm))
    return ring_variance(count_points(ring->points(), count));
  if (const auto* bounded = std::get_if<placement::BoundedRing>(&algorithm))
    return ring_variance(count_points(bounded->ring().points(), count));
  if (const auto* modulo = std::get_if<placement::Modulo>(&algorithm))
    return table_variance(modulo->residues(), spec.members);
  if (const auto* slots = std::get_if<placement::Slots>(&algorithm))
    return table_variance(slots->table(), spec.members);
  if (const auto* maglev = std::get_if<placement::Maglev>(&algorithm))
    return table_variance(maglev->table(), spec.members);
  if (const auto* partitions = std::get_if<placement::Partitions>(&algorithm))
    return table_variance(partitions->table(), spec.members);
  if (std::holds_alternative<placement::Jump>(algorithm) ||
      std::holds_alternative<placement::Rendezvous>(algorithm) ||
      std::holds_alternative<placement::Memento>(algorithm))
    return 0;
  if (const auto* peer = std::get_if<placement::PeerPlacement>(&algorithm))
    return peer_variance(spec, peer->peer());
  return std::nullopt;
}

// The z below which a standard normal variable lies with probability `p`, by bisection.
double normal_quantile(double p) {
  constexpr double kFar = 10;
  constexpr int kSteps = 60;
  double low = -kFar, high = kFar;
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

Balance balance_of(std::span<const double> loads, const std::vector<Member>& members) {
  const double weights = total_weight(members);
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  double most = 0, least = std::numeric_limits<double>::infinity(), squares = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const double ratio = sum == 0 ? 1 : loads[i] / sum / (members[i].weight / weights);
    most = std::max(most, ratio);
    least = std::min(least, ratio);
    squares += (ratio - 1) * (ratio - 1);
  }
  return {most, least > 0 ? most / least : std::numeric_limits<double>::infinity(),
          std::sqrt(squares / static_cast<double>(loads.size()))};
}

std::optional<double> expected_sd(const topology::Spec& spec, const placement::Placement& compiled,
                                  std::uint64_t keys) {
  const std::optional<double> shares = share_variance(spec, compiled);
  if (!shares) return std::nullopt;
  if (keys == 0) return std::sqrt(*shares);
  const double weights = total_weight(spec.members);
  double chance = 0;
  for (const Member& member : spec.members) {
    const double part = member.weight / weights;
    chance += (1 - part) / (static_cast<double>(keys) * part);
  }
  return std::sqrt(*shares + chance / static_cast<double>(spec.members.size()));
}

double expected_maximum(std::size_t count) {
  constexpr double kAlpha = 0.375;
  if (count < 2) return 0;
  const auto n = static_cast<double>(count);
  return normal_quantile((n - kAlpha) / (n - 2 * kAlpha + 1));
}

Balance expected_balance(double sd, std::size_t members) {
  if (members < 2) return {1, 1, sd};
  const auto n = static_cast<double>(members);
  // Shares sum up to one, so each pair is correlated by -1/(n-1), which spreads the extremes.
  const double reach = sd * expected_maximum(members) * std::sqrt(n / (n - 1));
  return {1 + reach, reach < 1 ? (1 + reach) / (1 - reach) : std::numeric_limits<double>::infinity(), sd};
}

}  // namespace ringshift::plan::compare
