// A peer's options by its own names, as text. What is not given has the peer's own default.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ringshift::placement::peers {

using Options = std::map<std::string, std::string, std::less<>>;

[[nodiscard]] inline std::string_view option(const Options& options, std::string_view name,
                                             std::string_view fallback) {
  const auto found = options.find(name);
  return found == options.end() ? fallback : std::string_view(found->second);
}
[[nodiscard]] inline bool option_is(const Options& options, std::string_view name, std::string_view value,
                                    std::string_view fallback) {
  return option(options, name, fallback) == value;
}

}  // namespace ringshift::placement::peers
