#include "placement/peers/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/encoding.h"
#include "hashing/peers/digests.h"
#include "placement/maglev.h"
#include "placement/peers/builders.h"

namespace ringshift::placement::peers {
namespace {

using Kind = OptionRule::Kind;
using Words = std::span<const std::string_view>;
template <std::size_t kCount>
using List = std::array<std::string_view, kCount>;

constexpr List<5> kLibmemcachedDistributions{"modula", "consistent", "ketama", "ketama_weighted", "spy"};
constexpr List<11> kLibmemcachedHashes{"default",  "md5",   "crc",    "fnv1_64", "fnv1a_64", "fnv1_32",
                                       "fnv1a_32", "hsieh", "murmur", "jenkins", "murmur3"};
constexpr List<2> kTwemproxyDistributions{"ketama", "modula"};
constexpr List<12> kTwemproxyHashes{"one_at_a_time", "md5",     "crc16",    "crc32", "crc32a", "fnv1_64",
                                    "fnv1a_64",      "fnv1_32", "fnv1a_32", "hsieh", "murmur", "jenkins"};
constexpr List<2> kHaproxyMethods{"consistent", "map-based"};
constexpr List<4> kHaproxyHashes{"sdbm", "djb2", "wt6", "crc32"};
constexpr List<2> kSpyLocators{"ARRAY_MOD", "KETAMA"};
constexpr List<7> kSpyHashes{"NATIVE_HASH",  "CRC_HASH",      "FNV1_64_HASH", "FNV1A_64_HASH",
                             "FNV1_32_HASH", "FNV1A_32_HASH", "KETAMA_HASH"};
constexpr List<2> kSpyFormats{"SPYMEMCACHED", "LIBMEMCACHED"};
constexpr List<2> kHashringCompatible{"ketama", "hash_ring"};
constexpr List<2> kEnvoyFunctions{"XX_HASH", "MURMUR_HASH_2"};
constexpr List<3> kGoHashes{"fnv1a", "md5", "xxh3"};
constexpr List<2> kPhpHashes{"crc32", "md5"};

constexpr std::uint64_t kMaxVnodes = 65'536;
constexpr std::uint64_t kMaxTable = 5'000'011;  // Envoy's own bound.

constexpr std::array<OptionRule, 3> kLibmemcached{
    {{"distribution", Kind::word, "modula", kLibmemcachedDistributions},
     {"hash", Kind::word, "default", kLibmemcachedHashes},
     {"weighted", Kind::flag, "false"}}};
constexpr std::array<OptionRule, 2> kTwemproxy{
    {{"distribution", Kind::word, "ketama", kTwemproxyDistributions},
     {"hash", Kind::word, "fnv1a_64", kTwemproxyHashes}}};
constexpr std::array<OptionRule, 1> kNginx{{{"consistent", Kind::flag, "false"}}};
constexpr std::array<OptionRule, 3> kHaproxy{{{"method", Kind::word, "consistent", kHaproxyMethods},
                                              {"hash", Kind::word, "sdbm", kHaproxyHashes},
                                              {"avalanche", Kind::flag, "false"}}};
constexpr std::array<OptionRule, 4> kSpymemcached{{{"locator", Kind::word, "ARRAY_MOD", kSpyLocators},
                                                   {"hash", Kind::word, "NATIVE_HASH", kSpyHashes},
                                                   {"format", Kind::word, "SPYMEMCACHED", kSpyFormats},
                                                   {"weighted", Kind::flag, ""}}};
constexpr std::array<OptionRule, 5> kHashring{{{"hash", Kind::digest, "md5"},
                                               {"vnodes", Kind::whole, "40", {}, 1, kMaxVnodes},
                                               {"replicas", Kind::whole, "4", {}, 1, 16},
                                               {"compatibility", Kind::word, "", kHashringCompatible},
                                               {"default_port", Kind::whole, "", {}, 1, 65'535}}};
constexpr std::array<OptionRule, 1> kFast{{{"ketama_points", Kind::whole, "0", {}, 0, kMaxVnodes}}};
constexpr std::array<OptionRule, 3> kEnvoyRing{
    {{"hash_function", Kind::word, "XX_HASH", kEnvoyFunctions},
     {"minimum_ring_size", Kind::whole, "1024", {}, 1, kMaxPeerPoints},
     {"maximum_ring_size", Kind::whole, "8388608", {}, 1, 8'388'608}}};
constexpr std::array<OptionRule, 1> kMaglev{{{"table_size", Kind::whole, "65537", {}, 2, kMaxTable}}};
constexpr std::array<OptionRule, 2> kGo{
    {{"hash", Kind::word, "fnv1a", kGoHashes}, {"vnodes", Kind::whole, "200", {}, 1, kMaxVnodes}}};
constexpr std::array<OptionRule, 2> kPhp{
    {{"hash", Kind::word, "crc32", kPhpHashes}, {"vnodes", Kind::whole, "160", {}, 1, kMaxVnodes}}};
constexpr std::array<OptionRule, 1> kJs{{{"vnodes", Kind::whole, "160", {}, 1, kMaxVnodes}}};

constexpr std::array<Entry, 14> kCatalog{
    {{"libmemcached", kLibmemcached, false, true, 0, build_libmemcached},
     {"twemproxy", kTwemproxy, true, true, 0, build_twemproxy},
     {"libketama", {}, false, true, 0, build_libketama},
     {"nginx", kNginx, false, true, 0, build_nginx},
     {"haproxy", kHaproxy, false, true, 256, build_haproxy},
     {"spymemcached", kSpymemcached, false, true, 0, build_spymemcached},
     {"dalli", {}, false, true, 0, build_dalli},
     {"hashring", kHashring, false, false, 0, build_hashring},
     {"cache-memcached-fast", kFast, false, false, 0, build_cache_memcached_fast},
     {"envoy-ring", kEnvoyRing, false, true, 0, build_envoy_ring},
     {"envoy-maglev", kMaglev, false, true, 0, build_envoy_maglev},
     {"article-go", kGo, false, true, 0, build_article_go},
     {"article-php", kPhp, false, true, 0, build_article_php},
     {"article-js", kJs, false, true, 0, build_article_js}}};

std::string check_value(const OptionRule& rule, const std::string& value) {
  switch (rule.kind) {
    case Kind::word:
      if (std::ranges::find(rule.words, value) != rule.words.end()) return {};
      return fmt::format("'{:.60}' is not one of {}", value, fmt::join(rule.words, ", "));
    case Kind::flag:
      if (value == "true" || value == "false") return {};
      return fmt::format("'{:.60}' is not true or false", value);
    case Kind::whole: {
      const auto number = base::parse_u64(value);
      if (number && *number >= rule.least && *number <= rule.most) return {};
      return fmt::format("'{:.60}' is not a whole number from {} to {}", value, rule.least, rule.most);
    }
    case Kind::digest:
      if (hashing::peers::Digest::find(value)) return {};
      return fmt::format("'{:.60}' is no digest that OpenSSL knows: hashring's own default is md5", value);
  }
  return {};
}

// What two options say together.
std::optional<OptionProblem> check_together(const Entry& entry, const Options& options) {
  if (entry.name == "envoy-maglev") {
    const auto size = base::parse_u64(option(options, "table_size", "65537")).value_or(0);
    if (!is_prime(static_cast<std::uint32_t>(size))) {
      return OptionProblem{"table_size",
                           fmt::format("{} is not prime, as Envoy demands: 65537 is its own", size)};
    }
  }
  if (entry.name == "hashring") {
    const auto digest = hashing::peers::Digest::find(option(options, "hash", "md5"));
    const auto replicas = base::parse_u64(option(options, "replicas", "4")).value_or(0);
    if (digest && replicas * 4 > digest->size()) {
      return OptionProblem{"replicas", fmt::format("{} points need {} bytes, and the digest has {}", replicas,
                                                   replicas * 4, digest->size())};
    }
  }
  return std::nullopt;
}

}  // namespace

const OptionRule* Entry::find(std::string_view name_of_option) const noexcept {
  const auto found = std::ranges::find(options, name_of_option, &OptionRule::name);
  return found == options.end() ? nullptr : &*found;
}

std::span<const Entry> catalog() noexcept { return kCatalog; }

const Entry* find_peer(std::string_view name) noexcept {
  const auto found = std::ranges::find(kCatalog, name, &Entry::name);
  return found == kCatalog.end() ? nullptr : &*found;
}

std::optional<OptionProblem> check(const Entry& entry, const Options& options) {
  for (const auto& [name, value] : options) {
    const OptionRule* rule = entry.find(name);
    if (rule == nullptr) {
      std::vector<std::string_view> known;
      for (const OptionRule& each : entry.options) known.push_back(each.name);
      if (entry.hash_tag) known.push_back("hash_tag");
      return OptionProblem{
          name, fmt::format("'{:.60}' is no option of {}: it has {}", name, entry.name,
                            known.empty() ? std::string("none") : fmt::format("{}", fmt::join(known, ", ")))};
    }
    if (name == "distribution" && value == "random") {
      return OptionProblem{name, "random is no placement: a key would have no owner; use ketama or modula"};
    }
    if (std::string wrong = check_value(*rule, value); !wrong.empty()) return OptionProblem{name, wrong};
  }
  return check_together(entry, options);
}

std::optional<ServerProblem> check(const Entry& entry, std::span<const Server> servers) {
  double total = 0;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Server& server = servers[i];
    if (!(server.weight > 0) || !std::isfinite(server.weight)) {
      return ServerProblem{i, false, fmt::format("{} is not a weight: give a number above 0", server.weight)};
    }
    if (entry.whole_weights && server.weight != std::floor(server.weight)) {
      return ServerProblem{
          i, false, fmt::format("{} is not whole: {} takes whole weights only", server.weight, entry.name)};
    }
    if (entry.max_weight != 0 && server.weight > entry.max_weight) {
      return ServerProblem{i, false,
                           fmt::format("{} is more than {}'s greatest weight, {}", server.weight, entry.name,
                                       entry.max_weight)};
    }
    if (entry.name == "haproxy" && !server.label.empty()) {
      const auto id = base::parse_u64(server.label);
      if (!id || *id == 0 || *id > 0x7fffffff) {
        return ServerProblem{i, true,
                             fmt::format("'{:.60}' is no server id of HAProxy: give a number from 1 on, or "
                                         "nothing for its place in the list",
                                         server.label)};
      }
    }
    total += server.weight;
  }
  // Every peer has some points a server and, with weights that count one by one, as many times more.
  constexpr double kMostPerServer = 160;
  if (total * kMostPerServer > static_cast<double>(kMaxPeerPoints) &&
      (entry.name == "nginx" || entry.name == "cache-memcached-fast")) {
    return ServerProblem{0, false,
                         fmt::format("the weights sum up to {}, of which {} would make more than {} "
                                     "points: divide them all by a common number",
                                     total, entry.name, kMaxPeerPoints)};
  }
  if (total > static_cast<double>(kMaxPeerPoints)) {
    return ServerProblem{0, false,
                         fmt::format("the weights sum up to {}, more than {}: divide them all by a "
                                     "common number",
                                     total, kMaxPeerPoints)};
  }
  return std::nullopt;
}

}  // namespace ringshift::placement::peers
