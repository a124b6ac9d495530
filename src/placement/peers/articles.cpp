// The rings of three published articles, so that their experiments can be run again; none is worth copying.
// Recorded: tests/vectors/seed_figures.json, which says what the articles claim and what is true.
//
//   article-go      FNV-1a of 32 bits over "NODE#vnI": without a finaliser, labels that differ in their last
//                   digits get neighbouring points, so a node's points lie in clusters
//   article-php     the low 31 bits of CRC-32 over "NODE#I", with the same fault to a lesser degree
//   article-js      "ketama-like": the first four bytes of MD5("NODE-I"), big-endian, one point a digest
//
// A fourth, in Python, is recorded there too: what its points are made of is not known, so it is not here.
#include "base/encoding.h"
#include "hashing/peers/crc32.h"
#include "hashing/peers/md5.h"
#include "hashing/xxh3.h"
#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"

namespace ringshift::placement::peers {
namespace {

std::uint32_t big_endian(std::uint32_t word) noexcept { return __builtin_bswap32(word); }

std::uint32_t go_fnv1a(std::string_view key) noexcept {
  std::uint32_t hash = 2166136261;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return hash;
}
std::uint32_t xxh3_high(std::string_view key) noexcept {
  return static_cast<std::uint32_t>(hashing::xxh3(key) >> 32);
}
std::uint32_t md5_be(std::string_view key) noexcept { return big_endian(hashing::peers::md5(key)[0]); }
// PHP's numbers were once signed and of 32 bits: the article cuts the sign off.
constexpr std::uint32_t k31Bits = 0x7fffffff;
std::uint32_t crc32_31(std::string_view key) noexcept { return hashing::peers::crc32(key) & k31Bits; }

KeyHash article_hash(std::string_view name) {
  if (name == "md5") return {"md5_be", md5_be};
  if (name == "xxh3") return {"xxh3_high", xxh3_high};
  return {"fnv1a", go_fnv1a};
}

std::uint64_t vnodes_of(const Options& options, std::uint64_t fallback) {
  return base::parse_u64(option(options, "vnodes", "")).value_or(fallback);
}
std::string name_of(const Server& server) { return server.label.empty() ? server.host_port() : server.label; }

std::unique_ptr<Peer> ring_of(KeyHash hash, Servers servers, std::string_view separator,
                              std::uint64_t vnodes) {
  Points32 points;
  for (const Server& server : servers) {
    const std::string prefix = name_of(server).append(separator);
    for (std::uint64_t i = 0; i < vnodes; ++i) {
      points.push_back({static_cast<std::uint32_t>(hash(numbered(prefix, i))), server.index});
    }
  }
  sort_points(points);
  return std::make_unique<RingPeer>(std::move(hash), std::move(points));
}

}  // namespace

std::unique_ptr<Peer> build_article_go(const Options& options, Servers servers) {
  return ring_of(article_hash(option(options, "hash", "fnv1a")), servers, "#vn", vnodes_of(options, 200));
}
std::unique_ptr<Peer> build_article_php(const Options& options, Servers servers) {
  const bool md5 = option_is(options, "hash", "md5", "crc32");
  KeyHash hash = md5 ? article_hash("md5") : KeyHash("crc32_31", crc32_31, 31);
  return ring_of(std::move(hash), servers, "#", vnodes_of(options, 160));
}
std::unique_ptr<Peer> build_article_js(const Options& options, Servers servers) {
  return ring_of(article_hash("md5"), servers, "-", vnodes_of(options, 160));
}

}  // namespace ringshift::placement::peers
