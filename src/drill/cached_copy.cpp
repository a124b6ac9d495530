#include "drill/cached_copy.h"

#include "base/encoding.h"

namespace ringshift::drill {

std::optional<CachedCopy> parse_copy(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto id = base::parse_u64(text.substr(0, first));
  const auto version = base::parse_u64(text.substr(first + 1, second - first - 1));
  if (!id || !version) return std::nullopt;
  return CachedCopy{*id, static_cast<std::uint32_t>(*version)};
}

}  // namespace ringshift::drill
