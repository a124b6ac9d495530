// The exact diff of two placements, by merging what they are made of: arcs, residues or slots.
//
// Anything made of arcs (ring, tokens, partitions) compares exactly with anything made of arcs, anything made
// of residues (modulo, maglev) with the like, when hash and tag agree. So do other programs' placements, over
// the bits that their key hash has; where those are few, every hash is asked.
//
// Lengths are whole numbers out of 2^64 (or 2^14 slots, or 10^6 sampled keys), summed in 128 bits, and
// divided once at the end. Cost: one pass over both sides' points.
#include "ringshift/diff.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "topology/compile.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::topology {
namespace {

using placement::MemberIndex;
using Point = placement::Ring::Point;
__extension__ using Wide = unsigned __int128;

constexpr Wide kCircle = Wide{1} << 64;
constexpr std::uint64_t kMaxPeriod = 1U << 24;  // Residues compared one by one; beyond it, a sample.
constexpr std::uint32_t kSampleKeys = 1'000'000;

// Both sides' members under one numbering, as a snapshot has it: by id, A's first.
struct Ids {
  std::vector<std::string> names;
  std::unordered_map<std::string, MemberIndex> index;

  void add(const std::vector<Member>& members) {
    for (const Member& member : members) {
      if (index.emplace(member.id, static_cast<MemberIndex>(names.size())).second) names.push_back(member.id);
    }
  }
  [[nodiscard]] placement::Placement compile(const Spec& spec) const {
    return compile_placement(spec.placement, spec.members,
                             [this](std::string_view id) { return index.find(std::string(id))->second; });
  }
};

// How much of the keyspace goes from whom to whom.
class Tally {
 public:
  explicit Tally(Wide whole) : whole_(whole) {}
  void add(MemberIndex from, MemberIndex to, Wide amount) {
    if (from != to) pairs_[std::uint64_t{from} << 32 | to] += amount;
  }
  void finish(const Ids& ids, Diff& diff) const {
    Wide moved = 0;
    for (const auto& [pair, amount] : pairs_) {
      if (amount == 0) continue;
      moved += amount;
      diff.pairs.push_back({ids.names[pair >> 32], ids.names[pair & 0xffffffff], share(amount)});
    }
    diff.moved_share = share(moved);
    std::ranges::sort(diff.pairs, [](const PairShare& a, const PairShare& b) {
      if (a.share != b.share) return a.share > b.share;
      return std::tie(a.from, a.to) < std::tie(b.from, b.to);
    });
  }

 private:
  [[nodiscard]] double share(Wide amount) const {
    return static_cast<double>(static_cast<long double>(amount) / static_cast<long double>(whole_));
  }
  Wide whole_;
  std::unordered_map<std::uint64_t, Wide> pairs_;
};

// Calls visit(length, owner in a, owner in b) for the arcs between neighbouring points of either ring. The
// arc that wraps comes in two parts: up to the first point, and beyond the last.
template <class Visit>
void merge_arcs(std::span<const Point> points_a, std::span<const Point> points_b, Visit visit) {
  Wide begin = 0;  // The first hash not yet visited.
  std::size_t i = 0, j = 0;
  while (i < points_a.size() || j < points_b.size()) {
    const MemberIndex owner_a = points_a[i < points_a.size() ? i : 0].member;
    const MemberIndex owner_b = points_b[j < points_b.size() ? j : 0].member;
    const Wide next_a = i < points_a.size() ? Wide{points_a[i].hash} : kCircle;
    const Wide next_b = j < points_b.size() ? Wide{points_b[j].hash} : kCircle;
    const Wide end = std::min(next_a, next_b) + 1;  // A point owns its own hash.
    if (end > begin) visit(end - begin, owner_a, owner_b);
    begin = std::max(begin, end);
    if (next_a < end) ++i;
    if (next_b < end) ++j;
  }
  if (begin < kCircle) visit(kCircle - begin, points_a[0].member, points_b[0].member);
}

// How many of the `whole` hashes from 0 on leave `residue` when divided by `period`.
Wide hashes_of(std::uint64_t residue, std::uint64_t period, Wide whole = kCircle) {
  return whole / period + (Wide{residue} < whole % period ? 1 : 0);
}

bool diff_residues(std::span<const MemberIndex> a, std::span<const MemberIndex> b, Wide whole, const Ids& ids,
                   Diff& diff) {
  const std::uint64_t period = std::lcm(std::uint64_t{a.size()}, std::uint64_t{b.size()});
  if (period > kMaxPeriod) return false;
  Tally tally(whole);
  for (std::uint64_t r = 0; r < period; ++r)
    tally.add(a[r % a.size()], b[r % b.size()], hashes_of(r, period, whole));
  tally.finish(ids, diff);
  return true;
}

// All that a peer's key hash can be.
Wide hashes_of(const placement::peers::Peer& peer) { return Wide{1} << peer.key_hash().bits(); }
bool has_few_hashes(const placement::peers::Peer& peer) { return hashes_of(peer) <= kMaxPeriod; }

std::span<const MemberIndex> residues_of(const placement::peers::Peer& peer) {
  const auto* table = dynamic_cast<const placement::peers::TablePeer*>(&peer);
  return table == nullptr ? std::span<const MemberIndex>{} : std::span(table->table());
}

// Two peers' placements over one key hash: hash by hash, by residues, or by arcs as our own rings.
bool diff_peers(const placement::peers::Peer& from, const placement::peers::Peer& to, const Ids& ids,
                Diff& diff) {
  if (from.key_hash().name() != to.key_hash().name() || hashes_of(from) != hashes_of(to)) return false;
  if (has_few_hashes(from)) {
    Tally tally(hashes_of(from));
    for (std::uint64_t hash = 0; Wide{hash} < hashes_of(from); ++hash)
      tally.add(from.owner_of(hash), to.owner_of(hash), 1);
    tally.finish(ids, diff);
    return true;
  }
  const auto table = residues_of(from), next_table = residues_of(to);
  if (!table.empty() && !next_table.empty())
    return diff_residues(table, next_table, hashes_of(from), ids, diff);
  const auto a = from.arcs(), b = to.arcs();
  if (a.empty() || b.empty() || a.back().end != b.back().end) return false;
  Tally tally(Wide{a.back().end} + 1);
  Wide begin = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Wide end = Wide{std::min(a[i].end, b[j].end)} + 1;
    tally.add(a[i].member, b[j].member, end - begin);
    begin = end;
    if (Wide{a[i].end} < end) ++i;
    if (Wide{b[j].end} < end) ++j;
  }
  tally.finish(ids, diff);
  return true;
}

// The circle as points, each owning what lies before it; empty for placements that are not made of arcs.
std::vector<Point> arcs_of(const placement::Placement& placement) {
  const auto copy = [](const placement::Ring& ring) {
    return std::vector<Point>(ring.points().begin(), ring.points().end());
  };
  if (const auto* ring = std::get_if<placement::Ring>(&placement.algorithm())) return copy(*ring);
  if (const auto* tokens = std::get_if<placement::Tokens>(&placement.algorithm()))
    return copy(tokens->ring());
  if (const auto* bounded = std::get_if<placement::BoundedRing>(&placement.algorithm()))
    return copy(bounded->ring());
  std::vector<Point> out;
  if (const auto* partitions = std::get_if<placement::Partitions>(&placement.algorithm())) {
    const auto table = partitions->table();
    for (std::size_t p = 0; p < table.size(); ++p) {  // Partition p ends before ceil((p+1) * 2^64 / Q).
      const Wide end = (Wide{p + 1} * kCircle + table.size() - 1) / table.size();
      out.push_back({static_cast<std::uint64_t>(end - 1), table[p]});
    }
  }
  return out;
}

// The owners of the residues of the hash; empty for placements that do not divide.
std::span<const MemberIndex> residues_of(const placement::Placement& placement) {
  if (const auto* modulo = std::get_if<placement::Modulo>(&placement.algorithm())) return modulo->residues();
  if (const auto* maglev = std::get_if<placement::Maglev>(&placement.algorithm())) return maglev->table();
  return {};
}

// A key of bucket i, of the smaller number n of buckets, stays there with probability n/m and else goes to
// each of the new ones alike (Lamping and Veach, section 2). Exact to the 2^-31 that jump's arithmetic
// resolves.
void diff_jumps(const placement::Jump& from, const placement::Jump& to, const Ids& ids, Diff& diff) {
  const auto a = from.members(), b = to.members();
  const std::size_t smaller = std::min(a.size(), b.size()), larger = std::max(a.size(), b.size());
  Tally tally(Wide{smaller} * larger);  // In units of 1 / (n m).
  for (std::size_t i = 0; i < smaller; ++i) tally.add(a[i], b[i], smaller);
  for (std::size_t i = 0; i < smaller; ++i) {
    for (std::size_t j = smaller; j < larger; ++j)
      tally.add(a[a.size() > b.size() ? j : i], b[a.size() > b.size() ? i : j], 1);
  }
  tally.finish(ids, diff);
}

bool diff_exactly(const placement::Placement& from, const placement::Placement& to, const Ids& ids,
                  Diff& diff) {
  if (from.tag() != to.tag()) return false;
  const auto* slots = std::get_if<placement::Slots>(&from.algorithm());
  const auto* other = std::get_if<placement::Slots>(&to.algorithm());
  if (slots != nullptr && other != nullptr) {
    Tally tally(placement::kSlotCount);
    for (std::uint32_t slot = 0; slot < placement::kSlotCount; ++slot)
      tally.add(slots->owner(slot), other->owner(slot), 1);
    tally.finish(ids, diff);
    return true;
  }
  const auto* peer = std::get_if<placement::PeerPlacement>(&from.algorithm());
  const auto* next_peer = std::get_if<placement::PeerPlacement>(&to.algorithm());
  if (peer != nullptr && next_peer != nullptr) return diff_peers(peer->peer(), next_peer->peer(), ids, diff);
  if (peer != nullptr || next_peer != nullptr) return false;  // Hashes of different sizes.
  if (slots != nullptr || other != nullptr || from.hash_function() != to.hash_function()) return false;
  const auto* jump = std::get_if<placement::Jump>(&from.algorithm());
  if (const auto* next = std::get_if<placement::Jump>(&to.algorithm()); jump != nullptr && next != nullptr) {
    diff_jumps(*jump, *next, ids, diff);
    return true;
  }
  const auto residues = residues_of(from), residues_after = residues_of(to);
  if (!residues.empty() && !residues_after.empty())
    return diff_residues(residues, residues_after, kCircle, ids, diff);
  const auto arcs = arcs_of(from), arcs_after = arcs_of(to);
  if (arcs.empty() || arcs_after.empty()) return false;
  Tally tally(kCircle);
  merge_arcs(arcs, arcs_after, [&](Wide length, MemberIndex a, MemberIndex b) { tally.add(a, b, length); });
  tally.finish(ids, diff);
  return true;
}

// The `i`-th of a fixed set of keys: 16 hex digits, without hash tags, the same on every machine.
class SampleKey {
 public:
  explicit SampleKey(std::uint32_t i) {
    std::uint64_t bits = hashing::mix(i);
    for (char& c : key_) {
      c = "0123456789abcdef"[bits & 15];
      bits >>= 4;
    }
  }
  [[nodiscard]] std::string_view view() const { return {key_.data(), key_.size()}; }

 private:
  std::array<char, 16> key_{};
};

void diff_by_sample(const placement::Placement& from, const placement::Placement& to, const Ids& ids,
                    Diff& diff) {
  diff.exact = false;
  Tally tally(kSampleKeys);
  for (std::uint32_t i = 0; i < kSampleKeys; ++i) {
    const SampleKey key(i);
    tally.add(from.owner(key.view()), to.owner(key.view()), 1);
  }
  tally.finish(ids, diff);
}

double minimum_share(const Spec& from, const Spec& to) {
  const auto total = [](const Spec& spec) {
    return std::accumulate(spec.members.begin(), spec.members.end(), 0.0,
                           [](double sum, const Member& member) { return sum + member.weight; });
  };
  std::unordered_map<std::string_view, double> before;
  const double total_before = total(from), total_after = total(to);
  for (const Member& member : from.members) before[member.id] = member.weight / total_before;
  double minimum = 0;
  for (const Member& member : to.members) {
    const auto old = before.find(member.id);
    minimum += std::max(0.0, member.weight / total_after - (old == before.end() ? 0.0 : old->second));
  }
  return minimum;
}

// How many hashes each member owns; false when only a sample can tell.
bool count_peer(const placement::peers::Peer& peer, std::vector<Wide>& amounts) {
  const auto table = residues_of(peer);
  const auto arcs = peer.arcs();
  if (has_few_hashes(peer)) {
    for (std::uint64_t hash = 0; Wide{hash} < hashes_of(peer); ++hash) amounts[peer.owner_of(hash)] += 1;
  } else if (!table.empty()) {
    for (std::uint64_t r = 0; r < table.size(); ++r)
      amounts[table[r]] += hashes_of(r, table.size(), hashes_of(peer));
  } else {
    Wide begin = 0;
    for (const auto& arc : arcs) {
      amounts[arc.member] += Wide{arc.end} + 1 - begin;
      begin = Wide{arc.end} + 1;
    }
    return !arcs.empty();
  }
  return true;
}

Status check(const Spec& spec, std::string_view place) {
  if (const auto problem = check_spec(spec)) {
    return fail(ErrorKind::invalid, describe(place, 0, problem->path, problem->message));
  }
  return {};
}

}  // namespace

Result<Diff> diff(const Spec& from, const Spec& to) {
  if (const Status valid = check(from, "from"); !valid) return std::unexpected(valid.error());
  if (const Status valid = check(to, "to"); !valid) return std::unexpected(valid.error());
  Ids ids;
  ids.add(from.members);
  ids.add(to.members);
  const placement::Placement before = ids.compile(from), after = ids.compile(to);
  Diff diff;
  diff.minimum_share = minimum_share(from, to);
  if (!diff_exactly(before, after, ids, diff)) diff_by_sample(before, after, ids, diff);
  return diff;
}

Result<Shares> shares(const Spec& spec) {
  if (const Status valid = check(spec, "spec"); !valid) return std::unexpected(valid.error());
  Ids ids;
  ids.add(spec.members);
  const placement::Placement compiled = ids.compile(spec);
  std::vector<Wide> amounts(spec.members.size(), 0);
  Wide whole = kCircle;
  Shares out;
  const auto residues = residues_of(compiled);
  const auto arcs = arcs_of(compiled);
  if (const auto* slots = std::get_if<placement::Slots>(&compiled.algorithm())) {
    whole = placement::kSlotCount;
    for (const MemberIndex owner : slots->table()) amounts[owner] += 1;
  } else if (const auto* jump = std::get_if<placement::Jump>(&compiled.algorithm())) {
    whole = jump->members().size();
    for (const MemberIndex owner : jump->members()) amounts[owner] += 1;
  } else if (const auto* peer = std::get_if<placement::PeerPlacement>(&compiled.algorithm());
             peer != nullptr && count_peer(peer->peer(), amounts)) {
    whole = hashes_of(peer->peer());
  } else if (!residues.empty()) {
    for (std::uint64_t r = 0; r < residues.size(); ++r) amounts[residues[r]] += hashes_of(r, residues.size());
  } else if (!arcs.empty()) {
    merge_arcs(arcs, arcs, [&](Wide length, MemberIndex owner, MemberIndex) { amounts[owner] += length; });
  } else {
    out.exact = false;
    whole = kSampleKeys;
    for (std::uint32_t i = 0; i < kSampleKeys; ++i) amounts[compiled.owner(SampleKey(i).view())] += 1;
  }
  for (const Wide amount : amounts) {
    out.shares.push_back(
        static_cast<double>(static_cast<long double>(amount) / static_cast<long double>(whole)));
  }
  return out;
}

}  // namespace ringshift::topology
