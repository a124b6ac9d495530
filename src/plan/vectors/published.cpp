// Published tables: Envoy's maglev tables and ring_hash rings, and the way to Cilium's (cilium.cpp).
#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/encoding.h"
#include "placement/peers/builders.h"
#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

using placement::peers::TablePeer;
using placement::peers::WideRingPeer;

std::uint64_t number_of(const Node& node) { return base::parse_u64(node.text).value_or(~std::uint64_t{0}); }

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

void check_maglev(const Place& place, Case& result) {
  const Node& node = place.node;
  const auto hosts = envoy_hosts(node);
  const Node& table = *node.find("table");
  if (!hosts) {
    result.problem = hosts.error().message;
    return;
  }
  const std::string size = has(node, "M") ? text(node, "M") : std::to_string(table.items.size());
  const auto peer = build("envoy-maglev", {{"table_size", size}}, *hosts);
  const auto* ours = peer ? dynamic_cast<const TablePeer*>(peer->get()) : nullptr;
  if (ours == nullptr || ours->table().size() != table.items.size()) {
    result.problem = peer ? fmt::format("the table has {} entries, and M is {}", table.items.size(), size)
                          : peer.error().message;
    return;
  }
  Comparison comparison(result);
  for (std::size_t i = 0; i < table.items.size(); ++i) {
    comparison.expect_at(place.at + "/table" + step(i), fmt::format("entry {}", i), number_of(table.items[i]),
                         std::uint64_t{ours->table()[i]});
  }
}

void check_ring_hash(const Place& place, std::string_view hash, Case& result) {
  const Node& node = place.node;
  const auto hosts = envoy_hosts(node);
  const Node& ring = *node.find("ring");
  if (!hosts) {
    result.problem = hosts.error().message;
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
  for (std::size_t i = 0; i < std::max(ring.items.size(), ours->points().size()); ++i) {
    const Node* row = i < ring.items.size() && ring.items[i].items.size() == 2 ? &ring.items[i] : nullptr;
    const std::string theirs = row == nullptr ? "none" : row->items[0].text + " of " + row->items[1].text;
    std::string mine = "none";
    if (i < ours->points().size()) {
      const auto& point = ours->points()[i];
      mine = fmt::format("{} of {}", point.hash, point.member);
      answer += fmt::format("{}[\"{}\",{}]", i == 0 ? "" : ",", point.hash, point.member);
    }
    comparison.expect(fmt::format("point {}", i), theirs, mine);
  }
  result.answers.push_back({place.at + "/ring", '[' + answer + ']'});
}

bool names_cilium(std::string_view text) {
  return base::ascii_lower(text).find("cilium") != std::string::npos;
}

}  // namespace

bool is_table(const Node& node) {
  if (node.kind != Node::Kind::map) return false;
  const bool backends = has(node, "hosts") || has(node, "backends") || has(node, "labels");
  return backends && (has(node, "table") || has(node, "ring") || has(node, "M") || has(node, "counts") ||
                      has(node, "offsets") || has(node, "lookup_table") || has(node, "expected"));
}

void check_table(const Context& context, const Place& block, File& out) {
  const Node& node = block.node;
  Case& result = out.cases.emplace_back();
  const std::string algorithm = base::ascii_lower(text(node, "algorithm"));
  result.name = text(node, "id");
  if (result.name.empty()) result.name = block.at.empty() ? "table" : block.at.substr(1);
  if (!algorithm.empty()) result.name += " " + algorithm;
  const bool cilium = names_cilium(context.place) || names_cilium(text(context.root, "peer")) ||
                      names_cilium(text(node, "peer")) || names_cilium(block.at) || names_cilium(algorithm) ||
                      has(node, "seed");
  if (cilium) {
    check_cilium(context, block, result);
  } else if (has(node, "table")) {
    check_maglev(block, result);
  } else if (has(node, "ring")) {
    check_ring_hash(block, base::ascii_lower(has(node, "hash") ? text(node, "hash") : algorithm), result);
  } else {
    result.problem = "it has neither a 'table' nor a 'ring'";
  }
}

}  // namespace ringshift::plan::vectors
