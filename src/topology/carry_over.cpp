#include "ringshift/carry_over.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "placement/partitions.h"
#include "placement/slots.h"
#include "topology/compile.h"
#include "topology/reader.h"
#include "topology/validate.h"

namespace ringshift::topology {
namespace {

using placement::MemberIndex;

// Members of both sides under one numbering, B's after A's.
class Numbering {
 public:
  void add(const std::vector<Member>& members) {
    for (const Member& member : members) {
      if (index_.emplace(member.id, static_cast<MemberIndex>(ids_.size())).second) ids_.push_back(member.id);
    }
  }
  [[nodiscard]] MemberIndex index(std::string_view id) const { return index_.at(std::string(id)); }
  [[nodiscard]] const std::string& id(MemberIndex index) const { return ids_[index]; }

 private:
  std::vector<std::string> ids_;
  std::unordered_map<std::string, MemberIndex> index_;
};

std::vector<SlotRange> to_ranges(std::span<const MemberIndex> table, const Numbering& ids) {
  std::vector<SlotRange> out;
  for (std::size_t part = 0; part < table.size(); ++part) {
    const auto number = static_cast<std::uint16_t>(part);
    if (part == 0 || table[part] != table[part - 1]) out.push_back({number, number, ids.id(table[part])});
    out.back().last = number;
  }
  return out;
}

// Partitions and slots: the present table, explicit or not, with as few changes as the new members ask for.
std::vector<SlotRange> carry_table(const Spec& current, const Spec& next) {
  Numbering ids;
  ids.add(current.members);
  ids.add(next.members);
  const auto compiled = compile_placement(current.placement, current.members,
                                          [&](std::string_view id) { return ids.index(id); });
  const auto* slots = std::get_if<placement::Slots>(&compiled.algorithm());
  const auto table =
      slots != nullptr ? slots->table() : std::get<placement::Partitions>(compiled.algorithm()).table();
  std::vector<placement::Member> members;
  for (const Member& member : next.members)
    members.push_back({member.id, member.weight, ids.index(member.id)});
  return to_ranges(placement::reassign(table, members), ids);
}

void carry_buckets(const Spec& current, Spec& next) {
  std::vector<std::string> buckets = current.placement.buckets, removed = current.placement.removed;
  if (buckets.empty()) {
    for (const Member& member : current.members) buckets.push_back(member.id);
  }
  std::unordered_set<std::string> before, after;
  for (const Member& member : current.members) before.insert(member.id);
  for (const Member& member : next.members) after.insert(member.id);
  for (std::size_t i = current.members.size(); i-- > 0;) {  // From the end: a removed tail costs nothing.
    if (!after.contains(current.members[i].id)) removed.push_back(current.members[i].id);
  }
  // An id that was removed and comes back takes a bucket like any new one: its old one may not be the last.
  std::unordered_set<std::string> gone(removed.begin(), removed.end());
  for (const Member& member : next.members) {
    if (before.contains(member.id)) continue;
    if (removed.empty()) {
      buckets.push_back(member.id);
      continue;
    }
    const std::string last = removed.back();
    removed.pop_back();
    if (const auto own = std::ranges::find(removed, member.id); own != removed.end()) {
      // Its former bucket stays removed, under the other's name.
      *own = last;
      *std::ranges::find(buckets, member.id) = "";
    }
    *std::ranges::find(buckets, last) = member.id;
    if (const auto hole = std::ranges::find(buckets, std::string()); hole != buckets.end()) *hole = last;
  }
  // A removed tail, with nothing removed before it, is a shorter array.
  while (!removed.empty() && !buckets.empty() && removed.front() == buckets.back()) {
    removed.erase(removed.begin());
    buckets.pop_back();
  }
  next.placement.buckets = std::move(buckets);
  next.placement.removed = std::move(removed);
}

void carry_tokens(const Spec& current, Spec& next) {
  std::map<std::string, std::vector<std::uint64_t>> tokens;
  std::vector<std::uint64_t> circle;
  std::vector<const Member*> fresh;
  for (const Member& member : next.members) {
    const auto found = current.placement.tokens.find(member.id);
    if (found == current.placement.tokens.end()) {
      fresh.push_back(&member);
      continue;
    }
    tokens[member.id] = found->second;
    circle.insert(circle.end(), found->second.begin(), found->second.end());
  }
  const std::size_t each = tokens.empty() ? 1 : std::max<std::size_t>(1, circle.size() / tokens.size());
  std::ranges::sort(circle);
  std::ranges::sort(fresh, {}, &Member::id);
  // The gaps, widest first; equal ones by where they end. A token in the middle takes the first half.
  using Gap = std::pair<std::uint64_t, std::uint64_t>;  // {length, end}
  std::priority_queue<Gap> gaps;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const std::uint64_t begin = circle[i == 0 ? circle.size() - 1 : i - 1];
    gaps.emplace(circle.size() == 1 ? ~std::uint64_t{0} : circle[i] - begin, circle[i]);
  }
  if (circle.empty()) gaps.emplace(~std::uint64_t{0}, ~std::uint64_t{0});
  for (std::size_t round = 0; round < each; ++round) {
    for (const Member* member : fresh) {
      const auto [length, end] = gaps.top();
      gaps.pop();
      const std::uint64_t middle = end - length / 2;
      tokens[member->id].push_back(middle);
      gaps.emplace(length / 2, end);
      gaps.emplace(length - length / 2, middle);
    }
  }
  next.placement.tokens = std::move(tokens);
}

}  // namespace

Result<Spec> carry_over(const Spec& current, Spec next) {
  if (const auto problem = check_spec(current)) {
    return fail(ErrorKind::invalid, describe("current", 0, problem->path, problem->message));
  }
  Spec plain = next;  // Members and weights must make sense before a table is cut for them.
  plain.placement = {};
  plain.consistency = Consistency::none;
  if (const auto problem = check_spec(plain)) {
    return fail(ErrorKind::invalid, describe("next", 0, problem->path, problem->message));
  }
  if (current.placement.algorithm == next.placement.algorithm) {
    const std::string& algorithm = next.placement.algorithm;
    if (algorithm == "partitions") {
      next.placement.partitions = current.placement.partitions;
      next.placement.table = carry_table(current, next);
    }
    if (algorithm == "slots") next.placement.slots = carry_table(current, next);
    if (algorithm == "memento") carry_buckets(current, next);
    if (algorithm == "tokens") carry_tokens(current, next);
  }
  if (const auto problem = check_spec(next)) {
    return fail(ErrorKind::invalid, describe("next", 0, problem->path, problem->message));
  }
  return next;
}

}  // namespace ringshift::topology
