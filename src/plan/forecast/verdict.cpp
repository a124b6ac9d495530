#include "plan/forecast/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/forecast/units.h"

namespace ringshift::plan {
namespace {

std::string times_text(double now, double then) {
  if (now <= 0) return "";
  return fmt::format(" ({:.1f} times)", then / now);
}

// The member with the least room of those that get keys; nullptr when no memory is known.
const MemberForecast* fullest(const Forecast& out) {
  const MemberForecast* worst = nullptr;
  for (const MemberForecast& member : out.members) {
    if (member.bytes_in <= 0 || !member.memory_peak || member.max_memory.value_or(0) <= 0) continue;
    if (worst == nullptr ||
        *member.memory_peak / *member.max_memory > *worst->memory_peak / *worst->max_memory)
      worst = &member;
  }
  return worst;
}

std::string room_text(const MemberForecast& member) {
  return fmt::format("{} would need {} of its maxmemory of {}", member.id, bytes_text(*member.memory_peak),
                     bytes_text(*member.max_memory));
}

// Every member without room; the first three by name.
std::string lacking_text(const Forecast& out) {
  constexpr int kNamed = 3;
  std::string text;
  int count = 0;
  for (const MemberForecast& member : out.members) {
    if (member.has_room) continue;
    if (++count <= kNamed) text += (count == 1 ? "" : ", ") + room_text(member);
  }
  if (count > kNamed) text += fmt::format(", and {} more members lack room", count - kNamed);
  return text;
}

std::string safe_step_text(const SafeStep& safe) {
  if (safe.slices == 0) return "and not even one of 1024 slices at a time is safe";
  return fmt::format("and is safe only in {} steps of at most {} of the keyspace, each warm before the next",
                     safe.steps, percent_text(safe.keyspace_share));
}

Judgement judge_cold(const ForecastInputs& in, const Forecast& out) {
  const std::string jump =
      fmt::format("a cold switch would take the origin from {}/s to {}/s{}", count_text(out.origin_now),
                  count_text(out.origin_cold), times_text(out.origin_now, out.origin_cold));
  const std::string lacking = lacking_text(out);
  if (in.origin_limit_qps) {
    const std::string limit = count_text(*in.origin_limit_qps) + "/s";
    if (out.origin_now > *in.origin_limit_qps) {
      return {Verdict::unsafe, fmt::format("{}, and it is above its limit of {} already", jump, limit)};
    }
    if (out.origin_cold > *in.origin_limit_qps) {
      return {Verdict::unsafe, fmt::format("{}, above its limit of {}, {}", jump, limit,
                                           out.safe_step ? safe_step_text(*out.safe_step) : "")};
    }
    if (!lacking.empty()) return {Verdict::unsafe, jump + ", and " + lacking};
    if (out.origin_cold > kTight * *in.origin_limit_qps && out.origin_cold > out.origin_now) {
      return {Verdict::caution, fmt::format("{}, close to its limit of {}", jump, limit)};
    }
    return {Verdict::safe, fmt::format("{}, within its limit of {}", jump, limit)};
  }
  if (!lacking.empty()) return {Verdict::unsafe, jump + ", and " + lacking};
  if (out.origin_cold <= out.origin_now)
    return {Verdict::safe, "a cold switch would not raise the origin's load"};
  return {Verdict::caution, jump + ", and whether it bears that cannot be said without --origin-limit-qps"};
}

std::string why_not_live(const ForecastInputs& in) {
  if (in.to.protocol != topology::Protocol::redis) return "a live resize moves Redis data only";
  if (in.from.consistency != in.to.consistency) return "a live resize does not change the consistency";
  if (in.to.consistency == topology::Consistency::none) {
    return "with consistency none there is no data to move";
  }
  return "a live resize does not change a member's address";
}

Judgement judge_live(const ForecastInputs& in, const Forecast& out) {
  if (!out.can_resize_live) return {Verdict::unsafe, why_not_live(in)};
  if (const std::string lacking = lacking_text(out); !lacking.empty()) {
    return {Verdict::unsafe, "a live resize would be refused for want of memory: " + lacking};
  }
  const std::string work =
      fmt::format("a live resize moves {} keys ({}) in {} and adds no load to the origin",
                  count_text(out.keys_to_move), bytes_text(out.bytes_to_move), seconds_text(out.seconds));
  if (in.origin_limit_qps && out.origin_now > *in.origin_limit_qps) {
    return {Verdict::caution, fmt::format("{}, but at {}/s it is above its limit of {}/s already", work,
                                          count_text(out.origin_now), count_text(*in.origin_limit_qps))};
  }
  const MemberForecast* full = fullest(out);
  if (full != nullptr && *full->memory_peak > kTight * *full->max_memory) {
    return {Verdict::caution, work + ", but room is tight: " + room_text(*full)};
  }
  return {Verdict::safe, work};
}

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text + ".";
}

}  // namespace

const char* to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::safe:
      return "safe";
    case Verdict::caution:
      return "caution";
    case Verdict::unsafe:
      return "unsafe";
  }
  return "?";
}

void judge(const ForecastInputs& in, Forecast& out) {
  if (out.moved_share <= 0) {
    out.cold = out.live = {Verdict::safe, "no key changes owner, so nothing moves and nothing is cold"};
    out.verdict = Verdict::safe;
    out.reason = sentence(out.live.reason);
    return;
  }
  out.cold = judge_cold(in, out);
  out.live = judge_live(in, out);
  out.verdict = out.can_resize_live ? out.live.verdict : out.cold.verdict;
  out.reason = sentence(out.live.reason + "; " + out.cold.reason);
}

}  // namespace ringshift::plan
