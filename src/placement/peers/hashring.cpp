// npm hashring 3.2, and npm memcached, which is hashring with `default port` 11211.
// Recorded: tests/vectors/npm_hashring.json.
//
// floor(w/W * vnodes * n) digests a server, in 64-bit floats from left to right (for some n of equal servers
// that is 39 and not 40); a server with a number of vnodes of its own has just that many. `replicas` points a
// digest, little-endian words from its start. The label has no port when it is the default port.
#include <array>
#include <cmath>

#include "base/encoding.h"
#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {
namespace {

std::uint64_t whole_option(const Options& options, std::string_view name, std::uint64_t fallback) {
  return base::parse_u64(option(options, name, "")).value_or(fallback);
}

}  // namespace

std::vector<std::uint64_t> hashring_digests(const Options& options, Servers servers) {
  const std::uint64_t vnodes = whole_option(options, "vnodes", 40);
  double total = 0;
  for (const Server& server : servers) total += server.weight;
  std::vector<std::uint64_t> digests;
  for (const Server& server : servers) {
    const double share = server.weight / total;
    const double each = share * static_cast<double>(vnodes) * static_cast<double>(servers.size());
    digests.push_back(server.vnodes != 0 && server.vnodes != vnodes
                          ? server.vnodes
                          : static_cast<std::uint64_t>(std::floor(each)));
  }
  return digests;
}

std::unique_ptr<Peer> build_hashring(const Options& options, Servers servers) {
  const std::string name(option(options, "hash", "md5"));
  const hashing::peers::Digest digest = *hashing::peers::Digest::find(name);
  const std::string_view compatible = option(options, "compatibility", "");
  const std::uint64_t replicas = compatible.empty()          ? whole_option(options, "replicas", 4)
                                 : compatible == "hash_ring" ? 3
                                                             : 4;
  const std::string_view default_port = option(options, "default_port", "");
  const auto digests = hashring_digests(options, servers);
  Points32 points;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Server& server = servers[i];
    std::string prefix = server.label;
    if (prefix.empty()) {
      prefix = default_port.empty() ? server.host_port() : server.host_and_odd_port(default_port);
    }
    prefix += '-';
    for (std::uint64_t j = 0; j < digests[i]; ++j) {
      std::array<unsigned char, hashing::peers::Digest::kMaxBytes> out{};
      digest.compute(numbered(prefix, j), out.data());
      for (std::size_t at = 0; at < replicas * 4; at += 4) {
        const std::uint32_t point = out[at] | std::uint32_t{out[at + 1]} << 8 |
                                    std::uint32_t{out[at + 2]} << 16 | std::uint32_t{out[at + 3]} << 24;
        points.push_back({point, server.index});
      }
    }
  }
  sort_points(points);
  // MD5 keys by our own, which needs no context.
  KeyHash hash = name == "md5" ? KeyHash("md5", hashing::peers::md5_le) : KeyHash(name, digest);
  return std::make_unique<RingPeer>(std::move(hash), std::move(points));
}

}  // namespace ringshift::placement::peers
