// A trace from anywhere: read or refused, within its bounds, and what was read is consistent.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "drill/workload.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift::drill;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  auto trace = read_trace(in, "fuzz");
  if (!trace) return 0;
  if (trace->size() == 0 || trace->keys.size() != trace->bytes.size() || trace->size() > size) std::abort();
  for (std::size_t i = 0; i < trace->keys.size(); ++i) {
    if (trace->keys[i].empty() || trace->keys[i].size() > kMaxTraceKey || trace->bytes[i] > kMaxTraceBody)
      std::abort();
  }
  const auto load = trace_workload(std::move(*trace));
  for (std::uint64_t n = 0; n < 16; ++n) {
    if (load->at(n * 7919).key >= load->keys()) std::abort();
  }
  return 0;
}
