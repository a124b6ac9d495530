// Any bytes as a DNS server's reply: refused, or instances that are some. The first byte says which record
// was asked for.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "discovery/dns.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringshift::discovery;  // NOLINT(google-build-using-namespace)
  if (size == 0) return 0;
  constexpr RecordType kTypes[] = {RecordType::a, RecordType::aaaa, RecordType::srv};
  const auto answer =
      parse_dns_answer({reinterpret_cast<const char*>(data + 1), size - 1}, kTypes[data[0] % 3]);
  if (!answer) return 0;
  const Seen seen = dns_instances(*answer, 6379);
  for (const Instance& instance : seen.all)
    if (!check_instance(instance).empty()) std::abort();
  return 0;
}
