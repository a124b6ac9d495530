#include "plan/compare/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "plan/compare/cost.h"
#include "ringshift/carry_over.h"
#include "ringshift/diff.h"
#include "topology/compile.h"
#include "topology/validate.h"

namespace ringshift::plan::compare {
namespace {

using placement::MemberIndex;
using topology::Member;
using topology::Spec;

constexpr std::size_t kKeysPerAsk = 65'536;  // Between two calls of Progress.

Error stopped() { return {ErrorKind::overloaded, "interrupted: nothing was written"}; }

// The members of both sides under one numbering: the positions in change.after, then those that left.
class Numbering {
 public:
  explicit Numbering(const Change& change) {
    for (const Member& member : change.after) add(member.id);
    for (const Member& member : change.before) add(member.id);
    const auto same = unchanged_members(change);
    unchanged_.resize(index_.size());
    for (const auto& [id, index] : index_) unchanged_[index] = same.contains(id);
  }
  [[nodiscard]] placement::Placement compile(const Spec& spec) const {
    return topology::compile_placement(spec.placement, spec.members,
                                       [this](std::string_view id) { return index_.find(id)->second; });
  }
  [[nodiscard]] bool both_unchanged(MemberIndex a, MemberIndex b) const {
    return unchanged_[a] && unchanged_[b];
  }
  [[nodiscard]] bool both_unchanged(const topology::PairShare& pair) const {
    return both_unchanged(index_.find(pair.from)->second, index_.find(pair.to)->second);
  }
  [[nodiscard]] std::size_t size() const noexcept { return index_.size(); }

 private:
  void add(std::string_view id) { index_.emplace(id, static_cast<MemberIndex>(index_.size())); }
  std::unordered_map<std::string_view, MemberIndex> index_;
  std::vector<bool> unchanged_;
};

Result<std::pair<Spec, Spec>> specs_of(const Variant& variant, const Change& change) {
  Spec before = first_spec(variant, change.before);
  if (const auto problem = topology::check_spec(before))
    return fail(ErrorKind::invalid, fmt::format("before: {}: {}", problem->path, problem->message));
  Spec after = before;
  after.members = change.after;
  Result<Spec> carried = topology::carry_over(before, std::move(after));
  if (!carried) return std::unexpected(carried.error());
  return std::pair{std::move(before), std::move(*carried)};
}

// Counts, key by key.
Status count_keys(const Numbering& ids, const placement::Placement& before, const placement::Placement& after,
                  const KeySet& keys, const Progress& progress, const Change& change, Row& row) {
  std::vector<std::uint64_t> loads_before(ids.size(), 0), loads_after(ids.size(), 0);
  std::uint64_t moved = 0, needless = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % kKeysPerAsk == 0 && progress &&
        !progress(static_cast<double>(i) / static_cast<double>(keys.size())))
      return std::unexpected(stopped());
    const MemberIndex from = before.owner(keys[i]), to = after.owner(keys[i]);
    ++loads_before[from];
    ++loads_after[to];
    if (from == to) continue;
    ++moved;
    if (ids.both_unchanged(from, to)) ++needless;
  }
  const auto all = static_cast<double>(keys.size());
  row.measured = {static_cast<double>(moved) / all, static_cast<double>(needless) / all};
  row.loads.assign(loads_after.begin(),
                   loads_after.begin() + static_cast<std::ptrdiff_t>(change.after.size()));
  row.after = balance_of(std::vector<double>(row.loads.begin(), row.loads.end()), change.after);
  // Those of before under its own order.
  std::unordered_map<std::string_view, std::size_t> position;
  std::size_t next = change.after.size();
  for (std::size_t i = 0; i < change.after.size(); ++i) position[change.after[i].id] = i;
  std::vector<double> loads;
  for (const Member& member : change.before) {
    const auto found = position.find(member.id);
    loads.push_back(static_cast<double>(loads_before[found == position.end() ? next++ : found->second]));
  }
  row.before = balance_of(loads, change.before);
  return {};
}

void take_diff(const topology::Diff& diff, const Numbering& ids, Row& row) {
  row.minimum = diff.minimum_share;
  if (!diff.exact) return;
  row.exact = Moved{diff.moved_share, 0};
  for (const topology::PairShare& pair : diff.pairs) {
    if (ids.both_unchanged(pair)) row.exact->between_unchanged += pair.share;
  }
}

}  // namespace

Result<Row> run(const Variant& variant, const Change& change, const KeySet& keys, const Progress& progress) {
  Row row;
  row.name = variant.name;
  row.family = variant.family;
  auto specs = specs_of(variant, change);
  if (!specs) {
    row.refused = specs.error().message;
    return row;
  }
  const auto& [before, after] = *specs;
  const Result<topology::Diff> diff = topology::diff(before, after);
  if (!diff) {
    row.refused = diff.error().message;
    return row;
  }
  const Numbering ids(change);
  take_diff(*diff, ids, row);
  const placement::Placement compiled = ids.compile(after);
  if (const Status counted = count_keys(ids, ids.compile(before), compiled, keys, progress, change, row);
      !counted)
    return std::unexpected(counted.error());
  if (const auto sd = expected_sd(after, compiled, keys.size()))
    row.expected = expected_balance(*sd, change.after.size());
  row.cost.lookup_ns = lookup_ns(compiled, timing_keys(keys));
  row.cost.build_us = build_us([&, &spec = after] { static_cast<void>(ids.compile(spec)); });
  row.cost.bytes = memory_bytes(compiled);
  row.warnings = topology::warnings(after);
  for (std::string& warning : topology::change_warnings(before, after))
    row.warnings.push_back(std::move(warning));
  return row;
}

Result<placement::Placement> placement_after(const Variant& variant, const Change& change) {
  auto specs = specs_of(variant, change);
  if (!specs) return std::unexpected(specs.error());
  return Numbering(change).compile(specs->second);
}

Result<std::vector<CurvePoint>> balance_curve(const std::vector<Member>& members, const KeySet& keys,
                                              const Progress& progress) {
  const auto timed = timing_keys(keys);
  const Change same{members, members};
  const Numbering ids(same);
  std::vector<CurvePoint> out;
  constexpr std::uint32_t kPoints[] = {1, 2, 5, 10, 20, 40, 80, 160, 256, 500, 1000};
  for (const std::uint32_t points : kPoints) {
    if (progress && !progress(static_cast<double>(out.size()) / std::size(kPoints)))
      return std::unexpected(stopped());
    Variant variant{"ring", {}, Family::ours};
    variant.placement.points = points;
    const Spec spec = first_spec(variant, members);
    // Light members have no points at all when there are few: the curve begins where all have some.
    if (topology::check_spec(spec)) continue;
    const Result<topology::Shares> shares = topology::shares(spec);
    if (!shares) return std::unexpected(shares.error());
    const placement::Placement compiled = ids.compile(spec);
    CurvePoint& point = out.emplace_back();
    point.points = points;
    point.exact = balance_of(shares->shares, members);
    point.expected = expected_balance(expected_sd(spec, compiled, 0).value_or(0), members.size());
    point.cost = {lookup_ns(compiled, timed), build_us([&] { static_cast<void>(ids.compile(spec)); }),
                  memory_bytes(compiled)};
  }
  return out;
}

}  // namespace ringshift::plan::compare
