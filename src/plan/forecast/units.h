// Figures as people read them. Pure.
#pragma once
#include <string>

namespace ringshift::plan {

[[nodiscard]] std::string count_text(double count);      // 1234567.4 -> "1,234,567"
[[nodiscard]] std::string bytes_text(double bytes);      // 1536 -> "1.5 KiB"
[[nodiscard]] std::string seconds_text(double seconds);  // 200 -> "3 min 20 s"; two units at most
[[nodiscard]] std::string percent_text(double share);    // 0.2 -> "20.00 %"

}  // namespace ringshift::plan
