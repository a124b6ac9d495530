#include "cli/resize_watch.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "cli/cli.h"
#include "cli/console.h"
#include "cli/requests.h"
#include "cli/resize_more.h"

namespace ringshift::cli {
namespace {

using resize::ResizeStatus;

constexpr std::chrono::milliseconds kWatchInterval{200};
constexpr std::size_t kPairsDrawn = 10;
constexpr std::size_t kBigKeysDrawn = 3;
constexpr std::size_t kDefaultWidth = 80;

std::string mib(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576);
}

std::string state_text(const ResizeStatus& s) {
  std::string text = s.state == "rolling_back" ? "rolling back" : s.state;
  if (s.state == "finished" && s.rolled_back) text += " (rolled back)";
  return text;
}

// "soaks until ...": what no step begins for; "" when nothing.
std::string waiting_text(const ResizeStatus& s) {
  if (s.waiting == "soak") return fmt::format("soaks until {}", s.waiting_until);
  if (s.waiting == "window" && s.waiting_until.empty())
    return "its window is over: 'ringshift resize resume' goes on without it, 'rollback' takes it back";
  if (s.waiting == "window") return fmt::format("waits for its window, which opens at {}", s.waiting_until);
  return "";
}

std::string conditions_text(const ResizeStatus& s) {
  std::string text = "aborts if " + s.abort_if + "; now";
  const auto show = [&](const char* name, const std::optional<double>& value) {
    text += value ? fmt::format(" {} {:.4g}", name, *value) : fmt::format(" {} ?", name);
  };
  show("hit_rate", s.hit_rate);
  show("p99_ms", s.p99_ms);
  show("origin_qps", s.origin_qps);
  return text;
}

// What is the same in words and in the picture.
void add_notes(const ResizeStatus& s, std::vector<std::string>& lines) {
  if (const std::string waiting = waiting_text(s); !waiting.empty()) lines.push_back(waiting);
  if (!s.window.empty()) lines.push_back("window: " + s.window);
  if (!s.abort_if.empty() && s.state != "finished") lines.push_back(conditions_text(s));
  if (!s.aborted.empty()) lines.push_back(s.aborted);
  add_more_notes(s, lines);
  if (s.queued) lines.emplace_back("another resize begins when this one is rolled back");
}

bool ended(const ResizeStatus& status) {
  return !status.queued && (status.state == "finished" || status.state == "failed" || status.state == "idle");
}

std::string meter(double fraction, std::size_t width) {
  const auto full = static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width));
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(width - full, '.'));
}

void draw_pairs(const ResizeStatus& s, std::vector<std::string>& lines) {
  auto pairs = s.pairs;
  std::ranges::stable_sort(pairs, [](const auto& a, const auto& b) { return a.moved > b.moved; });
  std::size_t name = 0;
  const std::size_t shown = std::min(pairs.size(), kPairsDrawn);
  for (std::size_t i = 0; i < shown; ++i)
    name = std::max(name, pairs[i].from.size() + pairs[i].to.size() + 4);
  for (std::size_t i = 0; i < shown; ++i) {
    const double most = static_cast<double>(std::max<std::uint64_t>(1, pairs[0].moved));
    lines.push_back(fmt::format("  {:<{}}  {} {}", fmt::format("{} -> {}", pairs[i].from, pairs[i].to), name,
                                meter(static_cast<double>(pairs[i].moved) / most, 20),
                                grouped(pairs[i].moved)));
  }
  if (shown < pairs.size()) lines.push_back(fmt::format("  ... and {} pairs more", pairs.size() - shown));
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultWidth;
  return size.ws_col;
}

// Draws over what it drew before, line by line, so that nothing flickers.
class Redrawn {
 public:
  void draw(const std::vector<std::string>& lines) {
    std::string out = lines_ == 0 ? "" : fmt::format("\x1b[{}A", lines_);
    for (const std::string& line : lines) out += "\r\x1b[K" + line + "\n";
    out += "\x1b[J";
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
    lines_ = lines.size();
  }
  void wipe() { draw({}); }

 private:
  std::size_t lines_ = 0;
};

int follow_ended(const ResizeStatus& status, const std::string& text, const std::string& replaced) {
  std::fputs(text.c_str(), stdout);
  // The one that was to follow was refused: last_error says why.
  const bool never_began = !replaced.empty() && status.id == replaced;
  return status.state == "failed" || never_began || !status.aborted.empty() ? kFailed : kDone;
}

}  // namespace

std::string describe(const ResizeStatus& s) {
  std::string line = s.state;
  if (s.state == "idle")
    return line + (s.last_error.empty() ? "\n" : fmt::format("\n  last error: {}\n", s.last_error));
  if (s.state == "finished" && s.rolled_back) line += " (rolled back)";
  if (!s.phase.empty()) line += fmt::format("  step {}/{} {}", s.step, s.steps, s.phase);
  line += fmt::format("  keys {}/{}  {}", s.keys_moved, s.keys_to_move, mib(s.bytes_moved));
  if (s.keys_per_second > 0)
    line += fmt::format("  {:.0f} keys/s  eta {:.0f} s", s.keys_per_second, s.eta_seconds);
  if (!s.waiting.empty() && s.waiting != "pause")
    line += s.waiting_until.empty() ? fmt::format("  waits: {}", s.waiting)
                                    : fmt::format("  waits: {} until {}", s.waiting, s.waiting_until);
  line += fmt::format("  longest hold {:.1f} ms  fences {}\n", s.hold_ms_max, s.fences);
  for (const auto& pair : s.pairs)
    if (pair.moved != 0) line += fmt::format("  {} -> {}: {} keys\n", pair.from, pair.to, pair.moved);
  for (const auto& key : s.big_keys) line += fmt::format("  big key: {}\n", key);
  std::vector<std::string> notes;
  add_notes(s, notes);
  for (const std::string& note : notes) line += fmt::format("  {}\n", note);
  if (!s.last_error.empty()) line += fmt::format("  last error: {}\n", s.last_error);
  return line;
}

std::vector<std::string> picture(const ResizeStatus& s, std::size_t width) {
  std::vector<std::string> lines;
  std::string head = fmt::format("resize {}: {}", s.id, state_text(s));
  if (!s.phase.empty()) head += fmt::format(", step {} of {}, {}", s.step, s.steps, s.phase);
  lines.push_back(head);
  const double share =
      s.keys_to_move == 0 ? 0 : static_cast<double>(s.keys_moved) / static_cast<double>(s.keys_to_move);
  lines.push_back(fmt::format("{} {:3.0f} %  {} of {} keys, {}", meter(share, 40), share * 100,
                              grouped(s.keys_moved), grouped(s.keys_to_move), mib(s.bytes_moved)));
  std::string rates = fmt::format("{} keys/s", grouped(static_cast<std::uint64_t>(s.keys_per_second)));
  if (s.rate != 0) rates += fmt::format(" (at most {}, {}/s)", grouped(s.rate), mib(s.byte_rate));
  if (s.eta_seconds > 0)
    rates +=
        ", eta " + resize::duration_text(std::chrono::milliseconds(static_cast<long>(s.eta_seconds) * 1000));
  lines.push_back(rates);
  lines.push_back(fmt::format("longest hold {:.1f} ms, {} connections fenced", s.hold_ms_max, s.fences));
  draw_pairs(s, lines);
  add_notes(s, lines);
  for (std::size_t i = 0; i < std::min(kBigKeysDrawn, s.big_keys.size()); ++i)
    lines.push_back("big key: " + s.big_keys[i]);
  if (!s.last_error.empty()) lines.push_back("last error: " + s.last_error);
  if (lines.size() > kPictureLines) lines.resize(kPictureLines);
  // A line that wraps would be two lines to the cursor; an error may have more than one.
  for (std::string& line : lines) {
    std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    if (line.size() >= width) line.resize(std::max<std::size_t>(width, 1) - 1);
  }
  return lines;
}

int follow_resize(coord::Coordinator& coordinator, const coord::ClusterKeys& keys, bool json,
                  const std::string& replaced) {
  const bool terminal = isatty(STDOUT_FILENO) != 0 && !json;
  Redrawn screen;
  std::string last;
  while (true) {
    const Result<ResizeStatus> status = read_status(coordinator, keys);
    if (!status) {
      report(status.error().message + "; still trying");
      std::this_thread::sleep_for(std::chrono::seconds(1));
      continue;
    }
    const std::string text = json ? to_json(*status) + "\n" : describe(*status);
    if (ended(*status)) {
      if (terminal) screen.wipe();
      return follow_ended(*status, text, replaced);
    }
    if (terminal) {
      screen.draw(picture(*status, terminal_width()));
    } else if (const std::string line = json ? text : text.substr(0, text.find('\n') + 1); line != last) {
      std::fputs(line.c_str(), stdout);
      std::fflush(stdout);
      last = line;
    }
    std::this_thread::sleep_for(kWatchInterval);
  }
}

}  // namespace ringshift::cli
