#include "plan/forecast/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "plan/forecast/verdict.h"
#include "ringshift/diff.h"

namespace ringshift::plan {
namespace {

using topology::Member;

std::unexpected<Error> wrong(std::string_view what, double value, std::string_view should) {
  return fail(ErrorKind::invalid, fmt::format("{}: {} {}", what, value, should));
}

Status check(const ForecastInputs& in) {
  const auto rate = [](double value) { return value >= 0 && value <= 1; };  // false for no number, too.
  const auto amount = [](double value) { return value >= 0 && std::isfinite(value); };
  constexpr std::string_view kRate = "is no rate: it must be within 0 and 1, such as 0.95";
  constexpr std::string_view kAmount = "must be a number of 0 or more";
  constexpr std::string_view kSpeed = "must be above 0, else the move never ends";
  if (!rate(in.traffic.hit_rate)) return wrong("hit rate", in.traffic.hit_rate, kRate);
  if (!rate(in.traffic.cold_hit_rate)) return wrong("cold hit rate", in.traffic.cold_hit_rate, kRate);
  if (!amount(in.keys)) return wrong("keys", in.keys, kAmount);
  if (!amount(in.value_bytes)) return wrong("value bytes", in.value_bytes, kAmount);
  if (!amount(in.traffic.qps)) return wrong("qps", in.traffic.qps, kAmount);
  if (in.origin_limit_qps && !amount(*in.origin_limit_qps))
    return wrong("origin limit", *in.origin_limit_qps, kAmount);
  if (!amount(in.keys_per_second) || in.keys_per_second <= 0)
    return wrong("rate", in.keys_per_second, kSpeed);
  if (!amount(in.bytes_per_second) || in.bytes_per_second <= 0)
    return wrong("byte rate", in.bytes_per_second, kSpeed);
  double before = 0;
  for (const double step : in.steps) {
    if (!(step > before) || step > 100)
      return wrong("steps", step, "must be above the one before, at most 100");
    before = step;
  }
  if (before != 100) return wrong("steps", before, "is the last one, which must be 100");
  return {};
}

// Both sides' members in one list, with their shares and their own figures.
class Ledger {
 public:
  Ledger(const ForecastInputs& in, const topology::Shares& before, const topology::Shares& after) : in_(in) {
    for (std::size_t i = 0; i < in.from.members.size(); ++i) {
      add(in.from.members[i].id).share_before = before.shares[i];
      weights_[i].before = in.from.members[i].weight;
    }
    for (std::size_t i = 0; i < in.to.members.size(); ++i) {
      MemberForecast& member = add(in.to.members[i].id);
      member.share_after = after.shares[i];
      weights_[index_.at(member.id)].after = in.to.members[i].weight;
    }
    for (const MemberFigures& figures : in.members) {
      if (const auto found = index_.find(figures.id); found != index_.end())
        figures_[found->second] = &figures;
    }
    for (std::size_t i = 0; i < members_.size(); ++i) {
      MemberForecast& member = members_[i];
      const MemberFigures* own = figures_[i];
      member.keys_before = own != nullptr && own->keys ? *own->keys : in.keys * member.share_before;
      member.ops_before =
          own != nullptr && own->ops_per_second ? *own->ops_per_second : in.traffic.qps * member.share_before;
      member.keys_after = member.keys_before;
      member.ops_after = member.ops_before;
    }
  }

  [[nodiscard]] PairForecast move(const topology::PairShare& pair) {
    const std::size_t from = index_.at(pair.from), to = index_.at(pair.to);
    MemberForecast& source = members_[from];
    MemberForecast& target = members_[to];
    // A member that owns nothing gives nothing: its share in a pair can only be of a sample.
    const double part = source.share_before > 0 ? std::min(1.0, pair.share / source.share_before) : 0;
    const double keys = source.keys_before * part, ops = source.ops_before * part;
    source.keys_after -= keys;
    target.keys_after += keys;
    source.ops_after -= ops;
    target.ops_after += ops;
    const double bytes = keys * in_.value_bytes;
    source.bytes_out += bytes;
    target.bytes_in += bytes;
    const bool unchanged = weights_[from].same() && weights_[to].same();
    return {pair.from, pair.to, pair.share, keys, bytes, unchanged};
  }

  [[nodiscard]] std::vector<MemberForecast> finish() && {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      MemberForecast& member = members_[i];
      // Differences of sums: nothing is below nothing.
      member.keys_after = std::max(0.0, member.keys_after);
      member.ops_after = std::max(0.0, member.ops_after);
      if (figures_[i] == nullptr) continue;
      member.used_memory = figures_[i]->used_memory;
      member.max_memory = figures_[i]->max_memory;
      if (!member.used_memory) continue;
      member.memory_peak = *member.used_memory + member.bytes_in;
      member.memory_after = std::max(0.0, *member.memory_peak - member.bytes_out);
      const double limit = member.max_memory.value_or(0);
      // One that only gives may be as full as it likes: that is what a cluster grows for.
      member.has_room = member.bytes_in <= 0 || limit <= 0 || *member.memory_peak <= limit;
    }
    return std::move(members_);
  }

 private:
  struct Weights {
    double before = 0, after = 0;  // 0: no member then.
    [[nodiscard]] bool same() const { return before > 0 && before == after; }
  };

  MemberForecast& add(const std::string& id) {
    const auto [found, fresh] = index_.emplace(id, members_.size());
    if (fresh) {
      members_.emplace_back().id = id;
      figures_.push_back(nullptr);
      weights_.emplace_back();
    }
    return members_[found->second];
  }

  const ForecastInputs& in_;
  std::vector<MemberForecast> members_;
  std::vector<const MemberFigures*> figures_;  // Of members_[i]; null when nothing is known.
  std::vector<Weights> weights_;               // Likewise.
  std::unordered_map<std::string, std::size_t> index_;
};

double seconds_for(const ForecastInputs& in, double keys, double bytes) {
  return std::max(keys / in.keys_per_second, bytes / in.bytes_per_second);
}

// A resize moves whole slices: the bounds are those that it rounds to.
void add_steps(const ForecastInputs& in, Forecast& out) {
  long done = 0;
  for (const double percent : in.steps) {
    const long end = std::lround(percent / 100 * topology::kSliceCount);
    StepForecast step;
    step.percent = percent;
    step.slices = static_cast<std::uint32_t>(end - done);
    done = end;
    const double part = static_cast<double>(step.slices) / topology::kSliceCount;
    step.cold_share = out.moved_share * part;
    step.keys = out.keys_to_move * part;
    step.bytes = out.bytes_to_move * part;
    step.seconds = seconds_for(in, step.keys, step.bytes);
    step.cold_origin_qps = origin_qps(in.traffic, step.cold_share);
    step.cold_extra_qps = step.cold_origin_qps - out.origin_now;
    step.cold_hit_rate = hit_rate(in.traffic, step.cold_share);
    out.steps.push_back(step);
  }
}

// Ids that keep their name and change their place: a peer's placement may move keys for it, and `resize
// start` refuses it.
std::vector<std::string> changed_addresses(const ForecastInputs& in) {
  std::vector<std::string> out;
  std::unordered_map<std::string_view, std::string_view> addresses;
  for (const Member& member : in.from.members) addresses[member.id] = member.address;
  for (const Member& member : in.to.members) {
    const auto before = addresses.find(member.id);
    if (before == addresses.end() || before->second == member.address) continue;
    out.push_back(fmt::format(
        "members: the address of {} changes from {} to {}: a resize refuses that; change addresses "
        "first, by 'ringshift topology apply'",
        member.id, before->second, member.address));
  }
  return out;
}

}  // namespace

Result<Forecast> forecast(const ForecastInputs& in) {
  if (const Status sound = check(in); !sound) return std::unexpected(sound.error());
  const Result<topology::Diff> diff = topology::diff(in.from, in.to);
  if (!diff) return std::unexpected(diff.error());
  const Result<topology::Shares> before = topology::shares(in.from), after = topology::shares(in.to);
  if (!before) return std::unexpected(before.error());
  if (!after) return std::unexpected(after.error());

  Forecast out;
  out.moved_share = diff->moved_share;
  out.minimum_share = diff->minimum_share;
  out.exact = diff->exact && before->exact && after->exact;
  Ledger ledger(in, *before, *after);
  for (const topology::PairShare& pair : diff->pairs) {
    out.pairs.push_back(ledger.move(pair));
    out.keys_to_move += out.pairs.back().keys;
    if (out.pairs.back().between_unchanged) out.between_unchanged_share += pair.share;
  }
  out.members = std::move(ledger).finish();
  out.bytes_to_move = out.keys_to_move * in.value_bytes;
  out.seconds = seconds_for(in, out.keys_to_move, out.bytes_to_move);
  out.bound_by_bytes = out.bytes_to_move / in.bytes_per_second > out.keys_to_move / in.keys_per_second;
  out.origin_now = origin_qps(in.traffic, 0);
  out.origin_cold = origin_qps(in.traffic, out.moved_share);
  out.hit_rate_cold = hit_rate(in.traffic, out.moved_share);
  // Each moved key is where a router looks for it, in its old place or its new one: no lookup misses for it.
  out.origin_live = out.origin_now;
  if (in.origin_limit_qps) {
    out.safe_step = largest_safe_step(in.traffic, out.moved_share, *in.origin_limit_qps);
  }
  add_steps(in, out);

  out.warnings = topology::warnings(in.to);
  std::ranges::move(topology::change_warnings(in.from, in.to), std::back_inserter(out.warnings));
  const std::vector<std::string> addresses = changed_addresses(in);
  out.can_resize_live = in.to.protocol == topology::Protocol::redis &&
                        in.from.consistency == in.to.consistency &&
                        in.to.consistency != topology::Consistency::none && addresses.empty();
  std::ranges::copy(addresses, std::back_inserter(out.warnings));
  judge(in, out);
  return out;
}

}  // namespace ringshift::plan
