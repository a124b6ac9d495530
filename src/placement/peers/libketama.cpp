// RJ's libketama (2014), the first of them all. Recorded: tests/vectors/libketama.json.
//
// Labels are the addresses as written, port included; floor(w/W * 40 * n) digests in 32-bit floats, from
// left to right; keys by MD5.
#include <cmath>

#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {
namespace {

std::vector<std::uint32_t> digests_of(Servers servers) {
  std::uint64_t total = 0;
  for (const Server& server : servers) total += static_cast<std::uint64_t>(server.weight);
  std::vector<std::uint32_t> digests;
  for (const Server& server : servers) {
    const float share = static_cast<float>(server.weight) / static_cast<float>(total);
    const float each = share * 40.0F * static_cast<float>(servers.size());
    digests.push_back(static_cast<std::uint32_t>(std::floor(each)));
  }
  return digests;
}

}  // namespace

std::vector<std::uint64_t> libketama_points(Servers servers) {
  std::vector<std::uint64_t> out;
  for (const std::uint32_t digests : digests_of(servers)) out.push_back(digests * kPointsOfDigest);
  return out;
}

std::unique_ptr<Peer> build_libketama(const Options&, Servers servers) {
  Points32 points;
  const auto digests = digests_of(servers);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const std::string& label = servers[i].label;
    const std::string prefix = (label.empty() ? servers[i].host_port() : label) + '-';
    for (std::uint32_t j = 0; j < digests[i]; ++j) add_digest(points, numbered(prefix, j), servers[i].index);
  }
  sort_points(points);
  return std::make_unique<RingPeer>(KeyHash("md5", hashing::peers::md5_le), std::move(points));
}

}  // namespace ringshift::placement::peers
