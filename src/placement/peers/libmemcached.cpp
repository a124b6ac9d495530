// libmemcached 1.1.4. Recorded: tests/vectors/libmemcached.json.
//
//   modula                hash % n, weights ignored
//   consistent, ketama    100 labels a server, each hashed by the configured key hash, one point each
//   spy                   as ketama, with spymemcached's labels
//   ketama_weighted       MD5 for the keys, and the weighted form below
//   weighted (or a weight above 1, as the library switches by itself): MD5 digests of each label, four points
//                         a digest, their number by weight in 32-bit floats; the key hash stays as configured
//
// The label leaves out port 11211, except spy's, which begins with a slash; a Unix socket has port 0. Ties go
// to the earlier server. The real library aborts above 100 servers in the unweighted rings; this does not.
#include <algorithm>
#include <cmath>

#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {
namespace {

constexpr std::uint64_t kUnweightedPoints = 100;

std::string label_of(const Server& server, bool spy) {
  if (!server.label.empty()) return server.label + '-';
  if (const std::string path(server.socket_path()); !path.empty()) return (spy ? "/" : "") + path + ":0-";
  return (spy ? '/' + server.host_port() : server.host_and_odd_port()) + '-';
}

}  // namespace

std::unique_ptr<Peer> build_libmemcached(const Options& options, Servers servers) {
  const std::string_view distribution = option(options, "distribution", "modula");
  const std::string_view name =
      distribution == "ketama_weighted" ? "md5" : option(options, "hash", "default");
  const auto* hash = hashing::peers::find_hash(hashing::peers::libmemcached_hashes(), name);
  KeyHash key_hash(hash->name, hash->hash, hash->bits);
  if (distribution == "modula") return std::make_unique<TablePeer>(std::move(key_hash), one_each(servers));

  const bool heavy = std::ranges::any_of(servers, [](const Server& server) { return server.weight > 1; });
  const bool weighted =
      distribution == "ketama_weighted" || heavy || option_is(options, "weighted", "true", "false");
  const bool spy = distribution == "spy";
  Points32 points;
  const auto digests = weighted ? ketama_digests(servers) : std::vector<std::uint32_t>{};
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const std::string prefix = label_of(servers[i], spy);
    const std::uint64_t labels = weighted ? digests[i] : kUnweightedPoints;
    for (std::uint64_t j = 0; j < labels; ++j) {
      const std::string label = numbered(prefix, j);
      if (weighted) {
        add_digest(points, label, servers[i].index);
      } else {
        points.push_back({hash->hash(label), servers[i].index});
      }
    }
  }
  sort_points(points);
  return std::make_unique<RingPeer>(std::move(key_hash), std::move(points));
}

}  // namespace ringshift::placement::peers
