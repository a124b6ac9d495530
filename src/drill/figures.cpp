#include "drill/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ringshift::drill {
namespace {

constexpr double kOthersBusy = 0.15, kStolen = 0.05, kLateShare = 0.02;

Judged judge(bool kept, bool noisy) {
  return kept ? Judged::kept : noisy ? Judged::unjudged : Judged::broken;
}

}  // namespace

Span summary(std::span<const Second> seconds) {
  Span span;
  span.seconds = seconds.size();
  if (seconds.empty()) return span;
  std::uint64_t gets = 0, hits = 0, asked = 0;
  span.hit_rate_min = 1;
  for (const Second& s : seconds) {
    gets += s.gets;
    hits += s.hits;
    asked += s.origin_asked;
    span.hit_rate_min = std::min(span.hit_rate_min, s.hit_rate());
    span.origin_max = std::max(span.origin_max, s.origin_asked);
    span.requests += s.requests;
    span.errors += s.errors;
    span.shed += s.shed;
    span.cache_errors += s.cache_errors;
    span.origin_timeouts += s.origin_timeouts;
    span.updates += s.updates;
    span.lost += s.lost;
    span.stale += s.stale;
    span.late += s.late;
  }
  const auto n = static_cast<double>(seconds.size());
  span.gets_per_second = static_cast<double>(gets) / n;
  span.origin_qps = static_cast<double>(asked) / n;
  span.hit_rate = gets == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(gets);
  return span;
}

double standard_error(double p, double n) { return n > 0 ? std::sqrt(std::max(0.0, p * (1 - p)) / n) : 0; }

double hit_rate_floor(const Span& steady) {
  return steady.hit_rate - kHitRateSlack -
         kStandardErrors * standard_error(steady.hit_rate, steady.gets_per_second);
}

double origin_ceiling(const Span& steady) {
  return kOriginWorstSlack * steady.origin_qps + kStandardErrors * std::sqrt(steady.origin_qps);
}

Recovery recovery(const Span& steady, std::span<const Second> after) {
  const double floor = hit_rate_floor(steady), ceiling = origin_ceiling(steady);
  std::size_t disturbed = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i].hit_rate() < floor || static_cast<double>(after[i].origin_asked) > ceiling)
      disturbed = i + 1;
  }
  return {static_cast<double>(disturbed), disturbed == 0 || disturbed + kSteadySeconds <= after.size()};
}

std::vector<std::string> noise(const Quiet& quiet) {
  std::vector<std::string> why;
  if (quiet.others > kOthersBusy) {
    why.push_back(fmt::format("other programs used {:.0f} % of the machine (more than {:.0f} %)",
                              100 * quiet.others, 100 * kOthersBusy));
  }
  if (quiet.stolen > kStolen) {
    why.push_back(fmt::format("the hypervisor took {:.0f} % of the processors (more than {:.0f} %)",
                              100 * quiet.stolen, 100 * kStolen));
  }
  if (quiet.late > kLateShare) {
    why.push_back(
        fmt::format("{:.1f} % of the requests began late without any change under way (more than {:.0f} %)",
                    100 * quiet.late, 100 * kLateShare));
  }
  return why;
}

std::vector<Promise> promises(const PromiseInput& in) {
  std::vector<Promise> out;
  if (in.keeps_every_key) {
    out.push_back({"nothing_lost", fmt::format("ringshift: {} acknowledged writes lost", in.lost_writes),
                   judge(in.lost_writes == 0, false)});
  }
  out.push_back({"nothing_stale", fmt::format("ringshift: {} stale reads", in.stale_reads),
                 judge(in.stale_reads == 0, false)});
  out.push_back({"nothing_misplaced",
                 fmt::format("ringshift: {} keys left where no router looks for them", in.keys_misplaced),
                 judge(in.keys_misplaced == 0, false)});
  if (!in.keeps_every_key) return out;
  const double error = standard_error(in.steady.hit_rate, in.steady.gets_per_second);
  out.push_back({"hit_rate",
                 fmt::format("ringshift: lowest second {:.3f}, steady {:.3f}: {} 0.01 + 3 s.e. ({:.4f})",
                             in.during.hit_rate_min, in.steady.hit_rate,
                             in.during.hit_rate_min >= hit_rate_floor(in.steady) ? "within" : "NOT within",
                             kStandardErrors * error),
                 judge(in.during.hit_rate_min >= hit_rate_floor(in.steady), in.noisy)});
  const double ratio = in.steady.origin_qps > 0 ? in.during.origin_qps / in.steady.origin_qps : 1;
  std::string mean = fmt::format("ringshift: origin {:.0f} queries/s during, {:.0f} steady: {:.3f}x, {} {}x",
                                 in.during.origin_qps, in.steady.origin_qps, ratio,
                                 ratio <= kOriginMeanSlack ? "within" : "NOT within", kOriginMeanSlack);
  Judged mean_judged = judge(ratio <= kOriginMeanSlack, in.noisy);
  // The control run has the same requests: what it shows as well comes with them, in few seconds by chance,
  // and not with the resize.
  const double without =
      in.control_steady.origin_qps > 0 ? in.control.origin_qps / in.control_steady.origin_qps : 1;
  if (ratio > kOriginMeanSlack && ratio <= kOriginMeanSlack * without) {
    mean += fmt::format("; the control run has {:.3f}x", without);
    mean_judged = Judged::unjudged;
  }
  out.push_back({"origin_mean", std::move(mean), mean_judged});
  if (in.control.seconds > 0) {
    const double worst = static_cast<double>(in.during.origin_max);
    const double bound = kOriginWorstSlack * static_cast<double>(in.control.origin_max);
    out.push_back(
        {"origin_worst",
         fmt::format("ringshift: origin's worst second {} queries, {} in the control run: {} 10 % above",
                     in.during.origin_max, in.control.origin_max,
                     worst <= bound ? "no more than" : "MORE than"),
         judge(worst <= bound, in.noisy)});
  }
  return out;
}

std::string sparkline(std::span<const double> values, double low, double high) {
  constexpr std::array<std::string_view, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string out;
  for (const double value : values) {
    const double share = high > low ? std::clamp((value - low) / (high - low), 0.0, 1.0) : 0;
    out += kBars[std::min<std::size_t>(7, static_cast<std::size_t>(share * 8))];
  }
  return out;
}

}  // namespace ringshift::drill
