#include "cli/top_draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/resize_watch.h"

namespace ringshift::cli {
namespace {

constexpr std::array<std::string_view, kTopColumns> kHeads = {
    "MEMBER", "STATE", "SHARE", "REQ/S", "HIT %", "P99 MS", "ERR/S", "TIMEOUT/S", "IN FLIGHT", "AWAY"};
constexpr std::array<std::string_view, 9> kRouterHeads = {"ROUTER", "LISTEN", "VERSION", "REQ/S", "HIT %",
                                                          "P99 MS", "ERR/S",  "CLIENTS", "AGE S"};
constexpr std::size_t kDigestShown = 12;
constexpr std::size_t kRoutersDrawn = 20;
constexpr std::size_t kResizeLines = 8;
constexpr double kSilentSeconds = 3;  // A router tells about once a second.

std::string number(double value) {
  return grouped(static_cast<std::uint64_t>(std::llround(std::max(0.0, value))));
}
std::string small(double value) { return value >= 100 ? number(value) : fmt::format("{:.1f}", value); }
std::string percent(const std::optional<double>& part) {
  return part ? fmt::format("{:.2f}", *part * 100) : "-";
}
std::string millis(const std::optional<double>& value) {
  return !value ? "-" : *value >= 100 ? number(*value) : fmt::format("{:.2f}", *value);
}
std::string rate_of_bytes(double bytes) {
  return bytes >= 1048576 ? fmt::format("{:.1f} MiB/s", bytes / 1048576)
                          : fmt::format("{:.1f} KiB/s", bytes / 1024);
}

template <std::size_t N>
using Cells = std::array<std::string, N>;

Cells<kTopColumns> cells_of(const TopMember& m) {
  return {m.id,
          m.state,
          m.share ? fmt::format("{:.2f} %", *m.share * 100) : "-",
          number(m.figures.requests),
          percent(m.figures.hit_rate),
          millis(m.figures.p99_ms),
          small(m.figures.errors),
          small(m.timeouts),
          grouped(m.in_flight),
          m.away == 0 ? "" : fmt::format("{} routers", m.away)};
}

Cells<9> cells_of(const TopRouter& r, const TopFrame& frame) {
  const bool other = r.revision == frame.revision && r.digest != frame.digest;
  return {r.id,
          r.listen,
          fmt::format("{}{}", r.revision,
                      other                         ? " OTHER DIGEST"
                      : r.revision < frame.revision ? " behind"
                                                    : ""),
          number(r.figures.requests),
          percent(r.figures.hit_rate),
          millis(r.figures.p99_ms),
          small(r.figures.errors),
          grouped(r.clients),
          fmt::format("{:.0f}{}", r.age_seconds, r.age_seconds > kSilentSeconds ? " silent" : "")};
}

// Names to the left, numbers to the right. `marked`: the head that is shown inverse; N: none.
template <std::size_t N>
void add_table(std::vector<std::string>& lines, const std::array<std::string_view, N>& heads,
               const std::vector<Cells<N>>& rows, std::size_t names, std::size_t marked,
               const TopView& view) {
  std::array<std::size_t, N> widths{};
  for (std::size_t i = 0; i < N; ++i) {
    widths[i] = heads[i].size();
    for (const Cells<N>& row : rows) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto cell = [&](std::size_t i, std::string_view text) {
    return i < names ? fmt::format("{:<{}}", text, widths[i]) : fmt::format("{:>{}}", text, widths[i]);
  };
  // Cut by what is seen, not by escape sequences.
  const auto join = [&](const auto& texts, bool head) {
    std::string line;
    std::size_t seen = 0;
    for (std::size_t i = 0; i < N; ++i) {
      std::string text = (i == 0 ? "" : "  ") + cell(i, texts[i]);
      if (seen + text.size() > view.columns) text.resize(view.columns - seen);
      seen += text.size();
      const bool inverse = head && view.colours && i == marked;
      line += inverse ? "\x1b[7m" + text + "\x1b[27m" : text;
    }
    while (!head && line.ends_with(' ')) line.pop_back();
    return line;
  };
  lines.push_back((view.colours ? "\x1b[1m" : "") + join(heads, true));
  for (const Cells<N>& row : rows) lines.push_back(join(row, false));
}

std::string agreement(const TopFrame& frame) {
  std::size_t behind = 0, different = 0;
  for (const TopRouter& router : frame.routers) {
    if (router.revision < frame.revision) ++behind;
    if (router.revision == frame.revision && router.digest != frame.digest) ++different;
  }
  std::string text = fmt::format("{} router{}", frame.routers.size(), frame.routers.size() == 1 ? "" : "s");
  if (different != 0) return text + fmt::format(", {} WITH ANOTHER DIGEST", different);
  if (behind != 0) return text + fmt::format(", {} behind", behind);
  return frame.routers.empty() ? text : text + (frame.routers.size() == 1 ? ", up to date" : ", all agree");
}

void add_resize(std::vector<std::string>& lines, const TopFrame& frame, const TopView& view) {
  const resize::ResizeStatus& s = frame.resize;
  const bool under_way = s.state != "idle" && s.state != "finished" && s.state != "failed";
  if (!under_way) {
    std::string line =
        "resize: " + s.state + (s.state == "finished" && s.rolled_back ? " (rolled back)" : "");
    if (!s.last_error.empty()) line += ": " + s.last_error;
    std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    lines.push_back(line.substr(0, view.columns));
    return;
  }
  std::vector<std::string> drawn = picture(s, view.columns + 1);
  if (drawn.size() > kResizeLines) drawn.resize(kResizeLines);
  lines.insert(lines.end(), drawn.begin(), drawn.end());
}

// What the policy has to say, in a line: "" without one.
std::string membership_line(const TopFrame& frame) {
  if (!frame.membership) return "";
  const membership::Report& report = *frame.membership;
  const std::size_t candidates = report.candidates.size() + report.candidates_more;
  std::string line = fmt::format("membership: {} candidate{}", candidates, candidates == 1 ? "" : "s");
  std::string ids;
  for (const auto& gone : report.gone) ids += (ids.empty() ? "" : ", ") + gone.id;
  if (!ids.empty()) line += ", gone: " + ids;
  if (!report.elsewhere.empty()) line += fmt::format(", {} at another address", report.elsewhere.size());
  if (!report.last_error.empty()) line += ", LAST CHANGE REFUSED";
  if (!report.trouble.empty())
    line += fmt::format(", SOURCE {}: {}", report.held ? "NOT BELIEVED" : "IN TROUBLE", report.trouble);
  std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line;
}

std::vector<std::string> head_of(const TopFrame& frame, const TopView& view) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "ringshift top  {}  {}  topology {}  digest {}  {}", view.clock, frame.cluster,
      frame.revision == 0 ? "none yet" : std::to_string(frame.revision), frame.digest.substr(0, kDigestShown),
      frame.controller.empty() ? "NO CONTROLLER LEADS" : "controller " + frame.controller));
  lines.push_back(fmt::format(
      "{} requests/s  hit rate {}{}  worst p99 {}{}  {} errors/s  {}  {} clients  in {}  out {}",
      number(frame.all.requests), percent(frame.all.hit_rate), frame.all.hit_rate ? " %" : "",
      millis(frame.all.p99_ms), frame.all.p99_ms ? " ms" : "", small(frame.all.errors), agreement(frame),
      grouped(frame.clients), rate_of_bytes(frame.bytes_in), rate_of_bytes(frame.bytes_out)));
  if (std::string line = membership_line(frame); !line.empty()) lines.push_back(std::move(line));
  for (std::string& line : lines) line.resize(std::min(line.size(), view.columns));
  add_resize(lines, frame, view);
  return lines;
}

nlohmann::json figures_json(const TopFigures& figures) {
  nlohmann::json out = {{"requests_per_second", figures.requests}, {"errors_per_second", figures.errors}};
  if (figures.hit_rate) out["hit_rate"] = *figures.hit_rate;
  if (figures.p99_ms) out["p99_ms"] = *figures.p99_ms;
  return out;
}

}  // namespace

void sort_members(TopFrame& frame, const TopView& view) {
  const auto key = [&](const TopMember& m) -> double {
    switch (view.sort_by) {
      case 2:
        return m.share.value_or(-1);
      case 3:
        return m.figures.requests;
      case 4:
        return m.figures.hit_rate.value_or(-1);
      case 5:
        return m.figures.p99_ms.value_or(-1);
      case 6:
        return m.figures.errors;
      case 7:
        return m.timeouts;
      case 8:
        return static_cast<double>(m.in_flight);
      case 9:
        return static_cast<double>(m.away);
      default:
        return 0;
    }
  };
  std::ranges::stable_sort(frame.members, [&](const TopMember& a, const TopMember& b) {
    if (view.sort_by == 0) return a.id < b.id;
    if (view.sort_by == 1) return std::tie(a.state, a.id) < std::tie(b.state, b.id);
    return key(a) > key(b);
  });
  if (view.reversed) std::ranges::reverse(frame.members);
}

std::vector<std::string> draw_top(const TopFrame& frame, const TopView& view) {
  std::vector<std::string> lines = head_of(frame, view);
  std::vector<std::string> routers;
  std::vector<Cells<9>> router_rows;
  for (const TopRouter& router : frame.routers) {
    if (router_rows.size() < kRoutersDrawn) router_rows.push_back(cells_of(router, frame));
  }
  add_table(routers, kRouterHeads, router_rows, 2, 9, view);
  if (frame.routers.size() > kRoutersDrawn) {
    routers.push_back(fmt::format("... and {} routers more", frame.routers.size() - kRoutersDrawn));
  }
  const std::string keys =
      fmt::format("q quit   left/right sort by another column   r {}   space {}   up/down scroll",
                  view.reversed ? "the other way round" : "reverse", view.paused ? "go on" : "pause");
  // The members get what is left: two empty lines, their head, and the line of keys are counted.
  std::size_t room = frame.members.size();
  if (view.rows != 0) {
    const std::size_t fixed = lines.size() + routers.size() + 4;
    room = view.rows > fixed ? view.rows - fixed : 1;
  }
  const std::size_t begin = std::min(view.scroll, frame.members.size());
  const std::size_t end = std::min(frame.members.size(), begin + room);
  std::vector<Cells<kTopColumns>> rows;
  for (std::size_t i = begin; i < end; ++i) rows.push_back(cells_of(frame.members[i]));
  lines.emplace_back();
  add_table(lines, kHeads, rows, 2, view.sort_by, view);
  lines.emplace_back();
  lines.insert(lines.end(), routers.begin(), routers.end());
  if (view.rows != 0) lines.push_back(keys.substr(0, view.columns));
  return lines;
}

std::string top_json(const TopFrame& frame) {
  nlohmann::json out = figures_json(frame.all);
  out["cluster"] = frame.cluster;
  out["controller"] = frame.controller;
  out["revision"] = frame.revision;
  out["digest"] = frame.digest;
  out["clients"] = frame.clients;
  out["bytes_in_per_second"] = frame.bytes_in;
  out["bytes_out_per_second"] = frame.bytes_out;
  out["members"] = nlohmann::json::array();
  for (const TopMember& member : frame.members) {
    nlohmann::json row = figures_json(member.figures);
    row["id"] = member.id;
    row["address"] = member.address;
    row["state"] = member.state;
    if (member.share) row["share"] = *member.share;
    row["timeouts_per_second"] = member.timeouts;
    row["in_flight"] = member.in_flight;
    row["routers_away"] = member.away;
    out["members"].push_back(std::move(row));
  }
  out["routers"] = nlohmann::json::array();
  for (const TopRouter& router : frame.routers) {
    nlohmann::json row = figures_json(router.figures);
    row["id"] = router.id;
    row["listen"] = router.listen;
    row["revision"] = router.revision;
    row["digest"] = router.digest;
    row["clients"] = router.clients;
    row["age_seconds"] = router.age_seconds;
    out["routers"].push_back(std::move(row));
  }
  if (frame.membership) out["membership"] = nlohmann::json::parse(membership::to_json(*frame.membership));
  out["resize"] = nlohmann::json::parse(to_json(frame.resize));
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ringshift::cli
