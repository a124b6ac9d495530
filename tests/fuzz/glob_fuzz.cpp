// Any pattern and text, with a NUL between them: the answer is the one of the plain recursive definition.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "access/glob.h"

namespace {

using ringshift::access::matches_glob;

// Every choice for every star, with matches_glob itself only for what has none.
bool by_definition(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (text.empty()) return pattern.empty();
  // A star may be quoted or in a class; such patterns are only run.
  if (star == std::string_view::npos || pattern.find_first_of("[\\") != std::string_view::npos) {
    return matches_glob(pattern, text);
  }
  if (star > text.size()) return false;
  for (std::size_t i = 0; i < star; ++i) {
    if (pattern[i] != '?' && pattern[i] != text[i]) return false;
  }
  std::string_view rest = pattern.substr(star);
  while (rest.starts_with('*')) rest.remove_prefix(1);
  if (rest.empty()) return true;
  for (std::size_t at = star; at < text.size(); ++at) {
    if (by_definition(rest, text.substr(at))) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\0');
  const std::string_view pattern = input.substr(0, cut);
  const std::string_view text = cut == std::string_view::npos ? std::string_view() : input.substr(cut + 1);
  const bool matches = matches_glob(pattern, text);
  if (pattern.size() <= 12 && text.size() <= 24 && matches != by_definition(pattern, text)) std::abort();
  return 0;
}
