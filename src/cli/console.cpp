#include "cli/console.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace ringshift::cli {
namespace {

constexpr int kBarWidth = 28;
constexpr std::chrono::milliseconds kRedrawEvery{100};
constexpr const char* kEraseLine = "\r\033[K";

}  // namespace

Console::Console(std::FILE* out) : out_(out), terminal_(::isatty(::fileno(out)) == 1) {}

void Console::write_line(std::string_view text) {
  if (drawn_) std::fputs(kEraseLine, out_);
  drawn_ = false;
  label_.clear();
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fputc('\n', out_);
  std::fflush(out_);
}

void Console::bar(std::string_view label, double fraction, std::string_view detail) {
  fraction = std::clamp(fraction, 0.0, 1.0);
  const bool fresh = label != label_;
  if (fresh) {
    label_ = label;
    quarters_ = 0;
    next_draw_ = {};
  }
  if (!terminal_) {
    const int quarters = static_cast<int>(fraction * 4);
    if (quarters <= quarters_) return;
    quarters_ = quarters;
    fmt::print(out_, "{} {} %{}{}\n", label, quarters * 25, detail.empty() ? "" : ", ", detail);
    std::fflush(out_);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_draw_ && fraction < 1) return;
  next_draw_ = now + kRedrawEvery;
  const int full = static_cast<int>(fraction * kBarWidth);
  fmt::print(out_, "{}{} [{:=<{}}{: <{}}] {:3.0f} %  {}", kEraseLine, label, "", full, "", kBarWidth - full,
             fraction * 100, detail);
  std::fflush(out_);
  drawn_ = true;
}

void Console::transient(std::string_view text) {
  if (!terminal_) return;
  fmt::print(out_, "{}{}", kEraseLine, text);
  std::fflush(out_);
  drawn_ = true;
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

}  // namespace ringshift::cli
