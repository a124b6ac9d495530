#include "cli/drill_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/compare.h"
#include "cli/drill_live.h"

namespace ringshift::cli::drilling {
namespace {

using drill::Second;

constexpr std::size_t kSparkWidth = 50;

std::string percent_of(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string rounded(double number) {
  return grouped(static_cast<std::uint64_t>(std::max(0.0, number) + 0.5));
}
std::string milliseconds_of(double ms) {
  return ms < 100 ? fmt::format("{:.1f} ms", ms) : rounded(ms) + " ms";
}

std::string recovery_in_words(const Figures& f) {
  if (f.recovery.recovered) return fmt::format("{:.0f} s", f.recovery.seconds);
  return fmt::format("> {} s", f.rest.seconds);
}

// A row of the table: a label, and a cell for each column.
using Cell = std::function<std::string(const Outcome&, const Figures&)>;

}  // namespace

const Outcome* Report::find(std::string_view name) const {
  for (const Outcome& outcome : outcomes) {
    if (outcome.name == name) return &outcome;
  }
  return nullptr;
}

std::size_t Report::during_seconds() const {
  const Outcome* live = find(kRingshift);
  if (live == nullptr || live->change_seconds <= 0)
    return std::min<std::size_t>(kDuringSeconds, options.seconds);
  return static_cast<std::size_t>(std::ceil(live->change_seconds));
}

Figures Report::figures(const Outcome& o) const {
  Figures f;
  const std::span<const Second> all(o.seconds);
  const std::size_t change = std::min(o.change, all.size());
  const std::size_t during = std::min(change + during_seconds(), all.size());
  f.steady = drill::summary(all.first(change));
  f.during = drill::summary(all.subspan(change, during - change));
  f.after = drill::summary(all.subspan(during));
  f.rest = drill::summary(all.subspan(change));
  const bool compared = o.name == kRingshift || o.name == kControl;
  f.hit_rate_min = compared ? f.during.hit_rate_min : f.rest.hit_rate_min;
  f.origin_max = compared ? f.during.origin_max : f.rest.origin_max;
  f.recovery = drill::recovery(f.steady, all.subspan(change));
  const auto quantile = [&o](std::size_t first, std::size_t last) {
    return o.timeline->quantile_ms(first + o.skipped, last + o.skipped, 0.99);
  };
  const auto of_origin = [&o](std::size_t first, std::size_t last) {
    return o.timeline->origin_quantile_ms(first + o.skipped, last + o.skipped, 0.99);
  };
  f.p99_before = quantile(0, change);
  f.p99_during = quantile(change, during);
  f.p99_after = quantile(during, all.size());
  f.origin_p99_before = of_origin(0, change);
  f.origin_p99_during = of_origin(change, during);
  f.origin_p99_after = of_origin(during, all.size());
  return f;
}

std::vector<drill::Promise> Report::promises() const {
  const Outcome* live = find(kRingshift);
  if (live == nullptr || !live->complete()) return {};
  const Figures f = figures(*live);
  drill::PromiseInput in;
  in.steady = f.steady;
  in.during = f.during;
  if (control && control->complete()) {
    const Figures without = figures(*control);
    in.control_steady = without.steady;
    in.control = without.during;
  }
  in.lost_writes = live->verdicts.lost_writes;
  in.stale_reads = live->verdicts.stale_reads;
  in.keys_misplaced = live->keys_misplaced;
  in.noisy = !noise.empty();
  in.keeps_every_key = options.scenario != Scenario::kill;
  return drill::promises(in);
}

bool Report::sound() const {
  const auto done = [](const Outcome& outcome) { return outcome.complete(); };
  return interrupted.empty() && std::ranges::all_of(outcomes, done) && (!control || done(*control)) &&
         std::ranges::none_of(promises(), [](const drill::Promise& promise) {
           return promise.judged == drill::Judged::broken;
         });
}

void Report::look_for_noise() {
  noise.clear();
  const auto look = [this](const Outcome& outcome, bool whole) {
    drill::Quiet quiet = outcome.quiet;
    const std::size_t size =
        whole ? outcome.seconds.size() : std::min(outcome.change, outcome.seconds.size());
    const drill::Span span = drill::summary(std::span(outcome.seconds).first(size));
    if (span.requests > 0) quiet.late = static_cast<double>(span.late) / static_cast<double>(span.requests);
    for (const std::string& why : drill::noise(quiet)) noise.push_back(outcome.name + ": " + why);
  };
  for (const Outcome& outcome : outcomes) look(outcome, false);
  if (control) look(*control, true);
}

std::string load_in_words(const Report& report) {
  const Options& o = report.options;
  const std::string keys = o.trace.empty()
                               ? fmt::format("Zipf {} over {} objects, {:.0f} % of them updates",
                                             o.zipf.exponent, grouped(o.zipf.keys), 100 * o.zipf.updates)
                               : fmt::format("as recorded in {}", o.trace);
  std::string pool = fmt::format("{} behind {} connections", report.origin, o.pool.connections);
  if (o.pool.query.count() > 0) {
    pool += fmt::format(" that take {} ms a query: {} queries/s at most", o.pool.query.count(),
                        rounded(o.pool.capacity()));
  }
  return fmt::format(
      "{:.0f} requests/s from {} threads on a fixed schedule, {}; copies live {} s. Origin: {}; who waits "
      "longer than "
      "{} ms for a connection gets an error.",
      o.app.requests_per_second, o.app.threads, keys, o.app.ttl.count() / 1000, pool, o.pool.timeout.count());
}

std::vector<std::string> account(const Report& report) {
  std::vector<std::string> out;
  const bool dies = report.options.scenario == Scenario::kill;
  for (const Outcome& o : report.outcomes) {
    if (o.seconds.size() <= o.change) {
      out.push_back(fmt::format("{}: ended before the change ({}).", o.name, o.error));
      continue;
    }
    const Figures f = report.figures(o);
    std::string text = fmt::format("{}: ", o.name);
    if (o.name == kRingshift && dies) {
      text += fmt::format(
          "the dead member's keys were given up in {:.1f} s; until its turn came a key answered errors, read "
          "from the "
          "origin and not updated in the cache. The lowest second found {} of what was asked for, {} before; "
          "the origin "
          "was asked {} times in its worst second, {} a second before; {} requests failed. {} stale reads.",
          o.change_seconds, percent_of(f.hit_rate_min), percent_of(f.steady.hit_rate), grouped(f.origin_max),
          rounded(f.steady.origin_qps), grouped(f.rest.errors), grouped(o.verdicts.stale_reads));
    } else if (o.name == kRingshift) {
      text += fmt::format(
          "{} keys moved in {:.1f} s while they were served. The lowest second found {} of what was "
          "asked for, {} before; the origin answered {} queries/s on average during the resize, {} "
          "before",
          grouped(o.keys_moved), o.change_seconds, percent_of(f.hit_rate_min), percent_of(f.steady.hit_rate),
          rounded(f.during.origin_qps), rounded(f.steady.origin_qps));
      if (report.control && report.control->seconds.size() > report.control->change) {
        text += fmt::format(", {} in a run of equal length without a resize",
                            rounded(report.figures(*report.control).during.origin_qps));
      }
      text += fmt::format(". {} acknowledged writes lost, {} stale reads.", grouped(o.verdicts.lost_writes),
                          grouped(o.verdicts.stale_reads));
    } else {
      text += fmt::format(
          "{} of {} copies ({}) had another owner at once. The hit rate fell from {} to {}; the origin was "
          "asked {} times "
          "in its worst second, {} times what is usual",
          grouped(o.keys_changed_owner), grouped(o.keys_live),
          percent_of(o.keys_live == 0
                         ? 0
                         : static_cast<double>(o.keys_changed_owner) / static_cast<double>(o.keys_live)),
          percent_of(f.steady.hit_rate), percent_of(f.hit_rate_min), grouped(f.origin_max),
          f.steady.origin_qps > 0
              ? fmt::format("{:.1f}", static_cast<double>(f.origin_max) / f.steady.origin_qps)
              : "-");
      text +=
          fmt::format("; {} requests failed. {}.", grouped(f.rest.errors),
                      f.recovery.recovered
                          ? f.recovery.seconds == 0
                                ? "No second was out of the ordinary"
                                : fmt::format("It took {:.0f} s until all was as before", f.recovery.seconds)
                          : fmt::format("It was not as before within {} s", f.rest.seconds));
      text += fmt::format(" {} acknowledged writes were gone before their time, {} reads gave old values.",
                          grouped(o.verdicts.lost_writes), grouped(o.verdicts.stale_reads));
    }
    if (!o.complete()) text += fmt::format(" It ended early: {}.", o.error);
    out.push_back(std::move(text));
  }
  if (dies && report.find(kRingshift) != nullptr) {
    out.push_back(
        "What the dead member held is gone with any strategy; ringshift gives its keys up slice by slice, as "
        "fast "
        "as the origin bears it.");
  }
  return out;
}

std::string table(const Report& report) {
  std::vector<std::pair<const Outcome*, Figures>> columns;
  for (const Outcome& outcome : report.outcomes) {
    if (!outcome.seconds.empty()) columns.emplace_back(&outcome, report.figures(outcome));
  }
  if (report.control && !report.control->seconds.empty())
    columns.emplace_back(&*report.control, report.figures(*report.control));
  std::string out =
      fmt::format("\nThe drill: {}, {} s before and {} s after the change.\n\n  {:<28}",
                  change_in_words(report.options), report.options.before_seconds, report.options.seconds, "");
  for (const auto& [outcome, f] : columns) out += fmt::format("{:>17}", outcome->name);
  out += '\n';
  const auto row = [&](std::string_view label, const Cell& cell) {
    out += fmt::format("  {:<28}", label);
    for (const auto& [outcome, f] : columns) out += fmt::format("{:>17}", cell(*outcome, f));
    out += '\n';
  };
  row("hit rate, steady", [](const Outcome&, const Figures& f) { return percent_of(f.steady.hit_rate); });
  row("  lowest second", [](const Outcome&, const Figures& f) { return percent_of(f.hit_rate_min); });
  row("origin queries/s, steady",
      [](const Outcome&, const Figures& f) { return rounded(f.steady.origin_qps); });
  row(fmt::format("  mean of {} s", report.during_seconds()),
      [](const Outcome&, const Figures& f) { return rounded(f.during.origin_qps); });
  row("  worst second", [](const Outcome&, const Figures& f) { return grouped(f.origin_max); });
  row("origin p99, before",
      [](const Outcome&, const Figures& f) { return milliseconds_of(f.origin_p99_before); });
  row("  during", [](const Outcome&, const Figures& f) { return milliseconds_of(f.origin_p99_during); });
  row("request p99, before", [](const Outcome&, const Figures& f) { return milliseconds_of(f.p99_before); });
  row("  during", [](const Outcome&, const Figures& f) { return milliseconds_of(f.p99_during); });
  row("  after", [](const Outcome&, const Figures& f) { return milliseconds_of(f.p99_after); });
  row("requests failed", [](const Outcome&, const Figures& f) { return grouped(f.rest.errors); });
  row("time to recover", [](const Outcome&, const Figures& f) { return recovery_in_words(f); });
  row("keys with another owner", [](const Outcome& o, const Figures&) {
    return o.name == kControl ? "0" : grouped(o.name == kRingshift ? o.keys_moved : o.keys_changed_owner);
  });
  row("acknowledged writes lost",
      [](const Outcome& o, const Figures&) { return grouped(o.verdicts.lost_writes); });
  row("stale reads", [](const Outcome& o, const Figures&) { return grouped(o.verdicts.stale_reads); });

  out += '\n';
  for (const auto& [outcome, f] : columns) {
    const Sparklines lines = sparklines(outcome->seconds, kSparkWidth);
    out += fmt::format("  {:<17} hit rate {}\n  {:<17} origin   {}\n", outcome->name, lines.hit_rate, "",
                       lines.origin);
  }
  out += fmt::format("\n  {}\n\n", compare::wrapped(load_in_words(report), 2));
  for (const std::string& text : account(report)) out += fmt::format("  {}\n", compare::wrapped(text, 4));
  out += '\n';
  for (const drill::Promise& promise : report.promises()) {
    const char* word = promise.judged == drill::Judged::kept     ? "kept      "
                       : promise.judged == drill::Judged::broken ? "BROKEN    "
                                                                 : "not judged";
    out += fmt::format("  {} {}\n", word, promise.text);
  }
  if (const Outcome* live = report.find(kRingshift)) {
    for (const std::string& example : live->verdicts.examples)
      out += fmt::format("             {}\n", example);
  }
  if (!report.noise.empty()) {
    out += "\n  The machine was not quiet, so what depends on time is not judged where it looks broken:\n";
    for (const std::string& why : report.noise) out += fmt::format("    {}\n", why);
  }
  if (!report.interrupted.empty())
    out += fmt::format("\n  Not all strategies were run: {}.\n", report.interrupted);
  return out;
}

}  // namespace ringshift::cli::drilling
