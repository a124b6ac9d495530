// Java's spymemcached 2.12. Recorded: tests/vectors/spymemcached.json.
//
//   ARRAY_MOD  hash % n, weights ignored
//   KETAMA     KETAMA_HASH: 40 MD5 digests, four points each; other hashes: 160 labels, one point each;
//              weighted: MD5 always, their number by weight in 32-bit floats
//
// Labels are ADDRESS-i, where ADDRESS is Java's InetSocketAddress.toString() without a leading slash: give it
// as the member's label where it is not host:port ("localhost/127.0.0.1:11211"). Format LIBMEMCACHED has the
// host, and the port unless it is 11211. Of points that collide the last server's stays (a TreeMap's put).
#include <algorithm>

#include "hashing/peers/java_hashes.h"
#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {
namespace {

KeyHash key_hash_of(std::string_view name) {
  using namespace hashing::peers;  // NOLINT: seven functions of it.
  if (name == "CRC_HASH") return {name, crc32_15, 15};
  if (name == "FNV1_64_HASH") return {name, java_fnv1_64};
  if (name == "FNV1A_64_HASH") return {name, java_fnv1a_64};
  if (name == "FNV1_32_HASH") return {name, java_fnv1_32};
  if (name == "FNV1A_32_HASH") return {name, java_fnv1a_32};
  if (name == "KETAMA_HASH") return {name, md5_le};
  return {name, java_native};
}

}  // namespace

std::unique_ptr<Peer> build_spymemcached(const Options& options, Servers servers) {
  const std::string_view name = option(options, "hash", "NATIVE_HASH");
  KeyHash hash = key_hash_of(name);
  if (option_is(options, "locator", "ARRAY_MOD", "ARRAY_MOD")) {
    return std::make_unique<TablePeer>(std::move(hash), one_each(servers));
  }
  const bool uneven = std::ranges::any_of(servers, [](const Server& server) { return server.weight != 1; });
  const bool weighted = option_is(options, "weighted", "true", uneven ? "true" : "false");
  const bool by_digest = weighted || name == "KETAMA_HASH";
  const bool short_label = option_is(options, "format", "LIBMEMCACHED", "SPYMEMCACHED");
  Points32 points;
  const auto digests = weighted ? ketama_digests(servers) : std::vector<std::uint32_t>{};
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Server& server = servers[i];
    std::string prefix = server.label;
    if (prefix.empty()) prefix = short_label ? server.host_and_odd_port() : server.host_port();
    prefix += '-';
    const std::uint32_t labels = weighted    ? digests[i]
                                 : by_digest ? kKetamaPoints / kPointsOfDigest
                                             : kKetamaPoints;
    for (std::uint32_t j = 0; j < labels; ++j) {
      const std::string label = numbered(prefix, j);
      if (by_digest) {
        add_digest(points, label, server.index);
      } else {
        points.push_back({static_cast<std::uint32_t>(hash(label)), server.index});
      }
    }
  }
  sort_points(points);
  keep_last(points);
  return std::make_unique<RingPeer>(std::move(hash), std::move(points));
}

}  // namespace ringshift::placement::peers
