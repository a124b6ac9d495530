#include "placement/partitions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "hashing/xxh3.h"

namespace ringshift::placement {
namespace {

// Positions in `members`, by id.
std::vector<std::size_t> by_id(std::span<const Member> members) {
  std::vector<std::size_t> out(members.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::ranges::sort(out, {}, [&](std::size_t i) { return members[i].id; });
  return out;
}

// 0..parts-1 in an order that depends on nothing but `parts`.
std::vector<std::uint32_t> shuffled(std::uint32_t parts) {
  std::vector<std::uint32_t> out(parts);
  std::iota(out.begin(), out.end(), 0U);
  std::ranges::sort(out, {}, [](std::uint32_t part) { return std::pair(hashing::mix(part + 1ULL), part); });
  return out;
}

}  // namespace

std::vector<std::uint32_t> quotas(std::span<const Member> members, std::uint32_t parts,
                                  std::span<const std::uint32_t> holds) {
  // By id throughout: a sum of doubles depends on its order.
  const std::vector<std::size_t> order = by_id(members);
  double total = 0;
  for (const std::size_t i : order) total += members[i].weight;
  std::vector<std::uint32_t> out(members.size());
  std::vector<double> remainders(members.size());
  std::uint32_t given = 0;
  for (const std::size_t i : order) {
    const double fair = members[i].weight / total * parts;
    out[i] = std::min(static_cast<std::uint32_t>(fair), parts - given);
    given += out[i];
    remainders[i] = fair - std::floor(fair);
  }
  // Whoever has the largest remainder gets one more; among (nearly) equal ones, who need not give it away.
  std::vector<std::size_t> waiting = order;
  std::ranges::stable_sort(waiting, [&](std::size_t a, std::size_t b) {
    constexpr double kSame = 1e-9;
    const double difference = std::round((remainders[a] - remainders[b]) / kSame);
    if (difference != 0) return difference > 0;
    const auto more = [&](std::size_t i) { return !holds.empty() && holds[i] > out[i]; };
    return more(a) && !more(b);
  });
  for (std::size_t i = 0; given < parts && !waiting.empty(); i = (i + 1) % waiting.size(), ++given) {
    ++out[waiting[i]];
  }
  return out;
}

std::vector<MemberIndex> deal(std::span<const Member> members, std::uint32_t parts) {
  if (members.empty()) return {};
  const std::vector<std::uint32_t> quota = quotas(members, parts);
  std::vector<MemberIndex> table(parts, kNoMember);
  const std::vector<std::uint32_t> order = shuffled(parts);
  std::size_t next = 0;
  for (const std::size_t i : by_id(members)) {
    for (std::uint32_t n = 0; n < quota[i]; ++n) table[order[next++]] = members[i].index;
  }
  return table;
}

std::vector<MemberIndex> reassign(std::span<const MemberIndex> table, std::span<const Member> members) {
  if (members.empty()) return {};
  const auto parts = static_cast<std::uint32_t>(table.size());
  std::unordered_map<MemberIndex, std::size_t> positions;
  for (std::size_t i = 0; i < members.size(); ++i) positions[members[i].index] = i;
  std::vector<std::uint32_t> holds(members.size());
  for (const MemberIndex owner : table) {
    if (const auto found = positions.find(owner); found != positions.end()) ++holds[found->second];
  }
  const std::vector<std::uint32_t> quota = quotas(members, parts, holds);
  // In a random-looking order, so that a member gives from everywhere and takes everywhere.
  std::vector<std::uint32_t> homeless;
  std::vector<std::uint32_t> kept(members.size());
  std::vector<MemberIndex> out(table.begin(), table.end());
  const std::vector<std::uint32_t> order = shuffled(parts);
  for (const std::uint32_t part : order) {
    const auto found = positions.find(table[part]);
    if (found == positions.end() || kept[found->second] == quota[found->second]) {
      homeless.push_back(part);
    } else {
      ++kept[found->second];
    }
  }
  std::size_t next = 0;
  for (const std::size_t i : by_id(members)) {
    for (; kept[i] < quota[i]; ++kept[i]) out[homeless[next++]] = members[i].index;
  }
  return out;
}

}  // namespace ringshift::placement
