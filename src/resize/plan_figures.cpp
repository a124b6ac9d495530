#include "resize/plan_figures.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "plan/edit.h"
#include "plan/forecast/units.h"
#include "resize/phases.h"

namespace ringshift::resize {
namespace {

// What is taken where nothing is given or measured.
constexpr double kAssumedKeys = 1e6, kAssumedValueBytes = 1024, kAssumedQps = 10'000, kAssumedHitRate = 0.95;

// Takes the flag, else what was measured, else what is assumed, and notes which.
class Figures {
 public:
  template <class T>
  double pick(std::string name, const std::optional<T>& given, const std::optional<double>& measured,
              double assumed, const char* otherwise, std::string measured_note, std::string assumed_note) {
    PlanFigure figure{std::move(name), assumed, otherwise, "", std::move(assumed_note)};
    if (given) {
      figure.value = static_cast<double>(*given);
      figure.source = "given";
      figure.note.clear();
    } else if (measured) {
      figure.value = *measured;
      figure.source = "measured";
      figure.note = std::move(measured_note);
    }
    list_.push_back(std::move(figure));
    return list_.back().value;
  }
  void say(std::string text) { list_.back().text = std::move(text); }
  [[nodiscard]] std::vector<PlanFigure> take() && { return std::move(list_); }

 private:
  std::vector<PlanFigure> list_;
};

std::string share_text(double share) { return fmt::format("{:.4g}", share); }

}  // namespace

PlanBasis plan_basis(const topology::Spec& from, const topology::Spec& to, const GivenFigures& given,
                     const std::optional<LiveFigures>& live) {
  Figures figures;
  plan::ForecastInputs in;
  in.from = from;
  in.to = to;
  if (live) in.members = live->members;
  if (given.keys) {  // The members' own counts would contradict it.
    for (plan::MemberFigures& member : in.members) member.keys.reset();
  }
  if (given.qps) {
    for (plan::MemberFigures& member : in.members) member.ops_per_second.reset();
  }
  const auto measured = [&](auto field) -> std::optional<double> {
    if (!live) return std::nullopt;
    return field(*live);
  };
  const std::string traffic = live ? fmt::format("lookups at the {}", live->traffic_source) : "";

  in.keys = figures.pick("keys", given.keys, measured([](const auto& l) { return l.keys; }), kAssumedKeys,
                         "assumed", "all members' DBSIZE", "--keys or --live");
  figures.say(plan::count_text(in.keys));
  in.value_bytes =
      figures.pick("value_bytes", given.value_bytes, measured([](const auto& l) { return l.value_bytes; }),
                   kAssumedValueBytes, "assumed",
                   live && live->sampled_keys > 0 ? fmt::format("MEMORY USAGE of {} keys", live->sampled_keys)
                                                  : "used_memory_dataset by keys",
                   "--value-bytes or --live");
  figures.say(plan::bytes_text(in.value_bytes));
  in.traffic.qps =
      figures.pick("qps", given.qps, measured([](const auto& l) { return l.lookups_per_second; }),
                   kAssumedQps, "assumed", traffic, "--qps or --live");
  figures.say(plan::count_text(in.traffic.qps) + "/s");
  in.traffic.hit_rate =
      figures.pick("hit_rate", given.hit_rate, measured([](const auto& l) { return l.hit_rate; }),
                   kAssumedHitRate, "assumed", traffic, "--hit-rate, or --live on a cluster with traffic");
  figures.say(share_text(in.traffic.hit_rate));
  in.traffic.cold_hit_rate = figures.pick("cold_hit_rate", given.cold_hit_rate, {}, 0, "assumed", "",
                                          "--cold-hit-rate; 0: a moved key is a miss");
  figures.say(share_text(in.traffic.cold_hit_rate));
  const double limit =
      figures.pick("origin_limit_qps", given.origin_limit_qps, {}, std::numeric_limits<double>::quiet_NaN(),
                   "unknown", "", "--origin-limit-qps has the cold switch judged");
  in.origin_limit_qps = given.origin_limit_qps;
  figures.say(std::isnan(limit) ? "-" : plan::count_text(limit) + "/s");
  // A resize moves at the limits of the spec in force.
  in.keys_per_second =
      figures.pick("rate", given.rate, {}, static_cast<double>(in.from.limits.move_keys_per_second), "spec",
                   "", "limits.move_keys_per_second, or --rate");
  figures.say(plan::count_text(in.keys_per_second) + " keys/s");
  in.bytes_per_second = figures.pick("rate_bytes", given.rate_bytes, {},
                                     static_cast<double>(in.from.limits.move_bytes_per_second), "spec", "",
                                     "limits.move_bytes_per_second, or --rate-bytes");
  figures.say(plan::bytes_text(in.bytes_per_second) + "/s");
  in.steps = given.steps.empty() ? kDefaultSteps : given.steps;
  return {std::move(in), std::move(figures).take()};
}

Result<PlanPreview> preview_plan(const topology::Spec& from, const topology::Spec& written,
                                 const GivenFigures& given, bool ask_members,
                                 std::shared_ptr<const backend::MemberAccess> access) {
  const Result<topology::Spec> to = plan::successor(from, written);
  if (!to) return std::unexpected(to.error());
  PlanPreview preview;
  std::optional<LiveFigures> live;
  if (ask_members && from.protocol == topology::Protocol::redis) {
    Result<LiveFigures> seen = glance(from, *to, std::move(access));
    if (seen) live = std::move(*seen);
    if (!seen) preview.why_not = seen.error().message;
  }
  // A resize moves at the new spec's limits, unless a rate is given.
  topology::Spec limited = from;
  limited.limits = to->limits;
  preview.basis = plan_basis(limited, *to, given, live);
  Result<plan::Forecast> out = plan::forecast(preview.basis.in);
  if (!out) return std::unexpected(out.error());
  preview.out = *std::move(out);
  preview.carried_over = *to != written;
  preview.live = live.has_value();
  return preview;
}

}  // namespace ringshift::resize
