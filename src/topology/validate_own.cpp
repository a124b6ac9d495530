// What the placements by table, by order and by token ask of a spec.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "placement/maglev.h"
#include "placement/multi_probe.h"
#include "placement/partitions.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::topology {
namespace {

using Found = std::optional<Problem>;
using IdSet = std::unordered_set<std::string_view>;

IdSet ids_of(const std::vector<Member>& members) {
  IdSet ids;
  for (const Member& member : members) ids.insert(member.id);
  return ids;
}

// An option that another algorithm reads does nothing here, and whoever wrote it meant something.
Found check_option_owner(const Placement& placement, const std::string& path) {
  const Placement usual;
  struct Option {
    const char* name;
    const char* algorithm;
    bool given;
  };
  const Option options[] = {
      {"table_size", "maglev", placement.table_size != usual.table_size},
      {"probes", "multi-probe", placement.probes != usual.probes},
      {"epsilon", "bounded-ring", placement.epsilon != usual.epsilon},
      {"partitions", "partitions", placement.partitions != usual.partitions},
      {"table", "partitions", !placement.table.empty()},
      {"buckets", "memento", !placement.buckets.empty()},
      {"removed", "memento", !placement.removed.empty()},
      {"tokens", "tokens", !placement.tokens.empty()},
  };
  for (const Option& option : options) {
    if (!option.given || placement.algorithm == option.algorithm) continue;
    return Problem{join(path, option.name),
                   fmt::format("does not go with {}: set the algorithm to {} or remove it",
                               placement.algorithm, option.algorithm)};
  }
  return {};
}

Found check_equal_weights(const Placement& placement, const std::vector<Member>& members) {
  for (const Member& member : members) {
    if (member.weight == members.front().weight) continue;
    return Problem{"members", fmt::format("{} weighs {} and {} weighs {}: {} knows no weights, make them "
                                          "equal or use ring",
                                          shown(members.front().id), members.front().weight, shown(member.id),
                                          member.weight, placement.algorithm)};
  }
  return {};
}

// A member of a small weight in a small table would own nothing.
Found check_partitions(const Placement& placement, const std::vector<Member>& members,
                       const std::string& path) {
  if (!placement.table.empty()) {
    return check_ranges(placement.table, placement.partitions, "partition", members, join(path, "table"));
  }
  std::vector<placement::Member> inputs;
  for (const Member& member : members) inputs.push_back({member.id, member.weight, 0});
  const auto quotas = placement::quotas(inputs, placement.partitions);
  const auto none = std::ranges::find(quotas, 0U);
  if (none == quotas.end()) return {};
  const Member& member = members[static_cast<std::size_t>(none - quotas.begin())];
  return Problem{
      join(path, "partitions"),
      fmt::format("{} are too few: member {} of weight {} gets none; raise partitions or its weight",
                  placement.partitions, shown(member.id), member.weight)};
}

Found check_memento(const Placement& placement, const std::vector<Member>& members, const std::string& path) {
  if (placement.buckets.empty()) {
    if (placement.removed.empty()) return {};
    return Problem{join(path, "removed"), "needs buckets: list all ids in bucket order, removed ones too"};
  }
  const std::string buckets_path = join(path, "buckets"), removed_path = join(path, "removed");
  const IdSet ids = ids_of(members);
  const IdSet removed(placement.removed.begin(), placement.removed.end());
  IdSet buckets;
  for (std::size_t i = 0; i < placement.buckets.size(); ++i) {
    const std::string& id = placement.buckets[i];
    if (!buckets.insert(id).second)
      return Problem{at(buckets_path, i), fmt::format("{} is listed twice", shown(id))};
    if (ids.contains(id) == removed.contains(id)) {
      return Problem{at(buckets_path, i),
                     ids.contains(id)
                         ? fmt::format("{} is a member and in removed too: it is one or the other", shown(id))
                         : fmt::format("{} is neither a member nor in removed: a bucket that lost its member "
                                       "stays, and its id goes to the end of removed",
                                       shown(id))};
    }
  }
  for (std::size_t i = 0; i < placement.removed.size(); ++i) {
    if (!buckets.contains(placement.removed[i]))
      return Problem{at(removed_path, i), fmt::format("{} is not in buckets", shown(placement.removed[i]))};
  }
  if (removed.size() != placement.removed.size()) return Problem{removed_path, "an id is listed twice"};
  for (const Member& member : members) {
    if (buckets.contains(member.id)) continue;
    return Problem{buckets_path,
                   fmt::format("member {} has no bucket: put it in place of the last of removed (and take "
                               "that one out of both), or at the end when nothing is removed",
                               shown(member.id))};
  }
  return {};
}

Found check_tokens(const Placement& placement, const std::vector<Member>& members, const std::string& path) {
  const std::string here = join(path, "tokens");
  const IdSet ids = ids_of(members);
  std::unordered_map<std::uint64_t, std::string_view> owners;
  for (const auto& [id, tokens] : placement.tokens) {
    if (!ids.contains(id))
      return Problem{join(here, id),
                     fmt::format("{} is not a member: add it or remove its tokens", shown(id))};
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto [first, fresh] = owners.emplace(tokens[i], id);
      if (fresh) continue;
      return Problem{at(join(here, id), i), fmt::format("{} is a token of {} already: tokens are unique",
                                                        tokens[i], shown(first->second))};
    }
  }
  if (owners.size() > kMaxPoints)
    return Problem{here, fmt::format("{} tokens are more than {}", owners.size(), kMaxPoints)};
  for (const Member& member : members) {
    const auto found = placement.tokens.find(member.id);
    if (found == placement.tokens.end() || found->second.empty()) {
      return Problem{here, fmt::format("member {} has none, so it would own nothing: give it at least one",
                                       shown(member.id))};
    }
  }
  return {};
}

}  // namespace

std::optional<Problem> check_own_options(const Placement& placement, const std::string& path) {
  if (Found found = check_option_owner(placement, path)) return found;
  if (placement.table_size < 3 || placement.table_size > kMaxTableSize ||
      !placement::is_prime(placement.table_size)) {
    return Problem{join(path, "table_size"),
                   fmt::format("{} is not a prime from 3 to {}: 65537 suits up to 650 members, 655373 more",
                               placement.table_size, kMaxTableSize)};
  }
  if (placement.probes == 0 || placement.probes > placement::kMaxProbes) {
    return Problem{join(path, "probes"), fmt::format("{} is not from 1 to {}: 21 suits most clusters",
                                                     placement.probes, placement::kMaxProbes)};
  }
  constexpr double kLeastEpsilon = 0.01, kMostEpsilon = 100;
  if (!(placement.epsilon >= kLeastEpsilon) || placement.epsilon > kMostEpsilon) {
    return Problem{join(path, "epsilon"), fmt::format("{} is not from {} to {}: 0.25 lets a member carry a "
                                                      "quarter more than its share",
                                                      placement.epsilon, kLeastEpsilon, kMostEpsilon)};
  }
  if (placement.partitions == 0 || placement.partitions > placement::kMaxPartitions) {
    return Problem{join(path, "partitions"),
                   fmt::format("{} is not from 1 to {}: about 100 a member give shares within 1 %",
                               placement.partitions, placement::kMaxPartitions)};
  }
  return {};
}

std::optional<Problem> check_own_members(const Placement& placement, const std::vector<Member>& members,
                                         const std::string& path) {
  const std::string& algorithm = placement.algorithm;
  if (algorithm == "jump" || algorithm == "memento") {
    if (Found found = check_equal_weights(placement, members)) {
      const std::string base = path.substr(0, path.size() - std::string_view("placement").size());
      return Problem{base + found->path, found->message};
    }
  }
  if (algorithm == "maglev" && members.size() > placement.table_size) {
    return Problem{join(path, "table_size"),
                   fmt::format("{} is less than the {} members: some would own nothing; take a prime of 100 "
                               "times as many",
                               placement.table_size, members.size())};
  }
  if (algorithm == "multi-probe") {
    for (const Member& member : members) {
      const double points = member.weight * placement.points;
      if (points == static_cast<double>(static_cast<std::uint64_t>(points))) continue;
      return Problem{
          join(path, "points"),
          fmt::format("weight {} of member {} times {} is not whole: multi-probe has few points, so "
                      "raise points or scale the weights",
                      member.weight, shown(member.id), placement.points)};
    }
  }
  if (algorithm == "partitions") return check_partitions(placement, members, path);
  if (algorithm == "memento") return check_memento(placement, members, path);
  if (algorithm == "tokens") return check_tokens(placement, members, path);
  return {};
}

std::optional<Problem> check_ranges(const std::vector<SlotRange>& ranges, std::size_t parts,
                                    std::string_view part, const std::vector<Member>& members,
                                    const std::string& path) {
  const IdSet ids = ids_of(members);
  std::vector<std::size_t> owner(parts, ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const SlotRange& range = ranges[i];
    const std::string here = at(path, i);
    if (range.first > range.last || range.last >= parts) {
      return Problem{here,
                     fmt::format("{}-{} is not a range of {}s: they go from 0 to {}, the first not above "
                                 "the last",
                                 range.first, range.last, part, parts - 1)};
    }
    if (!ids.contains(range.member)) {
      return Problem{here + ".member", fmt::format("{} is not a member: add it to members or correct the id",
                                                   shown(range.member))};
    }
    for (std::size_t at_part = range.first; at_part <= range.last; ++at_part) {
      if (owner[at_part] != ranges.size()) {
        return Problem{here, fmt::format("{} {} is in {} already: ranges must not overlap", part, at_part,
                                         at(path, owner[at_part]))};
      }
      owner[at_part] = i;
    }
  }
  const auto gap = std::ranges::find(owner, ranges.size());
  if (gap == owner.end()) return {};
  const auto last = std::find_if(gap, owner.end(), [&](std::size_t i) { return i != ranges.size(); });
  return Problem{path, fmt::format("{}s {}-{} belong to nobody: give all of 0-{} to members", part,
                                   gap - owner.begin(), last - owner.begin() - 1, parts - 1)};
}

}  // namespace ringshift::topology
