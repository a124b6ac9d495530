#include <fmt/format.h>

#include "base/encoding.h"
#include "http/server.h"

namespace ringshift::http {

bool is_loopback(std::string_view host) noexcept {
  if (host == "localhost" || host == "::1") return true;
  // Only a plain dotted address counts: "127.example.com" is a name.
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

Result<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const auto bad = [&](std::string_view why) {
    return fail(ErrorKind::invalid,
                fmt::format("address '{}': {}; write HOST:PORT, for example 127.0.0.1:7379", text, why));
  };
  if (colon == std::string_view::npos) return bad("the port is missing");
  const auto port = base::parse_u64(text.substr(colon + 1));
  if (!port || *port > 65535) return bad("the port must be a number from 0 to 65535");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad("an IPv6 address goes into brackets");
  }
  if (host.empty()) return bad("the host is missing");
  return HostPort{std::string(host), static_cast<std::uint16_t>(*port)};
}

}  // namespace ringshift::http
