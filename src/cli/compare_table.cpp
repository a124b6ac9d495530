// `ringshift compare` as a table for people and as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/encoding.h"
#include "cli/compare.h"
#include "cli/console.h"

namespace ringshift::cli::compare {
namespace {

using plan::compare::Family;
using plan::compare::Moved;
using plan::compare::Row;

constexpr const char* kRowFormat =
    "{:<23} {:>7} {:>7} {:>8}  {:>7} {:>7} {:>7}  {:>6} {:>6}  {:>7} {:>8} {:>8}\n";

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }
std::string ratio(double value) {
  if (!std::isfinite(value)) return "inf";
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3f}", value);
}
// A percentage that may be large or small.
std::string deviation(double value) { return fmt::format("{:.{}f}", 100 * value, value < 0.1 ? 2 : 1); }
std::string nanoseconds(double ns) { return fmt::format("{:.{}f}", ns, ns < 100 ? 1 : 0); }

std::string_view heading(Family family) {
  switch (family) {
    case Family::yours:
      return "your spec";
    case Family::ours:
      return "ringshift's own";
    case Family::peer:
      return "other programs'";
    case Family::article:
      return "published articles'";
  }
  return "";
}

std::string row_line(const Row& row) {
  if (!row.refused.empty()) return fmt::format("{:<23} cannot make this change: see below\n", row.name);
  return fmt::format(fmt::runtime(kRowFormat), row.name, percent(row.measured.share),
                     row.exact ? percent(row.exact->share) : "-", percent(row.measured.between_unchanged),
                     ratio(row.after.max_avg), row.expected ? ratio(row.expected->max_avg) : "-",
                     ratio(row.after.max_min), deviation(row.after.sd),
                     row.expected ? deviation(row.expected->sd) : "-", nanoseconds(row.cost.lookup_ns),
                     short_bytes(row.cost.bytes), short_time(row.cost.build_us));
}

std::string notes(const Report& report) {
  std::string out;
  const auto add = [&](const std::string& name, const std::string& note) {
    out += wrapped(fmt::format("  {}: {}", name, note), 6) + "\n";
  };
  for (const Row& row : report.rows) {
    if (!row.refused.empty()) add(row.name, "cannot make this change: " + row.refused);
    for (const std::string& warning : row.warnings) add(row.name, warning);
  }
  return out.empty() ? out : "\nWarnings:\n" + out;
}

std::string skew(const Report& report) {
  if (!report.has_skew) return {};
  std::string out =
      fmt::format("\nThe heaviest key prefixes, and how they fall under {}:\n", report.skew_placement);
  if (report.skew.empty()) return out + "  none: the keys share no beginning that ends in one of : / . | -\n";
  out += fmt::format("{:<32} {:>12} {:>8}  {:>7} {:>9}  {}\n", "prefix", "keys", "share %", "max/avg",
                     "by chance", "heaviest on");
  for (const auto& each : report.skew) {
    // Keys are anybody's bytes: nothing of them may drive the terminal.
    const std::string prefix = base::printable(each.prefix, 28);
    out +=
        fmt::format("{:<32} {:>12} {:>8}  {:>7} {:>9}  {}\n", prefix, grouped(each.keys), percent(each.share),
                    ratio(each.max_avg), ratio(each.max_avg_by_chance), each.heaviest);
  }
  return out;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t room = width;
  while (text.size() > room) {
    auto cut = text.rfind(' ', room);
    if (cut == std::string_view::npos || cut == 0 || text.find_first_not_of(' ') > cut) break;
    out.append(text.substr(0, cut)).append(1, '\n').append(indent, ' ');
    text.remove_prefix(cut + 1);
    room = width - indent;
  }
  return out.append(text);
}

std::string short_bytes(std::size_t bytes) {
  constexpr double kKilo = 1000;
  auto value = static_cast<double>(bytes);
  if (value < kKilo) return fmt::format("{} B", bytes);
  for (const char* unit : {"KB", "MB", "GB"}) {
    value /= kKilo;
    if (value < kKilo) return fmt::format("{:.{}f} {}", value, value < 100 ? 1 : 0, unit);
  }
  return fmt::format("{:.0f} GB", value);
}

std::string short_time(double microseconds) {
  constexpr double kKilo = 1000;
  if (microseconds < 1) return fmt::format("{:.0f} ns", microseconds * kKilo);
  if (microseconds < kKilo) return fmt::format("{:.{}f} us", microseconds, microseconds < 100 ? 1 : 0);
  if (microseconds < kKilo * kKilo) return fmt::format("{:.1f} ms", microseconds / kKilo);
  return fmt::format("{:.1f} s", microseconds / kKilo / kKilo);
}

std::string table(const Report& report) {
  std::string out =
      fmt::format("{}: {} keys ({}); no balanced placement moves less than {} %\n\n", report.title,
                  grouped(report.key_count), report.keys_source, percent(report.minimum));
  out += fmt::format(fmt::runtime(kRowFormat), "placement", "moved", "exactly", "needless", "max/avg",
                     "expect", "max/min", "sd", "expect", "look-up", "memory", "build");
  out += fmt::format(fmt::runtime(kRowFormat), "", "%", "%", "%", "", "", "", "%", "%", "ns", "", "");
  out.erase(out.find_last_not_of(" \n") + 1);
  out += '\n';
  const Row* previous = nullptr;
  for (const Row& row : report.rows) {
    if (previous == nullptr || previous->family != row.family)
      out += fmt::format("{}\n", heading(row.family));
    out += row_line(row);
    previous = &row;
  }
  return out + notes(report) + skew(report);
}

std::string csv(const Report& report) {
  const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{}", value) : "inf"; };
  std::string out =
      "placement,family,refused,moved_share,moved_share_exact,minimum_share,between_unchanged,"
      "between_unchanged_exact,max_avg,max_avg_expected,max_min,max_min_expected,relative_sd,"
      "relative_sd_expected,lookup_ns,bytes,build_us\n";
  for (const Row& row : report.rows) {
    out +=
        fmt::format("{},{},{},", row.name, plan::compare::to_string(row.family), row.refused.empty() ? 0 : 1);
    if (!row.refused.empty()) {
      out += std::string(13, ',') + "\n";
      continue;
    }
    const auto exact = [&](double Moved::* field) { return row.exact ? number(*row.exact.*field) : ""; };
    const auto expected = [&](double plan::compare::Balance::* field) {
      return row.expected ? number(*row.expected.*field) : "";
    };
    using plan::compare::Balance;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", number(row.measured.share),
                       exact(&Moved::share), number(row.minimum), number(row.measured.between_unchanged),
                       exact(&Moved::between_unchanged), number(row.after.max_avg),
                       expected(&Balance::max_avg), number(row.after.max_min), expected(&Balance::max_min),
                       number(row.after.sd), expected(&Balance::sd), number(row.cost.lookup_ns),
                       row.cost.bytes, number(row.cost.build_us));
  }
  return out;
}

}  // namespace ringshift::cli::compare
