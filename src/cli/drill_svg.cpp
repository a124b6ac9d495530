// The picture of a drill: hit rate, origin queries and latency, all strategies on one time axis. Its colours
// follow the reader's light or dark theme, where the viewer says which (rsvg-convert takes the light ones).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/drill_report.h"

namespace ringshift::cli::drilling {
namespace {

constexpr double kWidth = 900, kLeft = 64, kRight = 884;
constexpr double kTop = 104, kHitBottom = 254, kOriginTop = 314, kOriginBottom = 464;
constexpr double kLatencyTop = 524, kLatencyBottom = 644, kHeight = 692;

struct Range {
  double low = 0, high = 1;
  double from = 0, to = 1;  // In the picture.
  bool logarithmic = false;
  [[nodiscard]] double at(double value) const {
    const double inside = std::clamp(value, low, high);
    const double share =
        logarithmic ? std::log(inside / low) / std::log(high / low) : (inside - low) / (high - low);
    return from + share * (to - from);
  }
};

std::string escaped_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string class_of(const std::string& name) {
  if (name == kModulo) return "modulo";
  if (name == kRing) return "ring";
  if (name == kDualRead) return "dual";
  if (name == kDualDelete) return "dual2";
  return name == kRingshift ? "ours" : "control";
}

void text_at(std::string& out, double x, double y, std::string_view classes, std::string_view text) {
  out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" class=\"{}\">{}</text>\n", x, y, classes,
                     escaped_text(text));
}

void line_at(std::string& out, double x1, double y1, double x2, double y2, std::string_view classes) {
  out += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1,
                     x2, y2, classes);
}

// 1, 2 or 5 times a power of ten, such that about `parts` of them make up `whole`.
double nice_step(double whole, double parts) {
  const double rough = whole / parts;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double times = rough / power;
  return power * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

template <class Pick>
void curve(std::string& out, const Outcome& outcome, const Range& x, const Range& y, Pick pick) {
  std::string points;
  for (std::size_t i = 0; i < outcome.seconds.size(); ++i) {
    // In the middle of its second.
    const double time = static_cast<double>(i) - static_cast<double>(outcome.change) + 0.5;
    if (time > x.high) break;
    points +=
        fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x.at(time), y.at(pick(outcome.seconds[i])));
  }
  out += fmt::format("<polyline points=\"{}\" class=\"line {}\"/>\n", points, class_of(outcome.name));
}

// The control run is left out: it would lie under ringshift's line.
std::vector<const Outcome*> drawn(const Report& report) {
  std::vector<const Outcome*> out;
  for (const Outcome& outcome : report.outcomes) {
    if (!outcome.seconds.empty()) out.push_back(&outcome);
  }
  // Ours last, so that it lies on top.
  std::ranges::stable_partition(out, [](const Outcome* outcome) { return outcome->name != kRingshift; });
  return out;
}

// Colours as they are, without variables: not every viewer knows those.
constexpr std::string_view kStyle = R"(<style>
  text { font-size: 13px; } .title { font-size: 19px; font-weight: 600; } .head { font-size: 14px; font-weight: 600; }
  .end { text-anchor: end; } .middle { text-anchor: middle; } .mark { stroke-dasharray: 4 4; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; } .ours { stroke-width: 3.5; }
  .page { fill: #ffffff; stroke: #d5dbe3; } text { fill: #5a6878; } .title, .head { fill: #1b2733; }
  .grid { stroke: #e6eaef; } .mark { stroke: #5a6878; } .modulo { stroke: #cf222e; }
  .ring { stroke: #b35900; } .dual { stroke: #8250df; } .dual2 { stroke: #2f6fd0; }
  .ours { stroke: #1a7f64; } .control { stroke: #6e7781; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #10141a; stroke: #303842; } text { fill: #9aa5b1; } .title, .head { fill: #e6eaef; }
    .grid { stroke: #232a33; } .mark { stroke: #9aa5b1; } .modulo { stroke: #ff6b6b; }
    .ring { stroke: #e59847; } .dual { stroke: #b48cf2; } .dual2 { stroke: #6ea8fe; }
    .ours { stroke: #3fbf9b; } .control { stroke: #8b96a3; }
  }
</style>
)";

}  // namespace

std::string svg(const Report& report) {
  const std::vector<const Outcome*> runs = drawn(report);
  const double before = report.options.before_seconds, after = report.options.seconds;
  const Range x{.low = -before, .high = after, .from = kLeft, .to = kRight};
  double most = report.options.pool.capacity();
  double lowest = 1, slowest = 100;
  for (const Outcome* run : runs) {
    for (const drill::Second& s : run->seconds) {
      most = std::max(most, static_cast<double>(s.origin_asked));
      lowest = std::min(lowest, s.hit_rate());
      slowest = std::max(slowest, s.p99_ms);
    }
  }
  const Range hits{.low = std::floor(lowest * 10) / 10, .high = 1, .from = kHitBottom, .to = kTop};
  const Range origin{.low = 0, .high = std::max(1.0, most * 1.05), .from = kOriginBottom, .to = kOriginTop};

  const Range latency{
      .low = 1, .high = slowest * 1.1, .from = kLatencyBottom, .to = kLatencyTop, .logarithmic = true};

  const std::string title = fmt::format("A cache changes under load: {}", change_in_words(report.options));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"system-ui, "
      "sans-serif\" "
      "role=\"img\" aria-label=\"{}\">\n<title>{}</title>\n<!-- Measured by ringshift drill. -->\n",
      kWidth, kHeight, escaped_text(title), escaped_text(title));
  out += kStyle;
  out +=
      fmt::format("<rect x=\"0.5\" y=\"0.5\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"10\" class=\"page\"/>\n",
                  kWidth - 1, kHeight - 1);
  text_at(out, 24, 34, "title", title);
  double at = 24;
  for (const Outcome* run : runs) {
    line_at(out, at, 57, at + 26, 57, "line " + class_of(run->name));
    text_at(out, at + 33, 62, "", run->name);
    at += 60 + 8.2 * static_cast<double>(run->name.size());
  }

  text_at(out, kLeft, kTop - 14, "head", "Hit rate");
  const double hit_step = hits.high - hits.low > 0.4 ? 0.2 : 0.1;
  for (double value = 1; value > hits.low - 1e-9; value -= hit_step) {
    line_at(out, kLeft, hits.at(value), kRight, hits.at(value), "grid");
    text_at(out, kLeft - 8, hits.at(value) + 4, "end", fmt::format("{:.0f} %", 100 * value));
  }
  text_at(out, kLeft, kOriginTop - 14, "head", "Queries a second that the application asks of its database");
  const double step = nice_step(origin.high, 4);
  for (double value = 0; value < origin.high; value += step) {
    line_at(out, kLeft, origin.at(value), kRight, origin.at(value), "grid");
    text_at(out, kLeft - 8, origin.at(value) + 4, "end", grouped(static_cast<std::uint64_t>(value)));
  }
  text_at(out, kLeft, kLatencyTop - 14, "head", "Slowest hundredth of the requests takes longer than");
  for (double value = 1; value < latency.high; value *= 10) {
    line_at(out, kLeft, latency.at(value), kRight, latency.at(value), "grid");
    text_at(out, kLeft - 8, latency.at(value) + 4, "end",
            value < 1000 ? fmt::format("{:.0f} ms", value) : fmt::format("{:.0f} s", value / 1000));
  }
  const double time_step = nice_step(before + after, 10);
  for (double time = -std::floor(before / time_step) * time_step; time <= after; time += time_step) {
    text_at(out, x.at(time), kLatencyBottom + 20, "middle", fmt::format("{:.0f} s", time));
  }
  for (const auto& [top, bottom] : {std::pair(kTop, kHitBottom), std::pair(kOriginTop, kOriginBottom),
                                    std::pair(kLatencyTop, kLatencyBottom)})
    line_at(out, x.at(0), top - 6, x.at(0), bottom, "mark");
  text_at(out, x.at(0) + 6, kTop - 14, "", "the change");
  if (const double capacity = report.options.pool.capacity(); capacity > 0) {
    line_at(out, kLeft, origin.at(capacity), kRight, origin.at(capacity), "mark");
    text_at(out, kRight - 4, origin.at(capacity) - 6, "end",
            fmt::format("all it can answer: {}", grouped(static_cast<std::uint64_t>(capacity))));
  }
  for (const Outcome* run : runs) {
    curve(out, *run, x, hits, [](const drill::Second& s) { return s.hit_rate(); });
    curve(out, *run, x, latency, [](const drill::Second& s) { return s.p99_ms; });
    curve(out, *run, x, origin, [](const drill::Second& s) { return static_cast<double>(s.origin_asked); });
  }
  text_at(out, kLeft, kHeight - 12, "",
          fmt::format("{:.0f} requests/s, {}; the strategies ran one after another under the same load.",
                      report.options.app.requests_per_second, report.origin));
  out += "</svg>\n";
  return out;
}

}  // namespace ringshift::cli::drilling
