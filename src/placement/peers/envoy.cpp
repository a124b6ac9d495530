// Envoy's ring_hash and maglev. Published tables: tests/vectors/envoy.json.
//
// ring_hash: XXH64 (or MurmurHash64A, seed 0xc70f6907) of "ADDRESS_i". scale = min(ceil(w_min * minimum) /
// w_min, maximum) over weights that sum up to 1; going through the hosts, points are added while there are
// fewer than the running sum of scale * w, both as doubles. First point at or after XXH64 of the key,
// wrapping. maglev: hosts in the order of their keys; each has the permutation offset = XXH64 % M, skip =
// XXH64(seed 1) % (M - 1) + 1. In round r a host is passed over while r * w is below its target, which grows
// by w_max each time it takes an entry. Key: XXH64 % M.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/encoding.h"
#include "hashing/peers/murmur.h"
#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {
namespace {

constexpr std::uint64_t kMurmurSeed = 0xc70f6907;

std::uint64_t key_xxh64(std::string_view key) noexcept { return hashing::peers::xxh64(key); }
KeyHash xxh64_hash() { return {"xxh64", key_xxh64}; }

std::string key_of(const Server& server) { return server.label.empty() ? server.host_port() : server.label; }

std::vector<double> normalized(Servers servers) {
  double total = 0;
  for (const Server& server : servers) total += server.weight;
  std::vector<double> weights;
  for (const Server& server : servers) weights.push_back(server.weight / total);
  return weights;
}

double whole_option(const Options& options, std::string_view name, std::uint64_t fallback) {
  return static_cast<double>(base::parse_u64(option(options, name, "")).value_or(fallback));
}

}  // namespace

std::unique_ptr<Peer> build_envoy_ring(const Options& options, Servers servers) {
  std::vector<WideRingPeer::Point> points;
  if (servers.empty()) return std::make_unique<WideRingPeer>(xxh64_hash(), std::move(points));
  const std::vector<double> weights = normalized(servers);
  const double least = std::ranges::min(weights);
  const double minimum = whole_option(options, "minimum_ring_size", 1024);
  const double maximum = whole_option(options, "maximum_ring_size", 8'388'608);
  const double scale = std::min(std::ceil(least * minimum) / least, maximum);
  const bool murmur = option_is(options, "hash_function", "MURMUR_HASH_2", "XX_HASH");
  double current = 0, target = 0;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const std::string prefix = key_of(servers[i]) + '_';
    target += scale * weights[i];
    for (std::uint64_t j = 0; current < target; ++j, ++current) {
      const std::string label = numbered(prefix, j);
      points.push_back(
          {murmur ? hashing::peers::murmur2_64(label, kMurmurSeed) : key_xxh64(label), servers[i].index});
    }
  }
  return std::make_unique<WideRingPeer>(xxh64_hash(), std::move(points));
}

std::unique_ptr<Peer> build_envoy_maglev(const Options& options, Servers servers) {
  const auto size = static_cast<std::uint64_t>(whole_option(options, "table_size", 65'537));
  if (servers.empty()) return std::make_unique<TablePeer>(xxh64_hash(), std::vector<MemberIndex>{});
  struct Host {
    std::string key;
    std::uint64_t next, skip;
    double weight, target;
    MemberIndex index;
  };
  const std::vector<double> weights = normalized(servers);
  const double most = std::ranges::max(weights);
  std::vector<Host> hosts;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const std::string key = key_of(servers[i]);
    hosts.push_back({key, key_xxh64(key) % size, hashing::peers::xxh64(key, 1) % (size - 1) + 1, weights[i],
                     0, servers[i].index});
  }
  std::ranges::stable_sort(hosts, {}, &Host::key);
  std::vector<MemberIndex> table(size, kNoMember);
  std::uint64_t filled = 0;
  for (std::uint64_t round = 1; filled < size; ++round) {
    for (Host& host : hosts) {
      if (filled == size) break;
      if (static_cast<double>(round) * host.weight < host.target) continue;
      host.target += most;
      // M is prime, so a permutation meets every entry.
      while (table[host.next] != kNoMember) host.next = (host.next + host.skip) % size;
      table[host.next] = host.index;
      host.next = (host.next + host.skip) % size;
      ++filled;
    }
  }
  return std::make_unique<TablePeer>(xxh64_hash(), std::move(table));
}

}  // namespace ringshift::placement::peers
