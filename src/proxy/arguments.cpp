#include "proxy/arguments.h"

#include <cctype>
#include <charconv>
#include <limits>

#include "protocol/resp/command_table.h"

namespace ringshift::proxy {
namespace {

char lower(char c) noexcept { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// `pattern` is behind its '['; moves it behind the ']' or to the end.
bool in_class(std::string_view& pattern, char c) noexcept {
  const bool negated = pattern.starts_with('^');
  if (negated) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty() && pattern.front() != ']') {
    if (pattern.front() == '\\' && pattern.size() >= 2) {
      found |= lower(pattern[1]) == c;
      pattern.remove_prefix(2);
    } else if (pattern.size() >= 3 && pattern[1] == '-') {
      char first = lower(pattern[0]), last = lower(pattern[2]);
      if (first > last) std::swap(first, last);
      found |= first <= c && c <= last;
      pattern.remove_prefix(3);
    } else {
      found |= lower(pattern.front()) == c;
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return found != negated;
}

// Whether one character fits what `pattern` begins with, which is not '*'; moves it behind that.
bool fits_one(std::string_view& pattern, char c) noexcept {
  char first = pattern.front();
  pattern.remove_prefix(1);
  if (first == '?') return true;
  if (first == '[') return in_class(pattern, lower(c));
  if (first == '\\' && !pattern.empty()) {
    first = pattern.front();
    pattern.remove_prefix(1);
  }
  return lower(first) == lower(c);
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const std::string_view digits = text.substr(text.front() == '-' ? 1 : 0);
  if (digits.front() == '0' && text.size() > 1) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_memory(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const auto is = [&](std::string_view name) { return protocol::resp::equals_ignoring_case(unit, name); };
  const std::int64_t factor = is("") || is("b") ? 1
                              : is("k")         ? 1000
                              : is("kb")        ? 1024
                              : is("m")         ? 1000 * 1000
                              : is("mb")        ? 1024 * 1024
                              : is("g")         ? 1000 * 1000 * 1000
                              : is("gb")        ? 1024 * 1024 * 1024
                                                : 0;
  if (factor == 0 || value > std::numeric_limits<std::int64_t>::max() / factor) return std::nullopt;
  return value * factor;
}

// Goes back to the last '*' alone, which is enough: what an earlier one could take, it can take as well.
bool matches_ignoring_case(std::string_view pattern, std::string_view text) noexcept {
  std::string_view star, star_text;
  bool starred = false;
  while (true) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      star = pattern;
      star_text = text;
      starred = true;
      continue;
    }
    if (text.empty() && pattern.empty()) return true;
    if (!text.empty() && !pattern.empty() && fits_one(pattern, text.front())) {
      text.remove_prefix(1);
      continue;
    }
    if (!starred || star_text.empty()) return false;
    star_text.remove_prefix(1);
    text = star_text;
    pattern = star;
  }
}

}  // namespace ringshift::proxy
