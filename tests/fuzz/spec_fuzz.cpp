// parse_spec on any bytes: no crash, and what it accepts survives its own canonical form.
#include <cstdint>
#include <cstdlib>

#include "ringshift/topology.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift::topology;
  const auto spec = parse_spec({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!spec) {
    if (!spec.error().message.starts_with("fuzz:")) std::abort();  // Every error names its place.
    return 0;
  }
  const auto again = parse_spec(to_json(*spec), "again");
  if (!again || !(*again == *spec)) std::abort();
  return 0;
}
