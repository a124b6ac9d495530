#include "access/glob.h"

#include <algorithm>

namespace ringshift::access {
namespace {

// Takes "[...]" off the front, the bracket included; whether `c` is in it.
bool take_class(std::string_view& pattern, char c) noexcept {
  pattern.remove_prefix(1);
  const bool inverted = pattern.starts_with('^');
  if (inverted) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty()) {
    if (pattern.size() >= 2 && pattern[0] == '\\') {
      found = found || pattern[1] == c;
      pattern.remove_prefix(2);
    } else if (pattern[0] == ']') {
      pattern.remove_prefix(1);
      break;
    } else if (pattern.size() >= 3 && pattern[1] == '-') {
      const auto [low, high] = std::minmax(pattern[0], pattern[2]);
      found = found || (c >= low && c <= high);
      pattern.remove_prefix(3);
    } else {
      found = found || pattern[0] == c;
      pattern.remove_prefix(1);
    }
  }
  return found != inverted;
}

// Takes what stands for one character off the front; whether it stands for `c`.
bool take_one(std::string_view& pattern, char c) noexcept {
  if (pattern[0] == '[') return take_class(pattern, c);
  if (pattern[0] == '\\' && pattern.size() >= 2)
    pattern.remove_prefix(1);
  else if (pattern[0] == '?')
    c = '?';
  const bool same = pattern[0] == c;
  pattern.remove_prefix(1);
  return same;
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) noexcept {
  if (text.empty()) return pattern.empty();
  // Behind the last star, and where in the text that was tried: every other choice for an earlier star would
  // leave the later one less.
  std::string_view behind_star, tried;
  bool star = false;
  while (!text.empty()) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(std::min(pattern.find_first_not_of('*'), pattern.size()));
      if (pattern.empty()) return true;
      star = true;
      behind_star = pattern;
      tried = text;
    } else if (!pattern.empty() && take_one(pattern, text[0])) {
      text.remove_prefix(1);
    } else if (star) {
      tried.remove_prefix(1);
      text = tried;
      pattern = behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

}  // namespace ringshift::access
