// twemproxy (nutcracker) 0.5.0. Recorded: tests/vectors/twemproxy.json.
//
// Servers are ordered by the length of their names, then by the names' bytes, before anything else: that
// decides modula's residues and the ring's ties, whatever the order in the YAML. The name is the configured
// one, else host, with its port unless that is 11211; of a Unix socket its path and a colon, since no port
// follows (tests/e2e/test_27_real_peers.py asks nutcracker itself). ketama is libmemcached's weighted form,
// always; modula repeats a server weight times. An empty key has the hash 0.
#include <algorithm>

#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {

std::unique_ptr<Peer> build_twemproxy(const Options& options, Servers servers) {
  std::vector<Server> sorted(servers.begin(), servers.end());
  for (Server& server : sorted) {
    if (!server.label.empty()) continue;
    const std::string path(server.socket_path());
    server.label = path.empty() ? server.host_and_odd_port() : path + ':';
  }
  std::ranges::stable_sort(sorted, [](const Server& a, const Server& b) {
    return a.label.size() != b.label.size() ? a.label.size() < b.label.size() : a.label < b.label;
  });
  const auto* hash =
      hashing::peers::find_hash(hashing::peers::twemproxy_hashes(), option(options, "hash", "fnv1a_64"));
  KeyHash key_hash(hash->name, hash->hash, hash->bits);
  key_hash.set_empty_to_zero();
  if (option_is(options, "distribution", "modula", "ketama")) {
    return std::make_unique<TablePeer>(std::move(key_hash), by_weight(sorted));
  }
  Points32 points;
  const auto digests = ketama_digests(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::string prefix = sorted[i].label + '-';
    for (std::uint32_t j = 0; j < digests[i]; ++j) add_digest(points, numbered(prefix, j), sorted[i].index);
  }
  sort_points(points);
  return std::make_unique<RingPeer>(std::move(key_hash), std::move(points));
}

}  // namespace ringshift::placement::peers
