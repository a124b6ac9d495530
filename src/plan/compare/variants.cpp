#include "plan/compare/variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/encoding.h"
#include "placement/peers/catalog.h"

namespace ringshift::plan::compare {
namespace {

using Options = std::map<std::string, std::string, std::less<>>;

constexpr std::size_t kTokensPerMember = 64;

Variant own(std::string_view algorithm, const std::string& hash_tag) {
  Variant out{std::string(algorithm), {}, Family::ours};
  out.placement.algorithm = algorithm;
  out.placement.hash_tag = hash_tag;
  if (algorithm == "slots") out.placement.hash = "crc16";
  if (algorithm == "multi-probe") out.placement.points = 1;
  return out;
}

struct PeerVariant {
  std::string_view name, algorithm;
  Options options;
};

const std::vector<PeerVariant>& peer_variants() {
  static const std::vector<PeerVariant> kPeers{
      {"libmemcached-modula", "libmemcached", {{"distribution", "modula"}}},
      {"libmemcached-ketama", "libmemcached", {{"distribution", "ketama"}}},
      {"libmemcached-weighted", "libmemcached", {{"distribution", "ketama_weighted"}}},
      {"twemproxy-ketama", "twemproxy", {{"distribution", "ketama"}}},
      {"twemproxy-ketama-crc32", "twemproxy", {{"distribution", "ketama"}, {"hash", "crc32"}}},
      {"twemproxy-modula", "twemproxy", {{"distribution", "modula"}}},
      {"libketama", "libketama", {}},
      {"nginx", "nginx", {}},
      {"nginx-consistent", "nginx", {{"consistent", "true"}}},
      {"haproxy", "haproxy", {}},
      {"haproxy-map-based", "haproxy", {{"method", "map-based"}}},
      {"spymemcached", "spymemcached", {{"locator", "KETAMA"}, {"hash", "KETAMA_HASH"}}},
      {"dalli", "dalli", {}},
      {"hashring", "hashring", {}},
      {"cache-memcached-fast", "cache-memcached-fast", {{"ketama_points", "150"}}},
      {"envoy-ring", "envoy-ring", {}},
      {"envoy-maglev", "envoy-maglev", {}},
      {"article-go", "article-go", {}},
      {"article-php", "article-php", {}},
      {"article-js", "article-js", {}},
      {"article-python", "article-python", {}}};
  return kPeers;
}

// Token k of member i lies at (k * members + i) of tokens * members equal steps, as operators number them.
std::map<std::string, std::vector<std::uint64_t>> deal_tokens(const std::vector<topology::Member>& members) {
  const std::uint64_t step = ~std::uint64_t{0} / (kTokensPerMember * members.size());
  std::map<std::string, std::vector<std::uint64_t>> out;
  for (std::size_t k = 0; k < kTokensPerMember; ++k) {
    for (std::size_t i = 0; i < members.size(); ++i)
      out[members[i].id].push_back(step * (k * members.size() + i + 1));
  }
  return out;
}

bool is_group(std::string_view name, Family family) {
  return name == "all" || name == to_string(family) || (name == "peers" && family == Family::peer) ||
         (name == "articles" && family == Family::article);
}

}  // namespace

std::string_view to_string(Family family) noexcept {
  switch (family) {
    case Family::yours:
      return "yours";
    case Family::ours:
      return "ours";
    case Family::peer:
      return "peer";
    case Family::article:
      return "article";
  }
  return "";
}

std::vector<Variant> default_variants(const std::string& hash_tag) {
  std::vector<Variant> out;
  for (const char* algorithm : {"ring", "modulo", "slots", "jump", "rendezvous", "maglev", "multi-probe",
                                "memento", "partitions", "tokens", "bounded-ring"})
    out.push_back(own(algorithm, hash_tag));
  for (const PeerVariant& peer : peer_variants()) {
    const auto* entry = placement::peers::find_peer(peer.algorithm);
    if (entry == nullptr) continue;  // Not in this build.
    Variant variant{
        std::string(peer.name), {}, peer.name.starts_with("article-") ? Family::article : Family::peer};
    variant.placement.algorithm = peer.algorithm;
    const auto* hash = entry->find("hash");
    variant.placement.hash = hash == nullptr ? "" : hash->fallback;
    for (const auto& [name, value] : peer.options) {
      if (name == "hash") {
        variant.placement.hash = value;
      } else {
        variant.placement.options[name] = value;
      }
    }
    if (entry->hash_tag) variant.placement.hash_tag = hash_tag;
    out.push_back(std::move(variant));
  }
  return out;
}

Result<std::vector<Variant>> choose(const std::vector<Variant>& all, std::span<const std::string> names) {
  const auto matches = [](const Variant& variant, const std::string& name) {
    return variant.name == name || is_group(name, variant.family);
  };
  for (const std::string& name : names) {
    if (std::ranges::any_of(all, [&](const Variant& variant) { return matches(variant, name); })) continue;
    std::vector<std::string_view> known;
    known.reserve(all.size());
    for (const Variant& variant : all) known.push_back(variant.name);
    return fail(
        ErrorKind::invalid,
        fmt::format("--placements: '{}' is none: there are {}; and the groups ours, peers, articles, all",
                    base::printable(name, 60), fmt::join(known, ", ")));
  }
  std::vector<Variant> out;
  for (const Variant& variant : all) {
    if (std::ranges::any_of(names, [&](const std::string& name) { return matches(variant, name); }))
      out.push_back(variant);
  }
  return out;
}

topology::Spec first_spec(const Variant& variant, const std::vector<topology::Member>& members) {
  topology::Spec spec;
  spec.cluster = "compare";
  spec.consistency = topology::Consistency::none;  // Bounded-ring asks for it; it changes nothing else here.
  spec.placement = variant.placement;
  spec.members = members;
  if (spec.placement.algorithm == "tokens" && spec.placement.tokens.empty())
    spec.placement.tokens = deal_tokens(members);
  return spec;
}

}  // namespace ringshift::plan::compare
