// nginx 1.22 `hash KEY [consistent]`, and Perl's Cache::Memcached::Fast 0.28, which chains CRC-32 in the same
// way. Recorded: tests/vectors/nginx_hash.json and cache_memcached_fast.json.
//
// A server's first point is the CRC of host, a zero byte, port and four zero bytes; each next one has the
// point before it, little-endian, in the zeros' place.
//   nginx: 160 points a unit of weight; of points that collide only the first server's stays; keys by CRC-32.
//          Without `consistent`: bits 16..30 of the CRC over the servers repeated by weight.
//   Cache::Memcached::Fast: int(ketama_points * weight + 0.5) points, weights with fractions, all points
//   kept.
//          With ketama_points 0: bounds over 0..2^32-1 that each added server scales down, in whole numbers.
#include <cmath>
#include <limits>

#include "hashing/peers/crc32.h"
#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {
namespace {

constexpr std::uint64_t kNginxPoints = 160;
constexpr double kTop = std::numeric_limits<std::uint32_t>::max();

void add_chain(Points32& points, const Server& named, std::uint64_t count) {
  // A label stands for the address in the peer's own configuration.
  const Server server = named.label.empty() ? named : server_of(named.label);
  std::string_view host = server.host;
  if (host.starts_with("unix:")) host.remove_prefix(5);
  std::uint32_t base = hashing::peers::crc32(host);
  base = hashing::peers::crc32_more(base, {"\0", 1});
  base = hashing::peers::crc32_more(base, server.port);
  std::uint32_t point = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const char bytes[4] = {static_cast<char>(point & 0xff), static_cast<char>((point >> 8) & 0xff),
                           static_cast<char>((point >> 16) & 0xff), static_cast<char>(point >> 24)};
    point = hashing::peers::crc32_more(base, {bytes, sizeof bytes});
    points.push_back({point, named.index});
  }
}

KeyHash crc_of_31_bits() { return {"crc32_15", hashing::peers::crc32_15, 15}; }
KeyHash whole_crc() { return {"crc32a", hashing::peers::crc32a}; }

// Where ketama_points is 0 only int(W + 0.5) different hashes exist: the owner of each is found once, here.
std::vector<MemberIndex> scaled_bounds(Servers servers) {
  std::vector<std::uint32_t> bounds;
  double total = 0;
  for (const Server& server : servers) {
    total += server.weight;
    const double scale = server.weight / total;
    for (std::uint32_t& bound : bounds) {
      bound = static_cast<std::uint32_t>(static_cast<double>(bound) - static_cast<double>(bound) * scale);
    }
    bounds.push_back(std::numeric_limits<std::uint32_t>::max());
  }
  std::vector<MemberIndex> table;
  const auto size = static_cast<std::uint32_t>(total + 0.5);
  for (std::uint32_t hash = 0; hash < size; ++hash) {
    const double at = static_cast<double>(hash) / total * kTop + 0.5;
    const auto point = static_cast<std::uint64_t>(at) + 1;
    std::size_t owner = 0;
    while (owner + 1 < bounds.size() && bounds[owner] < point) ++owner;
    table.push_back(servers[owner].index);
  }
  // The weights sum up to less than a half: the peer divides by zero. One owner then stands for all.
  if (table.empty() && !servers.empty()) table.push_back(servers.front().index);
  return table;
}

std::uint64_t whole(std::string_view text) {
  std::uint64_t number = 0;
  for (const char c : text) number = number * 10 + static_cast<std::uint64_t>(c - '0');
  return number;
}

}  // namespace

std::unique_ptr<Peer> build_nginx(const Options& options, Servers servers) {
  if (!option_is(options, "consistent", "true", "false")) {
    return std::make_unique<TablePeer>(crc_of_31_bits(), by_weight(servers));
  }
  Points32 points;
  for (const Server& server : servers) {
    add_chain(points, server, kNginxPoints * static_cast<std::uint64_t>(server.weight));
  }
  sort_points(points);
  keep_first(points);
  return std::make_unique<RingPeer>(whole_crc(), std::move(points));
}

std::unique_ptr<Peer> build_cache_memcached_fast(const Options& options, Servers servers) {
  const std::uint64_t each = whole(option(options, "ketama_points", "0"));
  if (each == 0) return std::make_unique<TablePeer>(crc_of_31_bits(), scaled_bounds(servers));
  Points32 points;
  for (const Server& server : servers) {
    add_chain(points, server, static_cast<std::uint64_t>(static_cast<double>(each) * server.weight + 0.5));
  }
  sort_points(points);
  return std::make_unique<RingPeer>(whole_crc(), std::move(points));
}

}  // namespace ringshift::placement::peers
