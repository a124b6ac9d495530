// Any bytes, split anywhere, give the same commands as the bytes in one piece. The first two bytes of the
// input choose the splits.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/unit/protocol/parse_all.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using ringshift::protocol::resp::transcript;
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string whole = transcript(input, {});
  const std::size_t step = 1 + data[0] % 64U;
  std::vector<std::size_t> splits;
  for (std::size_t at = data[1]; at < input.size(); at += step) splits.push_back(at);
  if (transcript(input, splits) != whole) std::abort();
  return 0;
}
