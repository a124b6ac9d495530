// The importer of HAProxy's backends.
#include "import_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return ringshift::importing::fuzz_import(ringshift::importing::Format::haproxy, data, size);
}
