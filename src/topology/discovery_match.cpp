#include "topology/discovery_match.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/encoding.h"

namespace ringshift::topology {
namespace {

struct RangeIp {
  std::array<std::uint8_t, 16> bytes{};
  unsigned bits = 0;  // 32 or 128.
};

std::optional<RangeIp> range_ip(std::string_view text) {
  const std::string terminated(text);
  RangeIp ip;
  if (::inet_pton(AF_INET, terminated.c_str(), ip.bytes.data()) == 1) {
    ip.bits = 32;
  } else if (::inet_pton(AF_INET6, terminated.c_str(), ip.bytes.data()) == 1) {
    ip.bits = 128;
  } else {
    return std::nullopt;
  }
  return ip;
}

std::string_view host_of(std::string_view address) {
  if (address.starts_with("unix:")) return address;
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

bool same_network(const RangeIp& a, const RangeIp& b, unsigned bits) {
  if (a.bits != b.bits) return false;
  const unsigned whole = bits / 8;
  if (std::memcmp(a.bytes.data(), b.bytes.data(), whole) != 0) return false;
  if (bits % 8 == 0) return true;
  const unsigned mask = 0xFFU << (8 - bits % 8);
  return ((a.bytes[whole] ^ b.bytes[whole]) & mask) == 0;
}

// A network's address and its length; nullopt when `range` is none.
struct Network {
  RangeIp ip;
  std::uint64_t bits = 0;
};
std::optional<Network> network(std::string_view range) {
  const std::size_t slash = range.find('/');
  const auto ip = range_ip(range.substr(0, slash));
  if (!ip) return std::nullopt;
  if (slash == std::string_view::npos) return Network{*ip, ip->bits};
  const auto bits = base::parse_u64(range.substr(slash + 1));
  if (!bits || *bits > ip->bits) return std::nullopt;
  return Network{*ip, *bits};
}

}  // namespace

bool fits_pattern(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool fits_address(std::string_view range, std::string_view address) {
  const std::string_view host = host_of(address);
  if (const auto net = network(range)) {
    const auto ip = range_ip(host);
    return ip && same_network(net->ip, *ip, static_cast<unsigned>(net->bits));
  }
  // A pattern is of names: "10.*" would be taken for a network, and 10.evil.example is none.
  return !range_ip(host) && fits_pattern(range, host);
}

std::string check_address_range(std::string_view range) {
  if (range.empty()) return "is empty: write a network such as 10.0.0.0/8, or a host name's pattern";
  if (network(range) || range.starts_with("unix:")) return {};
  const bool name_like =
      range.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*?") ==
      std::string_view::npos;
  const bool numbers_only = range.find_first_not_of("0123456789.*?") == std::string_view::npos;
  if (name_like && (!numbers_only || range == "*")) return {};
  return fmt::format(
      "'{}' is neither a network (10.0.0.0/8, fd00::/8) nor a host name's pattern (*.cache.internal)", range);
}

}  // namespace ringshift::topology
