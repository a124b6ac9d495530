#include "registry/rights.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/encoding.h"
#include "http/server.h"

namespace ringshift::registry {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kRoot = "/ringshift/";
constexpr std::size_t kIdBytesMax = 512;
constexpr std::size_t kRouterSuffix = 9;  // ".1a2b3c4d", which a router adds to its id at each start.
constexpr std::array<std::string_view, 4> kRoleNames = {"read", "register-own", "operate", "admin"};

// What register-own reads of a cluster: what begins so, since a router asks by prefix. An agent looks whether
// it is drained. Of routers/ its own records alone: they name the keys that are hot.
constexpr std::array<std::string_view, 5> kRouterReads = {"topology", "spec", "status", "instances/",
                                                          "drained/"};
// What the controller and routers write all the time, by themselves.
constexpr std::array<std::string_view, 9> kBookkeeping = {"status",     "controller",  "origin",
                                                          "membership", "checkpoint/", "history/",
                                                          "log/",       "routers/",    "instances/"};

std::string home(const Identity& who) { return std::string(kRoot) + who.name_space + "/"; }

// The end of the keys that begin with `prefix`, which ends with no 0xff byte.
std::string end_of(std::string prefix) {
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

// Whether all keys of the request begin with `prefix`.
bool within(std::string_view key, std::string_view range_end, const std::string& prefix) {
  if (!key.starts_with(prefix)) return false;
  return range_end.empty() || (range_end != std::string_view("\0", 1) && range_end <= end_of(prefix));
}

// "/ringshift/NAMESPACE/CLUSTER/" and what follows it; nullopt when it is no such key.
struct ClusterKey {
  std::string_view cluster, rest;  // `cluster` is the whole prefix.
};
std::optional<ClusterKey> cluster_key(std::string_view key) {
  if (!key.starts_with(kRoot)) return std::nullopt;
  const std::size_t name_space = key.find('/', kRoot.size());
  if (name_space == std::string_view::npos) return std::nullopt;
  const std::size_t cluster = key.find('/', name_space + 1);
  if (cluster == std::string_view::npos || cluster == name_space + 1) return std::nullopt;
  return ClusterKey{key.substr(0, cluster + 1), key.substr(cluster + 1)};
}

std::string whom(const Identity& who) {
  return fmt::format("token '{}' ({}, namespace {})", who.name, to_string(who.role), who.name_space);
}

std::unexpected<Error> deny(const Identity& who, std::string_view what, std::string_view key,
                            std::string_view why = "") {
  return fail(ErrorKind::denied, fmt::format("permission denied: {} may not {} {}{}{}", whom(who), what,
                                             base::printable(key, kKeyShown), why.empty() ? "" : ": ", why));
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& id) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& p) { return fnmatch(p.c_str(), id.c_str(), 0) == 0; });
}

bool owns(const Identity& who, const std::string& id, bool router) {
  const std::vector<std::string> own = {who.name, who.name + ".*"};
  const std::vector<std::string>& patterns = who.ids.empty() ? own : who.ids;
  if (matches_any(patterns, id)) return true;
  if (!router || id.size() <= kRouterSuffix || id[id.size() - kRouterSuffix] != '.') return false;
  const std::string suffix = id.substr(id.size() - kRouterSuffix + 1);
  return suffix.find_first_not_of("0123456789abcdef") == std::string::npos &&
         matches_any(patterns, id.substr(0, id.size() - kRouterSuffix));
}

bool plain_id(std::string_view id) {
  return !id.empty() && std::ranges::none_of(id, [](char c) {
    return c == '/' || static_cast<unsigned char>(c) <= 0x20 || c == 0x7f;
  });
}

// The id in "instances/ID" or "routers/ID" of its own namespace; denied when it is no such key, or another's.
struct OwnKey {
  std::string id;
  bool router = false;
};
Result<OwnKey> own_key(const Identity& who, std::string_view verb, std::string_view key) {
  const auto parts = cluster_key(key);
  const bool here = parts && key.starts_with(home(who));
  const bool router = here && parts->rest.starts_with("routers/");
  if (!here || !(router || parts->rest.starts_with("instances/"))) {
    return deny(who, verb, key, "it writes instances/ID and routers/ID of its namespace");
  }
  std::string id(parts->rest.substr(parts->rest.find('/') + 1));
  if (!plain_id(id) || id.size() > kIdBytesMax || !owns(who, id, router))
    return deny(who, verb, key, "the id is not its own");
  return OwnKey{std::move(id), router};
}

// A record that an agent writes of the instance that it runs beside.
Status check_record(const Identity& who, const store::PutRequest& request, const std::string& id) {
  const auto refuse = [&](std::string_view why) { return Status(deny(who, "write", request.key, why)); };
  const Json record = Json::parse(request.value, nullptr, false);
  if (!record.is_object()) return refuse("the record is no JSON object");
  const auto text = [&](const char* name) {
    const auto field = record.find(name);
    return field != record.end() && field->is_string() ? field->get<std::string>() : std::string();
  };
  if (text("id") != id) return refuse("the record's id is not the key's");
  for (const char* name : {"weight", "zone"}) {
    if (record.contains(name)) {
      return refuse(fmt::format("the record has a {}, which operators alone decide", name));
    }
  }
  if (!who.addresses.empty() && !in_ranges(text("address"), who.addresses)) {
    return refuse("the record's address is not an IP address in the token's ranges");
  }
  return {};
}

struct Bits {
  std::array<unsigned char, 16> bytes{};
  int family = 0;
};
std::optional<Bits> parse_ip(const std::string& text) {
  Bits bits;
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, text.c_str(), bits.bytes.data()) != 1) continue;
    bits.family = family;
    return bits;
  }
  return std::nullopt;
}

struct RangeOfAddresses {
  Bits first;
  int length = 0;  // Of the part that all have in common, in bits.
};
std::optional<RangeOfAddresses> parse_range_of(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = parse_ip(std::string(text.substr(0, slash)));
  if (!address) return std::nullopt;
  const std::uint64_t whole = address->family == AF_INET ? 32 : 128;
  const auto length = slash == std::string_view::npos ? whole : base::parse_u64(text.substr(slash + 1));
  if (!length || *length > whole) return std::nullopt;
  return RangeOfAddresses{*address, static_cast<int>(*length)};
}

bool contains(const RangeOfAddresses& range, const Bits& address) {
  if (range.first.family != address.family) return false;
  for (int bit = 0; bit < range.length; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const int differs = range.first.bytes[byte] ^ address.bytes[byte];
    if (((differs >> (7 - bit % 8)) & 1) != 0) return false;
  }
  return true;
}

bool plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

}  // namespace

std::string_view to_string(Role role) noexcept { return kRoleNames[static_cast<std::size_t>(role)]; }

std::optional<Role> role_of(std::string_view name) noexcept {
  const auto found = std::ranges::find(kRoleNames, name);
  if (found == kRoleNames.end()) return std::nullopt;
  return static_cast<Role>(found - kRoleNames.begin());
}

Status check_identity(const Identity& identity) {
  const auto bad = [](std::string_view field, std::string_view value, std::string_view form) {
    return Status(
        fail(ErrorKind::invalid, fmt::format("{} {}: {}", field, base::printable(value, kKeyShown), form)));
  };
  constexpr std::string_view kForm = "write letters, digits, '.', '_' and '-', at most 64 of them";
  if (!plain_name(identity.name)) return bad("name", identity.name, kForm);
  if (identity.role == Role::admin) {
    if (identity.name_space != kAllNamespaces) {
      return bad("namespace", identity.name_space, "an admin's token is for all of them: leave it out");
    }
  } else if (!plain_name(identity.name_space)) {
    return bad("namespace", identity.name_space, kForm);
  }
  if (identity.role != Role::register_own && !(identity.ids.empty() && identity.addresses.empty())) {
    return bad("role", to_string(identity.role), "ids and address ranges are for register-own");
  }
  if (identity.ids.size() > kPatternsMax || identity.addresses.size() > kPatternsMax) {
    return bad("ids and addresses", "", fmt::format("at most {} of each", kPatternsMax));
  }
  for (const std::string& id : identity.ids) {
    if (!plain_id(id) || id.size() > 2 * kNameBytesMax || id.find(',') != std::string::npos) {
      return bad("id pattern", id, "write a name, with * and ? for what may differ: cache-*");
    }
  }
  for (const std::string& range : identity.addresses) {
    if (!parse_range_of(range))
      return bad("address range", range, "write it as 10.1.0.0/16, 10.1.2.3 or fd00::/8");
  }
  return {};
}

bool in_ranges(std::string_view address, const std::vector<std::string>& ranges) {
  const auto place = http::parse_host_port(address);
  if (!place) return false;
  const auto bits = parse_ip(place->host);
  return bits && std::ranges::any_of(ranges, [&](const std::string& text) {
           const auto range = parse_range_of(text);
           return range && contains(*range, *bits);
         });
}

Status may_read(const Identity& who, std::string_view key, std::string_view range_end) {
  const std::string_view what = range_end.empty() ? "read" : "read the range from";
  if (who.role == Role::admin) return {};
  if (!within(key, range_end, home(who))) return deny(who, what, key);
  if (who.role != Role::register_own) return {};
  const auto parts = cluster_key(key);
  const bool allowed = parts && std::ranges::any_of(kRouterReads, [&](std::string_view name) {
                         return within(key, range_end, std::string(parts->cluster) + std::string(name));
                       });
  if (allowed || (range_end.empty() && own_key(who, what, key))) return {};
  return deny(who, what, key, "it reads topology, spec, status, instances/, drained/ and its own routers/ID");
}

Status may_put(const Identity& who, const store::PutRequest& request) {
  if (who.role == Role::admin) return {};
  if (who.role == Role::read || !within(request.key, "", home(who))) return deny(who, "write", request.key);
  if (who.role == Role::operate) return {};
  const Result<OwnKey> own = own_key(who, "write", request.key);
  if (!own) return std::unexpected(own.error());
  if (request.lease == 0 || request.ignore_lease || request.ignore_value) {
    return deny(who, "write", request.key, "it writes whole records, each under a lease");
  }
  if (request.value.size() > kRecordBytesMax) {
    return deny(
        who, "write", request.key,
        fmt::format("a record has at most {} bytes, this one {}", kRecordBytesMax, request.value.size()));
  }
  return own->router ? Status() : check_record(who, request, own->id);
}

Status may_remove(const Identity& who, const store::DeleteRequest& request) {
  if (who.role == Role::admin) return {};
  if (who.role == Role::read || !within(request.key, request.range_end, home(who))) {
    return deny(who, "remove", request.key);
  }
  if (who.role == Role::operate) return {};
  if (!request.range_end.empty()) return deny(who, "remove", request.key, "it removes one key at a time");
  const Result<OwnKey> own = own_key(who, "remove", request.key);
  if (!own) return std::unexpected(own.error());
  return {};
}

std::string_view id_in(std::string_view key) noexcept { return key.substr(key.rfind('/') + 1); }

Status may_lease(const Identity& who) {
  if (who.role != Role::read) return {};
  return fail(ErrorKind::denied, fmt::format("permission denied: {} may not have leases", whom(who)));
}

Status may_administer(const Identity& who, std::string_view what) {
  if (who.role == Role::admin) return {};
  return fail(ErrorKind::denied,
              fmt::format("permission denied: {} may not use {}: it is for role admin", whom(who), what));
}

bool worth_auditing(std::string_view key) {
  const auto parts = cluster_key(key);
  return !parts || std::ranges::none_of(kBookkeeping, [&](std::string_view name) {
    return name.ends_with('/') ? parts->rest.starts_with(name) : parts->rest == name;
  });
}

}  // namespace ringshift::registry
