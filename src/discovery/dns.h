// Instances by DNS: A and AAAA records of a name with a port of ours, or SRV records.
//
// - Address records: the id is ADDRESS:PORT, for a record has no other name. SRV: the id is TARGET:PORT, and
// so is the
//   address, which routers resolve when they connect: a server that moves keeps its id. Of SRV records those
//   of the lowest priority are instances, as RFC 2782 has it; the others are what to turn to without them.
// - The next look comes after the lowest TTL, but within kTtlLeast and `poll` (kTtlMost).
// - SERVFAIL, REFUSED, a timeout, an answer that is none: the list stands. NXDOMAIN and no data are an empty
// list, for
//   the guard to hold.
// - A and AAAA are one list: when one of the two fails, so does the look.
// - By c-ares: the system's servers or `servers`, UDP and, for what does not fit, TCP. Not /etc/hosts, and no
// search
//   domains: give the full name.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/instances.h"
#include "discovery/options.h"

namespace ringshift::discovery {

enum class RecordType { a = 1, aaaa = 28, srv = 33 };  // As on the wire.

struct DnsAnswer {
  struct Service {
    std::uint16_t priority = 0, weight = 0, port = 0;
    std::string target;  // Without the last dot.
  };
  std::vector<std::string> addresses;  // a, aaaa.
  std::vector<Service> services;       // srv; none when the only target is ".".
  std::chrono::seconds ttl{0};         // The lowest, of aliases too.
};

// A reply's bytes; both lists are empty when it has no record of this type.
[[nodiscard]] Result<DnsAnswer> parse_dns_answer(std::string_view bytes, RecordType type);

[[nodiscard]] Seen dns_instances(const DnsAnswer& answer, std::uint16_t port);

inline constexpr std::chrono::milliseconds kTtlLeast{1000};
inline constexpr std::chrono::milliseconds kTtlMost{60'000};

[[nodiscard]] std::unique_ptr<Source> make_dns_source(Options options);

}  // namespace ringshift::discovery
