// Addresses: host:port, [v6]:port or unix:/path.
#include <arpa/inet.h>

#include <algorithm>
#include <string>

#include "base/ascii.h"
#include "base/encoding.h"
#include "topology/validate.h"

namespace ringshift::topology {
namespace {

constexpr std::size_t kMaxUnixPath = 107;  // sun_path, less its final zero.

bool host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_';
}

bool is_port(std::string_view text) {
  const auto port = base::parse_u64(text);
  return text.size() <= 5 && port && *port >= 1 && *port <= 65535;
}

}  // namespace

std::string check_address(const std::string& address) {
  if (address.size() > kMaxAddressBytes) return "is too long";
  const bool clean = std::ranges::all_of(address, [](char c) { return c > 0x20 && c < 0x7f; });
  if (!clean) return "has white space or characters that are not printable ASCII";
  if (address.starts_with("unix:")) {
    const std::string path = address.substr(5);
    if (!path.starts_with('/') || path.size() < 2) return "has no absolute path after unix:";
    return path.size() > kMaxUnixPath ? "has a path longer than the 107 bytes of a socket's name" : "";
  }
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return "has no port";
  const std::string host = address.substr(0, colon);
  if (!is_port(address.substr(colon + 1))) return "has no port from 1 to 65535 after the last colon";
  if (host.empty()) return "has no host";
  if (host.starts_with('[')) {
    const bool closed = host.ends_with(']') && host.size() >= 4;
    const std::string inside = closed ? host.substr(1, host.size() - 2) : "";
    in6_addr ip{};
    const bool v6 = closed && ::inet_pton(AF_INET6, inside.c_str(), &ip) == 1;
    return v6 ? "" : "has no IPv6 address between [ and ]";
  }
  if (host.find(':') != std::string::npos) return "has an IPv6 address without [ and ]";
  return std::ranges::all_of(host, host_character) ? "" : "has a character that no host name has";
}

std::string canonical_address(std::string_view address) {
  const auto colon = address.rfind(':');
  if (address.starts_with("unix:") || colon == std::string_view::npos) return std::string(address);
  std::string host = base::ascii_lower(address.substr(0, colon));
  if (host.starts_with('[') && host.ends_with(']')) {
    in6_addr ip{};
    char text[INET6_ADDRSTRLEN];
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &ip) == 1 &&
        ::inet_ntop(AF_INET6, &ip, text, sizeof text) != nullptr)
      host = "[" + std::string(text) + "]";
  } else if (host.size() > 1 && host.ends_with('.')) {
    host.pop_back();
  }
  const auto port = base::parse_u64(address.substr(colon + 1));
  return host + ":" + (port ? std::to_string(*port) : std::string(address.substr(colon + 1)));
}

}  // namespace ringshift::topology
