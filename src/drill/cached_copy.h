// What an application puts into the cache for an object of its database: "id:version:body".
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace ringshift::drill {

struct CachedCopy {
  std::uint64_t id = 0;
  std::uint32_t version = 0;
};
[[nodiscard]] std::optional<CachedCopy> parse_copy(std::string_view text);

}  // namespace ringshift::drill
