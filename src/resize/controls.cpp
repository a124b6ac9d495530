#include "resize/controls.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <ctime>
#include <optional>

namespace ringshift::resize {
namespace {

using std::chrono::milliseconds;

constexpr int kMinutesOfDay = 24 * 60;
constexpr UnixMs kMinuteMs = 60'000;

std::unexpected<Error> bad_control(std::string message) {
  return fail(ErrorKind::invalid, std::move(message));
}

// Exactly `digits` digits at `at`.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  int value = 0;
  for (std::size_t i = at; i < at + digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// "02:00" as minutes of the day.
std::optional<int> parse_minute(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto hour = digits_at(text, 0, 2), minute = digits_at(text, 3, 2);
  if (!hour || !minute || *hour > 23 || *minute > 59) return std::nullopt;
  return *hour * 60 + *minute;
}

// RFC 3339: 2026-12-01T02:00:00Z, with a fraction or an offset (+01:00).
std::optional<UnixMs> parse_moment(std::string_view text) {
  const auto year = digits_at(text, 0, 4), month = digits_at(text, 5, 2), day = digits_at(text, 8, 2);
  const auto hour = digits_at(text, 11, 2), minute = digits_at(text, 14, 2), second = digits_at(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second || text.size() < 20) return std::nullopt;
  const bool shaped = text[4] == '-' && text[7] == '-' &&
                      (text[10] == 'T' || text[10] == 't' || text[10] == ' ') && text[13] == ':' &&
                      text[16] == ':';
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!shaped || !date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  std::size_t at = 19;
  if (text[at] == '.') {
    ++at;
    const std::size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    if (at == first || at == text.size()) return std::nullopt;
  }
  int offset = 0;
  if (text[at] == '+' || text[at] == '-') {
    const auto hours = digits_at(text, at + 1, 2), minutes = digits_at(text, at + 4, 2);
    if (!hours || !minutes || text.size() != at + 6 || text[at + 3] != ':' || *hours > 23 || *minutes > 59) {
      return std::nullopt;
    }
    offset = (*hours * 60 + *minutes) * (text[at] == '-' ? -1 : 1);
  } else if ((text[at] != 'Z' && text[at] != 'z') || text.size() != at + 1) {
    return std::nullopt;
  }
  const auto days = std::chrono::sys_days(date).time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(days).count() + *hour * 3600L +
                       *minute * 60L + *second - offset * 60L;
  return seconds * 1000;
}

std::tm local(UnixMs at) {
  const std::time_t seconds = static_cast<std::time_t>(at / 1000);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return parts;
}

int minute_of_day(UnixMs at) {
  const std::tm parts = local(at);
  return parts.tm_hour * 60 + parts.tm_min;
}

// The first moment after `now` at which the local clock shows `minute`. A time that the clock skips (it is
// put forward in spring) is the moment that mktime makes of it.
UnixMs next_time(int minute, UnixMs now) {
  for (int days = 0; days <= 2; ++days) {
    std::tm parts = local(now);
    parts.tm_mday += days;
    parts.tm_hour = minute / 60;
    parts.tm_min = minute % 60;
    parts.tm_sec = 0;
    parts.tm_isdst = -1;
    const UnixMs at = static_cast<UnixMs>(std::mktime(&parts)) * 1000;
    if (at > now) return at;
  }
  return now + kMinutesOfDay * kMinuteMs;
}

std::string clock_text(int minute) { return fmt::format("{:02}:{:02}", minute / 60, minute % 60); }

struct Bound {
  std::optional<int> minute;
  std::optional<UnixMs> moment;
  [[nodiscard]] bool given() const { return minute || moment; }
};

Result<Bound> parse_bound(std::string_view name, std::string_view text) {
  Bound bound;
  if (text.empty()) return bound;
  bound.minute = parse_minute(text);
  if (!bound.minute) bound.moment = parse_moment(text);
  if (bound.given()) return bound;
  return bad_control(fmt::format(
      "{}: '{}' is no time: give HH:MM (02:00) or a full one (2026-12-01T02:00:00Z)", name, text));
}

constexpr std::string_view kFigureNames[] = {"hit_rate", "p99_ms", "origin_qps"};

Result<Condition> parse_condition(std::string_view text) {
  constexpr std::string_view kShape = "write hit_rate<0.9, p99_ms>20 or origin_qps>8000";
  const std::size_t sign = text.find_first_of("<>");
  if (sign == std::string_view::npos) {
    return bad_control(fmt::format("abort-if: '{}' has neither < nor >: {}", text, kShape));
  }
  Condition condition;
  condition.below = text[sign] == '<';
  bool known = false;
  for (std::size_t i = 0; i < std::size(kFigureNames); ++i) {
    if (text.substr(0, sign) != kFigureNames[i]) continue;
    condition.figure = static_cast<Condition::Figure>(i);
    known = true;
  }
  if (!known) {
    return bad_control(fmt::format("abort-if: '{}' is none of hit_rate, p99_ms, origin_qps: {}",
                                   text.substr(0, sign), kShape));
  }
  const std::string_view number = text.substr(sign + 1);
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), condition.limit);
  if (code != std::errc() || end != number.data() + number.size() || !std::isfinite(condition.limit) ||
      condition.limit < 0) {
    return bad_control(
        fmt::format("abort-if: '{}': '{}' is no number of 0 or more: {}", text, number, kShape));
  }
  if (condition.figure == Condition::Figure::hit_rate && condition.limit > 1) {
    return bad_control(
        fmt::format("abort-if: '{}': a hit rate is within 0 and 1{}", text,
                    condition.limit <= 100 ? fmt::format(" (is {:g} meant?)", condition.limit / 100) : ""));
  }
  return condition;
}

}  // namespace

UnixMs unix_now() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string local_time(UnixMs at) {
  if (at == 0) return "";
  const std::tm parts = local(at);
  const long offset = parts.tm_gmtoff / 60;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}{:02}:{:02}", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     offset < 0 ? '-' : '+', std::abs(offset) / 60, std::abs(offset) % 60);
}

Result<milliseconds> parse_duration(std::string_view text) { return base::parse_duration(text); }

std::string duration_text(milliseconds duration) {
  const auto ms = std::max<std::int64_t>(0, duration.count());
  if (ms < 1000) return fmt::format("{} ms", ms);
  const std::int64_t seconds = ms / 1000;
  if (seconds < 60)
    return ms % 1000 == 0 ? fmt::format("{} s", seconds)
                          : fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

Result<Window> make_window(std::string_view at, std::string_view until, UnixMs now) {
  const Result<Bound> first = parse_bound("at", at), last = parse_bound("until", until);
  if (!first) return std::unexpected(first.error());
  if (!last) return std::unexpected(last.error());
  Window window;
  if (first->minute && last->minute) {
    if (*first->minute == *last->minute) {
      return bad_control(fmt::format(
          "at {} until {}: that is no time at all: leave both away, or make them differ", at, until));
    }
    window.from_minute = *first->minute;
    window.to_minute = *last->minute;
    return window;
  }
  if (first->given()) window.not_before = first->moment ? *first->moment : next_time(*first->minute, now);
  if (last->given()) {
    window.not_after =
        last->moment ? *last->moment : next_time(*last->minute, std::max(now, window.not_before));
    if (window.not_after <= std::max(now, window.not_before)) {
      return bad_control(fmt::format("until {}: that is over before it begins", until));
    }
  }
  return window;
}

bool is_open(const Window& window, UnixMs now) {
  if (window.from_minute >= 0) {
    const int minute = minute_of_day(now);
    return window.from_minute < window.to_minute ? minute >= window.from_minute && minute < window.to_minute
                                                 : minute >= window.from_minute || minute < window.to_minute;
  }
  return now >= window.not_before && (window.not_after == 0 || now < window.not_after);
}

UnixMs opens_at(const Window& window, UnixMs now) {
  if (window.from_minute >= 0) return next_time(window.from_minute, now);
  return now < window.not_before ? window.not_before : 0;
}

UnixMs closes_at(const Window& window, UnixMs now) {
  return window.from_minute >= 0 ? next_time(window.to_minute, now) : window.not_after;
}

std::string to_text(const Window& window) {
  if (window.always()) return "";
  if (window.from_minute >= 0) {
    return fmt::format("{} to {} every day", clock_text(window.from_minute), clock_text(window.to_minute));
  }
  std::string text = window.not_before == 0 ? "" : "from " + local_time(window.not_before);
  if (window.not_after != 0) text += (text.empty() ? "until " : " until ") + local_time(window.not_after);
  return text;
}

std::string_view name(Condition::Figure figure) { return kFigureNames[static_cast<std::size_t>(figure)]; }

std::string to_text(const Condition& condition) {
  return fmt::format("{}{}{:g}", name(condition.figure), condition.below ? '<' : '>', condition.limit);
}

std::string to_text(const std::vector<Condition>& conditions) {
  std::string text;
  for (const Condition& condition : conditions) text += (text.empty() ? "" : ",") + to_text(condition);
  return text;
}

Result<std::vector<Condition>> parse_conditions(std::string_view text) {
  std::vector<Condition> conditions;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    Result<Condition> condition = parse_condition(one);
    if (!condition) return std::unexpected(condition.error());
    conditions.push_back(*condition);
    if (conditions.size() > kMaxConditions) {
      return bad_control(fmt::format("abort-if: more than {} conditions", kMaxConditions));
    }
  }
  return conditions;
}

}  // namespace ringshift::resize
