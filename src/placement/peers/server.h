// A member as a peer's configuration names it: each peer builds its own labels out of these parts.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "placement/member.h"

namespace ringshift::placement::peers {

struct Server {
  std::string host;   // Without a port; of a Unix socket the path.
  std::string port;   // "" when there is none.
  std::string label;  // The name that the peer was given for it, "" when none.
  double weight = 1;
  MemberIndex index = 0;     // What owner() answers for it.
  std::uint32_t vnodes = 0;  // hashring: its own number of virtual nodes; 0: the ring's.

  [[nodiscard]] std::string host_port() const { return port.empty() ? host : host + ':' + port; }
  // "/path" of a Unix socket, with or without "unix:" before it; "" of anything else.
  [[nodiscard]] std::string_view socket_path() const {
    constexpr std::string_view kPrefix = "unix:";
    const std::string_view all = host;
    if (all.starts_with(kPrefix)) return all.substr(kPrefix.size());
    return all.starts_with('/') ? all : std::string_view{};
  }
  // As memcached's clients write it: the port is left out when it is memcached's own.
  [[nodiscard]] std::string host_and_odd_port(std::string_view usual = "11211") const {
    return port == usual ? host : host_port();
  }
};

// "host:port", "[v6]:port", "unix:/path" or "host" in parts. The brackets stay, as the peers keep them.
[[nodiscard]] inline Server server_of(std::string_view address) {
  Server server;
  const auto colon = address.rfind(':');
  const bool has_port = colon != std::string_view::npos && !address.starts_with("unix:") &&
                        address.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  server.host = address.substr(0, has_port ? colon : address.size());
  if (has_port) server.port = address.substr(colon + 1);
  return server;
}

}  // namespace ringshift::placement::peers
