// The vectors reader on any bytes: no crash, and never more answers matched than asked.
#include <cstdint>
#include <cstdlib>

#include "plan/vectors/vectors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift;
  const auto sibling = [](const std::string&) -> Result<std::string> {
    return R"({"keys": ["", "61", "ff00", "757365723a31"]})";
  };
  const auto checked = plan::vectors::check({reinterpret_cast<const char*>(data), size}, "fuzz", sibling);
  if (!checked) return 0;
  for (const auto& one : checked->cases) {
    if (one.matched > one.asked) std::abort();
    if (one.matched < one.asked && one.problem.empty()) std::abort();  // A mismatch is always named.
  }
  return 0;
}
