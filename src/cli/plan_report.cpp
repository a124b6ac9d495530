#include "cli/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "plan/forecast/units.h"

namespace ringshift::cli {
namespace {

using plan::bytes_text;
using plan::count_text;
using plan::percent_text;
using plan::seconds_text;

constexpr std::size_t kRowsShown = 40;  // Of a table for people; --json has them all.

// Columns as wide as their widest cell: the first to the left, the others to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print() const {
    std::vector<std::size_t> widths(rows_[0].size(), 0);
    const std::size_t shown = std::min(rows_.size(), kRowsShown + 1);
    for (std::size_t r = 0; r < shown; ++r) {
      for (std::size_t c = 0; c < rows_[r].size(); ++c) widths[c] = std::max(widths[c], rows_[r][c].size());
    }
    for (std::size_t r = 0; r < shown; ++r) {
      std::string line = "  ";
      for (std::size_t c = 0; c < rows_[r].size(); ++c) {
        line += c == 0 ? fmt::format("{:<{}}", rows_[r][c], widths[c])
                       : fmt::format("  {:>{}}", rows_[r][c], widths[c]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      fmt::print("{}\n", line);
    }
    if (shown < rows_.size()) fmt::print("  ... and {} more: --json has them all\n", rows_.size() - shown);
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string memory_text(const std::optional<double>& bytes) { return bytes ? bytes_text(*bytes) : "-"; }

std::string limit_text(const std::optional<double>& bytes) {
  if (!bytes) return "-";
  return *bytes > 0 ? bytes_text(*bytes) : "none";
}

void print_figures(const PlanReport& report) {
  fmt::print("\nFigures\n");
  std::size_t name = 0, text = 0;
  for (const PlanFigure& figure : report.figures) {
    name = std::max(name, figure.name.size());
    text = std::max(text, figure.text.size());
  }
  for (const PlanFigure& figure : report.figures) {
    std::string label = figure.name;
    std::ranges::replace(label, '_', ' ');
    fmt::print("  {:<{}}  {:>{}}  {}{}{}\n", label, name, figure.text, text, figure.source,
               figure.note.empty() ? "" : ": ", figure.note);
  }
}

void print_movement(const PlanReport& report) {
  const plan::Forecast& out = report.out;
  fmt::print("\nMovement\n  {} of the keyspace moves; a balanced placement moves {} at least{}\n",
             percent_text(out.moved_share), percent_text(out.minimum_share),
             out.exact ? "" : " (shares from 1,000,000 sampled keys)");
  if (out.between_unchanged_share > 0) {
    fmt::print("  {} moves between members that do not change (marked *): this placement does that\n",
               percent_text(out.between_unchanged_share));
  }
  if (report.carried_over) {
    fmt::print("  the placement's state is carried over from the spec in force, as 'resize start' does\n");
  }
  if (out.pairs.empty()) return;
  fmt::print("  {} keys, {}, in {} at the set rate, bound by {}\n\n", count_text(out.keys_to_move),
             bytes_text(out.bytes_to_move), seconds_text(out.seconds), out.bound_by_bytes ? "bytes" : "keys");
  Table table({"from -> to", "share", "keys", "bytes"});
  for (const plan::PairForecast& pair : out.pairs) {
    table.add({fmt::format("{} -> {}{}", pair.from, pair.to, pair.between_unchanged ? " *" : ""),
               percent_text(pair.share), count_text(pair.keys), bytes_text(pair.bytes)});
  }
  table.print();
}

void print_members(const plan::Forecast& out) {
  const bool memory = std::ranges::any_of(
      out.members, [](const plan::MemberForecast& one) { return one.used_memory.has_value(); });
  fmt::print("\nMembers\n");
  std::vector<std::string> head = {"member", "share", "after", "ops/s", "after", "arrives", "leaves"};
  if (memory) head.insert(head.end(), {"used", "peak", "after", "maxmemory", "room"});
  Table table(head);
  for (const plan::MemberForecast& member : out.members) {
    std::vector<std::string> row = {member.id,
                                    percent_text(member.share_before),
                                    percent_text(member.share_after),
                                    count_text(member.ops_before),
                                    count_text(member.ops_after),
                                    bytes_text(member.bytes_in),
                                    bytes_text(member.bytes_out)};
    if (memory) {
      row.insert(row.end(), {memory_text(member.used_memory), memory_text(member.memory_peak),
                             memory_text(member.memory_after), limit_text(member.max_memory),
                             member.has_room ? "yes" : "NO"});
    }
    table.add(std::move(row));
  }
  table.print();
}

bool within_limit(const plan::ForecastInputs& in, const plan::StepForecast& step) {
  return step.cold_origin_qps <= *in.origin_limit_qps;
}

std::string limit_word(const plan::ForecastInputs& in, const plan::StepForecast& step) {
  if (!in.origin_limit_qps) return "-";
  return within_limit(in, step) ? "within" : "OVER";
}

void print_origin(const PlanReport& report) {
  const plan::Forecast& out = report.out;
  fmt::print("\nOrigin (lookups a second that miss)\n");
  fmt::print("  now {}/s\n", count_text(out.origin_now));
  fmt::print("  cold switch of everything at once {}/s{}, hit rate {}\n", count_text(out.origin_cold),
             out.origin_now > 0 ? fmt::format(" ({:.1f} times)", out.origin_cold / out.origin_now) : "",
             percent_text(out.hit_rate_cold));
  if (out.can_resize_live) {
    fmt::print("  live resize {}/s: each key is found in its old place or its new one\n",
               count_text(out.origin_live));
  }
  if (out.safe_step && out.safe_step->slices > 0) {
    fmt::print("  largest safe cold step: {} of the keyspace ({} of 1024 slices), {} step{}\n",
               percent_text(out.safe_step->keyspace_share), out.safe_step->slices, out.safe_step->steps,
               out.safe_step->steps == 1 ? "" : "s");
  } else if (out.safe_step) {
    fmt::print("  largest safe cold step: none, not even one of 1024 slices\n");
  }
  fmt::print("\nSteps\n");
  Table table({"up to", "slices", "keys", "bytes", "time", "cold origin/s", "extra/s", "hit rate", "limit",
               "live extra/s"});
  for (const plan::StepForecast& step : out.steps) {
    table.add({fmt::format("{:g} %", step.percent), std::to_string(step.slices), count_text(step.keys),
               bytes_text(step.bytes), seconds_text(step.seconds), count_text(step.cold_origin_qps),
               count_text(step.cold_extra_qps), percent_text(step.cold_hit_rate), limit_word(report.in, step),
               count_text(out.origin_live - out.origin_now)});
  }
  table.print();
}

std::string shouted(std::string word) {
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return word;
}

std::string kind_of(const topology::Spec& spec) {
  return fmt::format("{} member{}, {}", spec.members.size(), spec.members.size() == 1 ? "" : "s",
                     spec.placement.algorithm);
}

}  // namespace

void print_plan(const PlanReport& report) {
  fmt::print("Plan for cluster {}: from {} to {}\n", report.in.from.cluster, kind_of(report.in.from),
             kind_of(report.in.to));
  print_figures(report);
  print_movement(report);
  print_members(report.out);
  print_origin(report);
  if (!report.out.warnings.empty()) fmt::print("\nWarnings\n");
  for (const std::string& warning : report.out.warnings) fmt::print("  {}\n", warning);
  fmt::print("\nVerdict: {}. {}\n", shouted(plan::to_string(report.out.verdict)), report.out.reason);
}

void print_plan_shares(const PlanReport& report) {
  const plan::Forecast& out = report.out;
  fmt::print("Plan for cluster {}: from {} to {}\n", report.in.from.cluster, kind_of(report.in.from),
             kind_of(report.in.to));
  fmt::print("\nMovement\n  {} of the keyspace moves; a balanced placement moves {} at least\n\n",
             percent_text(out.moved_share), percent_text(out.minimum_share));
  Table pairs({"from -> to", "share"});
  for (const plan::PairForecast& pair : out.pairs) {
    pairs.add({fmt::format("{} -> {}", pair.from, pair.to), percent_text(pair.share)});
  }
  pairs.print();
  fmt::print("\nMembers\n");
  Table members({"member", "share", "after"});
  for (const plan::MemberForecast& member : out.members) {
    members.add({member.id, percent_text(member.share_before), percent_text(member.share_after)});
  }
  members.print();
}

void print_plan_json(const PlanReport& report) { fmt::print("{}\n", to_json(report)); }

}  // namespace ringshift::cli
