// HAProxy 2.6 `hash-type consistent|map-based FUNCTION [avalanche]`. Recorded:
// tests/vectors/haproxy_hash.json.
//
// consistent: weight * 16 points a server, full_hash(id * 4096 + j); the nearest point in either direction
// owns, the one before on a tie. id is the server's `id`, else its place in the configuration, from 1 on.
// map-based: a table of W entries (the weights divided by their common divisor) dealt out evenly: each round
// every server gains its weight, the one with most credit (in whole W) takes the entry and pays W; the
// earlier server on a tie.
#include <array>
#include <numeric>

#include "base/encoding.h"
#include "hashing/peers/crc32.h"
#include "hashing/peers/haproxy_hashes.h"
#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {
namespace {

constexpr std::uint32_t kPointsPerWeight = 16;
constexpr std::uint32_t kRange = 4096;  // Of a server's points: its greatest weight, 256, times 16.

template <hashing::peers::Hash32 kHash>
std::uint32_t avalanched(std::string_view key) noexcept {
  return hashing::peers::full_hash(kHash(key));
}

KeyHash key_hash_of(std::string_view name, bool avalanche) {
  using namespace hashing::peers;  // NOLINT: four functions of it.
  const std::string full = std::string(name) + (avalanche ? " avalanche" : "");
  if (name == "djb2") return {full, avalanche ? avalanched<djb2> : djb2};
  if (name == "wt6") return {full, avalanche ? avalanched<wt6> : wt6};
  if (name == "crc32") return {full, avalanche ? avalanched<crc32> : crc32};
  return {full, avalanche ? avalanched<sdbm> : sdbm};
}

std::vector<MemberIndex> dealt_out(Servers servers) {
  std::int64_t divisor = 0, total = 0;
  for (const Server& server : servers) divisor = std::gcd(divisor, static_cast<std::int64_t>(server.weight));
  if (divisor == 0) return {};
  std::vector<std::int64_t> gains, credits(servers.size(), 0);
  for (const Server& server : servers) {
    gains.push_back(static_cast<std::int64_t>(server.weight) / divisor);
    total += gains.back();
  }
  std::vector<MemberIndex> table;
  for (std::int64_t entry = 0; entry < total; ++entry) {
    std::size_t best = 0;
    std::int64_t most = -1;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      credits[i] += gains[i];
      const std::int64_t credit = (credits[i] + total) / total;
      if (credit <= most) continue;
      most = credit;
      best = i;
    }
    table.push_back(servers[best].index);
    credits[best] -= total;
  }
  return table;
}

}  // namespace

Points32 haproxy_points(Servers servers) {
  Points32 points;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const auto id = static_cast<std::uint32_t>(base::parse_u64(servers[i].label).value_or(i + 1));
    const auto count = static_cast<std::uint32_t>(servers[i].weight) * kPointsPerWeight;
    for (std::uint32_t j = 0; j < count; ++j) {
      points.push_back({hashing::peers::full_hash(id * kRange + j), servers[i].index});
    }
  }
  sort_points(points);
  return points;
}

std::unique_ptr<Peer> build_haproxy(const Options& options, Servers servers) {
  KeyHash hash =
      key_hash_of(option(options, "hash", "sdbm"), option_is(options, "avalanche", "true", "false"));
  if (option_is(options, "method", "consistent", "consistent")) {
    return std::make_unique<RingPeer>(std::move(hash), from_nearest(haproxy_points(servers)));
  }
  return std::make_unique<TablePeer>(std::move(hash), dealt_out(servers));
}

}  // namespace ringshift::placement::peers
