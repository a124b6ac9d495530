// Recordings without keys: jump's rows, Envoy's tables, Redis's slots and the points of rings.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/encoding.h"
#include "hashing/crc16.h"
#include "hashing/hash_tag.h"
#include "hashing/peers/crc32.h"
#include "placement/peers/builders.h"
#include "placement/peers/jump.h"
#include "placement/slots.h"
#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

using placement::peers::Point32;
using placement::peers::RingPeer;
using placement::peers::TablePeer;
using placement::peers::WideRingPeer;

std::uint64_t number_of(const Node& node) { return base::parse_u64(node.text).value_or(~std::uint64_t{0}); }

void check_jump_rows(const std::string& name, const Node& rows, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = name;
  Comparison comparison(result);
  for (const Node& row : rows.items) {
    const auto buckets = row.items.size() == 3 ? number_of(row.items[1]) : 0;
    if (buckets == 0 || buckets > 0x7fffffff) {
      result.problem = "a row is [hash, buckets, answer], with at least one bucket";
      return;
    }
    const auto ours =
        placement::peers::jump_bucket(number_of(row.items[0]), static_cast<std::int32_t>(buckets));
    comparison.expect(fmt::format("{} of {}", row.items[0].text, buckets), number_of(row.items[2]),
                      static_cast<std::uint64_t>(ours));
  }
}

// The servers of `hosts` by their whole text: Envoy hashes what it is given.
Result<std::vector<Server>> envoy_hosts(const Node& node) {
  auto servers = read_servers(node, "hosts", {});
  if (!servers) return servers;
  const Node* hosts = node.find("hosts");
  for (std::size_t i = 0; i < servers->size() && hosts->kind == Node::Kind::list; ++i) {
    if (!hosts->items[i].text.empty()) (*servers)[i].label = hosts->items[i].text;
  }
  return servers;
}

void check_maglev(const Node& node, Case& result) {
  const auto hosts = envoy_hosts(node);
  const Node* table = node.find("table");
  if (!hosts || table == nullptr) {
    result.problem = hosts ? "no table" : hosts.error().message;
    return;
  }
  const auto peer = build("envoy-maglev", {{"table_size", text(node, "M")}}, *hosts);
  const auto* ours = peer ? dynamic_cast<const TablePeer*>(peer->get()) : nullptr;
  if (ours == nullptr || ours->table().size() != table->items.size()) {
    result.problem = peer ? "the table has not M entries" : peer.error().message;
    return;
  }
  Comparison comparison(result);
  std::string answer;
  for (std::size_t i = 0; i < table->items.size(); ++i) {
    comparison.expect(fmt::format("entry {}", i), number_of(table->items[i]),
                      std::uint64_t{ours->table()[i]});
    answer += fmt::format("{}{}", i == 0 ? "" : ",", ours->table()[i]);
  }
  result.answer = '[' + answer + ']';
}

void check_ring_hash(const Node& node, std::string_view hash, Case& result) {
  const auto hosts = envoy_hosts(node);
  const Node* ring = node.find("ring");
  if (!hosts || ring == nullptr) {
    result.problem = hosts ? "no ring" : hosts.error().message;
    return;
  }
  Options options{{"minimum_ring_size", text(node, "min_ring")}};
  if (has(node, "max_ring")) options["maximum_ring_size"] = text(node, "max_ring");
  if (hash.find("murmur") != std::string_view::npos) {
    options["hash_function"] = "MURMUR_HASH_2";
  } else if (hash.find("xxh64") == std::string_view::npos && hash.find("xx_hash") == std::string_view::npos) {
    result.problem = fmt::format("hash '{:.60}' is not known", hash);
    return;
  }
  const auto peer = build("envoy-ring", options, *hosts);
  const auto* ours = peer ? dynamic_cast<const WideRingPeer*>(peer->get()) : nullptr;
  if (ours == nullptr) {
    result.problem = peer.error().message;
    return;
  }
  Comparison comparison(result);
  std::string answer;
  for (std::size_t i = 0; i < std::max(ring->items.size(), ours->points().size()); ++i) {
    const Node* row = i < ring->items.size() && ring->items[i].items.size() == 2 ? &ring->items[i] : nullptr;
    const std::string theirs = row == nullptr ? "none" : row->items[0].text + " of " + row->items[1].text;
    std::string mine = "none";
    if (i < ours->points().size()) {
      const auto& point = ours->points()[i];
      mine = fmt::format("{} of {}", point.hash, point.member);
      answer += fmt::format("{}[\"{}\",{}]", i == 0 ? "" : ",", point.hash, point.member);
    }
    comparison.expect(fmt::format("point {}", i), theirs, mine);
  }
  result.answer = '[' + answer + ']';
}

void check_envoy_list(const Node& root, std::string_view field, File& out) {
  const Node* list = root.find(field);
  if (list == nullptr) return;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const Node& node = list->items[i];
    Case& result = out.cases.emplace_back();
    const std::string algorithm = lower(text(node, "algorithm"));
    const std::string hash = lower(has(node, "hash") ? text(node, "hash") : algorithm);
    result.name = fmt::format("{} {}{}", field, i, algorithm.empty() ? "" : " " + algorithm);
    const bool table = has(node, "table");
    result.pointer = fmt::format("/{}/{}/{}", field, i, table ? "table" : "ring");
    if (table) {
      check_maglev(node, result);
    } else {
      check_ring_hash(node, hash, result);
    }
  }
}

}  // namespace

void check_jump(const Node& root, File& out) {
  for (std::size_t i = 0; i < root.items.size(); ++i) {
    if (const Node* rows = root.items[i].find("rows")) check_jump_rows(root.names[i], *rows, out);
  }
  if (const Node* rows = root.find("rows"); rows != nullptr && rows->kind == Node::Kind::list)
    check_jump_rows("rows", *rows, out);
}

void check_envoy(const Node& root, File& out) {
  for (const std::string_view field : {"maglev_published", "ring_published", "extended"})
    check_envoy_list(root, field, out);
}

void check_key_slots(const Node& root, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = text(root, "call").empty() ? "slots" : text(root, "call");
  result.pointer = "/slots";
  const auto keys = read_keys(*root.find("keys"));
  const Node& slots = *root.find("slots");
  if (!keys || keys->size() != slots.items.size()) {
    result.problem = keys ? "not one slot for each key" : keys.error().message;
    return;
  }
  const hashing::HashTag tag("{}");
  Comparison comparison(result);
  for (std::size_t i = 0; i < keys->size(); ++i) {
    const std::uint64_t ours = hashing::crc16(tag.apply((*keys)[i])) & (placement::kSlotCount - 1);
    comparison.expect(fmt::format("key {}", i), number_of(slots.items[i]), ours);
    result.answer += fmt::format("{}{}", i == 0 ? "[" : ",", ours);
  }
  result.answer += ']';
}

namespace {

// A ring of ring_points.json names its servers in words: "twemproxy weights 1,2 (127.0.0.1:31100..31101)".
struct Named {
  std::string algorithm;
  Options options;
  std::vector<Server> servers;
  bool raw = false;  // Its points are read in another way than first-at-or-after.
};

std::vector<double> numbers_after(std::string_view title, std::string_view word) {
  std::vector<double> out;
  auto at = title.find(word);
  if (at == std::string_view::npos) return out;
  for (std::string_view rest = title.substr(at + word.size()); !rest.empty();) {
    double value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc{}) break;
    out.push_back(value);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (!rest.starts_with(',')) break;
    rest.remove_prefix(1);
  }
  return out;
}

// "HOST:FIRST..LAST" somewhere in the title.
std::vector<Server> port_range(std::string_view title) {
  std::vector<Server> servers;
  for (std::string_view word : words(title)) {
    const auto dots = word.find("..");
    const auto colon = word.rfind(':', dots);
    if (dots == std::string_view::npos || colon == std::string_view::npos) continue;
    std::string_view host = word.substr(0, colon), last = word.substr(dots + 2);
    if (host.starts_with('(')) host.remove_prefix(1);
    while (!last.empty() && (last.back() < '0' || last.back() > '9')) last.remove_suffix(1);
    const auto from = base::parse_u64(word.substr(colon + 1, dots - colon - 1)), to = base::parse_u64(last);
    if (!from || !to || *to < *from || *to - *from >= kMaxServers) continue;
    for (std::uint64_t port = *from; port <= *to; ++port) {
      Server server;
      server.host = host;
      server.port = std::to_string(port);
      servers.push_back(std::move(server));
    }
    return servers;
  }
  return servers;
}

// "10.0.1.1..: ports 11211,11212; w 1,2": one address after the other.
std::vector<Server> ports_of_addresses(std::string_view title) {
  std::vector<Server> servers;
  const auto ports = numbers_after(title, "ports ");
  const auto open = title.find('('), dots = title.find("..:");
  if (open == std::string_view::npos || dots == std::string_view::npos || ports.empty()) return servers;
  const std::string_view first = title.substr(open + 1, dots - open - 1);
  const auto dot = first.rfind('.');
  const auto start = base::parse_u64(first.substr(dot == std::string_view::npos ? 0 : dot + 1));
  if (dot == std::string_view::npos || !start) return servers;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Server server;
    server.host = fmt::format("{}.{}", first.substr(0, dot), *start + i);
    server.port = fmt::format("{:.0f}", ports[i]);
    servers.push_back(std::move(server));
  }
  return servers;
}

std::vector<Server> haproxy_ids(std::string_view title) {
  std::vector<Server> servers;
  const auto ids = title.find("ids ");
  if (ids == std::string_view::npos) return servers;
  const std::string_view range = words(title.substr(ids + 4)).front();
  const auto dots = range.find("..");
  const auto from = base::parse_u64(range.substr(0, dots));
  const auto to = dots == std::string_view::npos ? from : base::parse_u64(range.substr(dots + 2));
  if (!from || !to || *to < *from || *to - *from >= kMaxServers) return servers;
  for (std::uint64_t id = *from; id <= *to; ++id) {
    Server server;
    server.host = "s" + std::to_string(id);
    server.label = std::to_string(id);
    servers.push_back(std::move(server));
  }
  return servers;
}

// "dalli eq5": the servers of case eq5 in dalli.json, beside this file.
std::vector<Server> servers_of_case(std::string_view algorithm, std::string_view id, const Sibling& sibling) {
  const auto content = sibling(std::string(algorithm) + ".json");
  const auto document = content ? topology::parse_json_document(*content, algorithm) : Result<Node>{Node{}};
  const Node* cases = document ? document->find("cases") : nullptr;
  if (cases == nullptr) return {};
  for (const Node& node : cases->items) {
    if (text(node, "id") != id) continue;
    if (auto servers = read_servers(node, "servers", form_of(algorithm))) return std::move(*servers);
  }
  return {};
}

Named named_ring(const std::string& title, const Node& node, const Sibling& sibling) {
  Named out;
  out.algorithm = algorithm_of(title);
  const auto parts = words(title);
  if (has(node, "servers")) {
    if (auto servers = read_servers(node, "servers", form_of(out.algorithm)))
      out.servers = std::move(*servers);
  }
  if (out.servers.empty()) out.servers = port_range(title);
  if (out.servers.empty()) out.servers = ports_of_addresses(title);
  if (out.servers.empty()) out.servers = haproxy_ids(title);
  if (out.servers.empty() && parts.size() >= 2)
    out.servers = servers_of_case(out.algorithm, parts[1], sibling);
  auto weights = numbers_after(title, "weights ");
  if (weights.empty()) weights = numbers_after(title, "; w ");
  if (weights.empty()) weights = numbers_after(title, " w");
  for (std::size_t i = 0; i < out.servers.size(); ++i) {
    out.servers[i].index = static_cast<placement::MemberIndex>(i);
    if (!weights.empty()) out.servers[i].weight = weights[std::min(i, weights.size() - 1)];
  }
  if (out.algorithm == "libmemcached") {
    out.options = {
        {"distribution", title.find("weighted") != std::string::npos ? "ketama_weighted" : "ketama"}};
  }
  if (out.algorithm == "nginx") out.options = {{"consistent", "true"}};
  out.raw = out.algorithm == "dalli" || out.algorithm == "haproxy";
  return out;
}

std::string checksum_bytes(std::span<const Point32> points) {
  std::string bytes;
  for (const Point32& point : points) {
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<char>((point.hash >> shift) & 0xff));
    for (int shift = 0; shift < 16; shift += 8)
      bytes.push_back(static_cast<char>((point.member >> shift) & 0xff));
  }
  return bytes;
}

void compare_some(const Node* rows, std::span<const Point32> points, std::size_t first, std::string_view name,
                  Comparison& comparison) {
  if (rows == nullptr) return;
  for (std::size_t i = 0; i < rows->items.size(); ++i) {
    const Node& row = rows->items[i];
    const std::string theirs =
        row.items.size() == 2 ? row.items[0].text + " of " + row.items[1].text : "none";
    const bool there = first + i < points.size();
    comparison.expect(fmt::format("{} {}", name, i), theirs,
                      there ? fmt::format("{} of {}", points[first + i].hash, points[first + i].member)
                            : std::string("none"));
  }
}

void check_ring(const std::string& title, const Node& node, const Sibling& sibling, Case& result) {
  const Named ring = named_ring(title, node, sibling);
  if (ring.algorithm.empty() || ring.servers.empty()) {
    result.problem =
        ring.algorithm.empty() ? "its peer is not known" : "its servers cannot be told from its name";
    return;
  }
  const auto peer = build(ring.algorithm, ring.options, ring.servers);
  if (!peer) {
    result.problem = peer.error().message;
    return;
  }
  const auto* built = dynamic_cast<const RingPeer*>(peer->get());
  if (built == nullptr) {
    result.problem = "its peer has no ring of 32 bits";
    return;
  }
  std::vector<Point32> points(built->ring().points().begin(), built->ring().points().end());
  if (ring.raw) {
    points = ring.algorithm == "dalli" ? placement::peers::dalli_points(ring.servers)
                                       : placement::peers::haproxy_points(ring.servers);
  }
  Comparison comparison(result);
  if (const auto total = whole(node, "n")) comparison.expect("points", *total, std::uint64_t{points.size()});
  if (const Node* each = node.find("points_per_server")) {
    for (std::size_t i = 0; i < each->items.size(); ++i) {
      const auto ours = std::ranges::count(points, i, &Point32::member);
      comparison.expect(fmt::format("points of server {}", i), number_of(each->items[i]),
                        static_cast<std::uint64_t>(ours));
    }
  }
  compare_some(node.find("first8"), points, 0, "first", comparison);
  if (const Node* last = node.find("last8")) {
    compare_some(last, points, points.size() - std::min(points.size(), last->items.size()), "last",
                 comparison);
  }
  if (const auto sum = whole(node, "crc32_of_le_u32_point_then_le_u16_owner")) {
    comparison.expect("checksum", *sum, std::uint64_t{hashing::peers::crc32(checksum_bytes(points))});
  }
}

}  // namespace

void check_ring_points(const Node& root, const Sibling& sibling, File& out) {
  for (std::size_t i = 0; i < root.items.size(); ++i) {
    if (root.items[i].kind != Node::Kind::map) continue;
    Case& result = out.cases.emplace_back();
    result.name = root.names[i];
    check_ring(root.names[i], root.items[i], sibling, result);
  }
}

}  // namespace ringshift::plan::vectors
