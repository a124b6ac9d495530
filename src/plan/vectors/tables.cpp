// Recordings without keys: jump's rows, Redis's slots and the points of rings.
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

constexpr std::uint64_t kNone = ~std::uint64_t{0};  // No recorded answer is that.

std::uint64_t number_of(const Node& node) { return base::parse_u64(node.text).value_or(kNone); }

}  // namespace

void check_jump_rows(const Place& rows, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = "jump " + rows.at;
  Comparison comparison(result);
  for (std::size_t i = 0; i < rows.node.items.size(); ++i) {
    const Node& row = rows.node.items[i];
    const auto buckets = row.items.size() == 3 ? number_of(row.items[1]) : 0;
    const auto hash = row.items.size() == 3 ? base::parse_u64(row.items[0].text) : std::nullopt;
    if (buckets == 0 || buckets > 0x7fffffff || !hash) {
      result.problem = fmt::format("row {} is not [hash, buckets, answer], with at least one bucket", i);
      return;
    }
    const auto ours = placement::peers::jump_bucket(*hash, static_cast<std::int32_t>(buckets));
    comparison.expect_at(rows.at + step(i) + "/2", fmt::format("{} of {}", row.items[0].text, buckets),
                         number_of(row.items[2]), static_cast<std::uint64_t>(ours));
  }
}

void check_key_slots(const Place& root, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = text(root.node, "call").empty() ? "slots" : text(root.node, "call");
  const auto keys = read_keys(*root.node.find("keys"));
  const Node& slots = *root.node.find("slots");
  if (!keys || keys->size() != slots.items.size()) {
    result.problem =
        keys ? fmt::format("{} slots for {} keys", slots.items.size(), keys->size()) : keys.error().message;
    return;
  }
  const hashing::HashTag tag("{}");
  Comparison comparison(result);
  for (std::size_t i = 0; i < keys->size(); ++i) {
    const std::uint64_t ours = hashing::crc16(tag.apply((*keys)[i])) & (placement::kSlotCount - 1);
    comparison.expect_at(root.at + "/slots" + step(i), fmt::format("key {}", i), number_of(slots.items[i]),
                         ours);
  }
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

void compare_some(const Place& ring, std::string_view field, std::span<const Point32> points, bool from_end,
                  Comparison& comparison) {
  const auto rows = ring.child(field);
  if (!rows) return;
  const std::size_t count = rows->node.items.size();
  const std::size_t first = from_end ? points.size() - std::min(points.size(), count) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Node& row = rows->node.items[i];
    const bool there = first + i < points.size();
    const auto theirs = [&row](std::size_t at) -> std::uint64_t {
      return row.items.size() == 2 ? number_of(row.items[at]) : kNone;
    };
    comparison.expect_at(rows->at + step(i) + "/0", fmt::format("{} {}", field, i), theirs(0),
                         there ? std::uint64_t{points[first + i].hash} : kNone);
    comparison.expect_at(rows->at + step(i) + "/1", fmt::format("owner of {} {}", field, i), theirs(1),
                         there ? std::uint64_t{points[first + i].member} : kNone);
  }
}

// What the ring's own fields say of it.
void compare_ring(const Place& ring, std::span<const Point32> points, Comparison& comparison) {
  if (const auto total = whole(ring.node, "n"))
    comparison.expect_at(ring.at + "/n", "points", *total, std::uint64_t{points.size()});
  if (const Node* each = ring.node.find("points_per_server")) {
    for (std::size_t i = 0; i < each->items.size(); ++i) {
      const auto ours = std::ranges::count(points, i, &Point32::member);
      comparison.expect_at(ring.at + "/points_per_server" + step(i), fmt::format("points of server {}", i),
                           number_of(each->items[i]), static_cast<std::uint64_t>(ours));
    }
  }
  compare_some(ring, "first8", points, false, comparison);
  compare_some(ring, "last8", points, true, comparison);
  constexpr std::string_view kSum = "crc32_of_le_u32_point_then_le_u16_owner";
  if (const auto sum = whole(ring.node, kSum)) {
    comparison.expect_at(ring.at + step(kSum), "checksum", *sum,
                         std::uint64_t{hashing::peers::crc32(checksum_bytes(points))});
  }
}

}  // namespace

void check_ring_points(const Context& context, const Place& ring, const std::string& title, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = title;
  const Named named = named_ring(title, ring.node, context.sibling);
  if (named.algorithm.empty() || named.servers.empty()) {
    result.problem = named.algorithm.empty()
                         ? fmt::format("no peer that is known is named in '{:.80}'", title)
                         : "its servers cannot be told from its name";
    return;
  }
  const auto peer = build(named.algorithm, named.options, named.servers);
  const auto* built = peer ? dynamic_cast<const RingPeer*>(peer->get()) : nullptr;
  if (built == nullptr) {
    result.problem = peer ? "its peer has no ring of 32 bits" : peer.error().message;
    return;
  }
  std::vector<Point32> points(built->ring().points().begin(), built->ring().points().end());
  if (named.raw) {
    points = named.algorithm == "dalli" ? placement::peers::dalli_points(named.servers)
                                        : placement::peers::haproxy_points(named.servers);
  }
  Comparison comparison(result);
  compare_ring(ring, points, comparison);
  if (result.asked == 0) result.problem = "it says nothing of its points";
}

}  // namespace ringshift::plan::vectors
