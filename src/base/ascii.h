// ASCII alone, whatever the locale: names of protocols and hosts are compared so.
#pragma once
#include <string>
#include <string_view>

namespace ringshift::base {

[[nodiscard]] constexpr char ascii_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = ascii_lower(c);
  return out;
}

}  // namespace ringshift::base
