// Any bytes as the body of any request to the registry: an answer or an error, never a crash, and a watch's
// commands are the same whether white space stands between them or not.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "registry/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace registry = ringshift::registry;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      (void)registry::parse_range(body);
      break;
    case 1:
      (void)registry::parse_put(body);
      break;
    case 2:
      (void)registry::parse_delete(body);
      break;
    case 3:
      (void)registry::parse_txn(body);
      break;
    case 4:
      (void)registry::parse_compaction(body);
      break;
    case 5:
      (void)registry::parse_lease(body);
      break;
    default: {
      const auto once = registry::parse_watch(body);
      if (!once) break;
      const auto twice = registry::parse_watch(std::string(body) + "\n " + std::string(body));
      if (!twice || twice->size() != 2 * once->size()) std::abort();
    }
  }
  return 0;
}
