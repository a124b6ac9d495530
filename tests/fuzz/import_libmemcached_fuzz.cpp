// The importer of libmemcached's configuration string.
#include "import_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return ringshift::importing::fuzz_import(ringshift::importing::Format::libmemcached, data, size);
}
