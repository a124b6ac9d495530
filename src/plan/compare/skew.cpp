#include "plan/compare/skew.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "plan/compare/theory.h"

namespace ringshift::plan::compare {
namespace {

using topology::Member;

constexpr std::string_view kSeparators = ":/.|-";
constexpr std::size_t kMaxPrefixBytes = 256;  // A longer beginning is no prefix that a person would name.

// Calls visit(depth, prefix) for each of the key's prefixes; the key itself is none.
template <class Visit>
void prefixes_of(std::string_view key, Visit visit) {
  std::size_t at = 0;
  for (std::size_t depth = 0; depth < kMaxDepth; ++depth) {
    at = key.find_first_of(kSeparators, at);
    if (at == std::string_view::npos) return;
    ++at;
    if (at == key.size() || at > kMaxPrefixBytes) return;
    visit(depth, key.substr(0, at));
  }
}

using Counters = std::unordered_map<std::string_view, std::uint64_t>;

void count(Counters& counters, std::string_view prefix) {
  const auto found = counters.find(prefix);
  if (found != counters.end()) {
    ++found->second;
  } else if (counters.size() < kCounters) {
    counters.emplace(prefix, 1);
  } else {
    // Each takes one from all: as often as that, kCounters keys were counted before.
    for (auto entry = counters.begin(); entry != counters.end();)
      entry = --entry->second == 0 ? counters.erase(entry) : std::next(entry);
  }
}

struct Tally {
  std::size_t depth = 0;
  std::vector<std::uint64_t> loads;
  [[nodiscard]] std::uint64_t keys() const {
    std::uint64_t sum = 0;
    for (const auto load : loads) sum += load;
    return sum;
  }
};

// What the first pass may have found to be heavy. The views are into `keys`.
std::unordered_map<std::string_view, Tally> candidates(const KeySet& keys, std::size_t members) {
  std::array<Counters, kMaxDepth> counters;
  for (std::size_t i = 0; i < keys.size(); ++i)
    prefixes_of(keys[i], [&](std::size_t depth, std::string_view prefix) { count(counters[depth], prefix); });
  constexpr std::size_t kKept = 4 * kMaxPrefixes;  // Of a depth: some are dropped for a longer one.
  std::unordered_map<std::string_view, Tally> out;
  for (std::size_t depth = 0; depth < kMaxDepth; ++depth) {
    std::vector<std::pair<std::uint64_t, std::string_view>> heavy;
    for (const auto& [prefix, seen] : counters[depth]) heavy.emplace_back(seen, prefix);
    std::ranges::sort(heavy, std::greater{});
    for (std::size_t i = 0; i < std::min(kKept, heavy.size()); ++i)
      out.emplace(heavy[i].second, Tally{depth, std::vector<std::uint64_t>(members, 0)});
  }
  return out;
}

PrefixLoad load_of(std::string_view prefix, const Tally& tally, std::size_t all,
                   const std::vector<Member>& members) {
  PrefixLoad out;
  out.prefix = prefix;
  out.keys = tally.keys();
  out.share = static_cast<double>(out.keys) / static_cast<double>(all);
  double weights = 0, heaviest = -1, chance = 0;
  for (const Member& member : members) weights += member.weight;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const double part = members[i].weight / weights;
    const double ratio = static_cast<double>(tally.loads[i]) / static_cast<double>(out.keys) / part;
    chance += (1 - part) / (static_cast<double>(out.keys) * part);
    if (ratio <= heaviest) continue;
    heaviest = ratio;
    out.heaviest = members[i].id;
  }
  out.max_avg = heaviest;
  out.max_avg_by_chance =
      expected_balance(std::sqrt(chance / static_cast<double>(members.size())), members.size()).max_avg;
  return out;
}

}  // namespace

std::vector<PrefixLoad> heaviest_prefixes(const KeySet& keys, const placement::Placement& owners,
                                          const std::vector<Member>& members) {
  auto tallies = candidates(keys, members.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto owner = owners.owner(keys[i]);
    prefixes_of(keys[i], [&](std::size_t, std::string_view prefix) {
      if (const auto found = tallies.find(prefix); found != tallies.end()) ++found->second.loads[owner];
    });
  }
  std::vector<PrefixLoad> out;
  for (const auto& [prefix, tally] : tallies) {
    const std::uint64_t own = tally.keys();
    if (own < 2 || static_cast<double>(own) < kLeastShare * static_cast<double>(keys.size())) continue;
    const bool longer = std::ranges::any_of(tallies, [&, &shorter = prefix](const auto& other) {
      return other.first.size() > shorter.size() && other.first.starts_with(shorter) &&
             other.second.keys() == own;
    });
    if (!longer) out.push_back(load_of(prefix, tally, keys.size(), members));
  }
  std::ranges::sort(out, [](const PrefixLoad& a, const PrefixLoad& b) {
    return a.keys != b.keys ? a.keys > b.keys : a.prefix < b.prefix;
  });
  if (out.size() > kMaxPrefixes) out.resize(kMaxPrefixes);
  return out;
}

}  // namespace ringshift::plan::compare
