// parse_topology on any bytes: no crash, what it accepts round-trips, compiles and routes.
#include <cstdint>
#include <cstdlib>

#include "ringshift/snapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift::topology;
  const auto document = parse_topology({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!document) {
    if (!document.error().message.starts_with("fuzz:")) std::abort();
    return 0;
  }
  const std::string json = to_json(*document);
  const auto again = parse_topology(json, "again");
  if (!again || !(*again == *document) || to_json(*again) != json) std::abort();
  const auto snapshot = Snapshot::compile(*document, {1, 1});
  if (!snapshot) std::abort();  // Whatever was accepted can be obeyed.
  for (const std::string_view key : {"", "user:1", "{tag}x"}) {
    if ((*snapshot)->route(key).member >= (*snapshot)->members().size()) std::abort();
  }
  return 0;
}
