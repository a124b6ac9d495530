// Any text as a file of instances: a list that a cluster can have, or a refusal with its place.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "discovery/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift::discovery;  // NOLINT(google-build-using-namespace)
  auto all = parse_instances({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
  if (!all) {
    if (!all.error().message.starts_with("fuzz.yaml:")) std::abort();
    return 0;
  }
  const auto before = *all;
  if (sort_and_check(*all) || *all != before) std::abort();
  return 0;
}
