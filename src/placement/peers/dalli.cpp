// Ruby's dalli 3. Recorded: tests/vectors/dalli.json.
//
// floor(n * 160 * w / W) points a server: the first four bytes, big-endian, of SHA-1("host:port:i"), the port
// always there. Keys by CRC-32, and the owner is the last point at or before it, wrapping to the last of all.
#include <cmath>

#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {

Points32 dalli_points(Servers servers) {
  double total = 0;
  for (const Server& server : servers) total += server.weight;
  Points32 points;
  for (const Server& server : servers) {
    const double share = static_cast<double>(servers.size()) * kKetamaPoints * server.weight / total;
    const auto count = static_cast<std::uint64_t>(std::floor(share));
    const std::string prefix = (server.label.empty() ? server.host_port() : server.label) + ':';
    for (std::uint64_t i = 0; i < count; ++i) {
      points.push_back({hashing::peers::sha1_be(numbered(prefix, i)), server.index});
    }
  }
  sort_points(points);
  return points;
}

std::unique_ptr<Peer> build_dalli(const Options&, Servers servers) {
  return std::make_unique<RingPeer>(KeyHash("crc32a", hashing::peers::crc32a),
                                    from_floor(dalli_points(servers)));
}

}  // namespace ringshift::placement::peers
