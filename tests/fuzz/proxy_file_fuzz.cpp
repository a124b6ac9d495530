// Any text as the proxy's file: it is read, or refused with a place; what was read has routes only to
// clusters that are there.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/proxy_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The text is its own file of users, too.
  const auto file = config::parse_proxy_file(
      text, "fuzz.yaml", [&](const std::string&) -> Result<std::string> { return std::string(text); });
  if (!file) {
    if (!file.error().message.starts_with("fuzz.yaml:")) std::abort();
    return 0;
  }
  const std::size_t clusters = file->clusters.empty() ? 1 : file->clusters.size();
  for (const std::size_t cluster : file->rules.routes.clusters()) {
    if (cluster >= clusters) std::abort();
  }
  for (const auto& [user, routes] : file->rules.user_routes) {
    if (file->rules.users.find(user) == nullptr) std::abort();
    for (const std::size_t cluster : routes.clusters()) {
      if (cluster >= clusters) std::abort();
    }
  }
  return 0;
}
