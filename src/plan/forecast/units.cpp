#include "plan/forecast/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace ringshift::plan {

std::string count_text(double count) {
  std::string digits = fmt::format("{:.0f}", std::abs(std::round(count)));
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return std::round(count) < 0 ? "-" + digits : digits;
}

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (std::abs(bytes) < 1024) return fmt::format("{:.0f} B", bytes);
  std::size_t unit = 0;
  double value = bytes / 1024;
  // 1023.96 would be written 1024.0.
  for (; std::abs(value) >= 1023.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds <= 0) return "0 s";
  if (seconds < 1) return "under 1 s";
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  const auto two = [](double whole, double part, const char* unit, const char* smaller) {
    return part == 0 ? fmt::format("{:.0f} {}", whole, unit)
                     : fmt::format("{:.0f} {} {:.0f} {}", whole, unit, part, smaller);
  };
  const double rounded = std::round(seconds);
  if (rounded < kMinute) return fmt::format("{:.0f} s", rounded);
  if (rounded < kHour) return two(std::floor(rounded / kMinute), std::fmod(rounded, kMinute), "min", "s");
  const double minutes = std::round(rounded / kMinute);
  if (rounded < kDay) return two(std::floor(minutes / 60), std::fmod(minutes, 60), "h", "min");
  const double hours = std::round(rounded / kHour);
  return two(std::floor(hours / 24), std::fmod(hours, 24), "d", "h");
}

std::string percent_text(double share) { return fmt::format("{:.2f} %", share * 100); }

}  // namespace ringshift::plan
