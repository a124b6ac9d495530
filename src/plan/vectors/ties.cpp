// ties_rounding.json: who wins a point that two servers share, and where rounding takes points away.
#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "placement/peers/builders.h"
#include "placement/peers/ketama.h"
#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

using placement::peers::RingPeer;

std::vector<Server> named_servers(const Node& list, bool ports) {
  std::vector<Server> servers;
  for (const Node& item : list.items) {
    Server server;
    server.host = ports ? "127.0.0.1" : item.text;
    server.port = ports ? item.text : "11211";  // Which leaves it out of every label.
    server.index = static_cast<placement::MemberIndex>(servers.size());
    servers.push_back(std::move(server));
  }
  return servers;
}

// The point must be there, and all tie keys go to the one server recorded.
void check_tie(const Node& node, const Node* keys, Case& result) {
  const std::string_view algorithm = algorithm_of(text(node, "peer"));
  const Node* list = nullptr;
  for (const char* name : {"servers_in_yaml_order", "servers_in_conf_order", "servers"})
    if (list == nullptr) list = node.find(name);
  const Node* winner = node.find(has(node, "winner_port") ? "winner_port" : "winner_name");
  if (algorithm.empty() || list == nullptr || winner == nullptr || winner->items.size() != 1) {
    result.problem = algorithm.empty() ? fmt::format("peer '{:.60}' is not known", text(node, "peer"))
                                       : "a tie has a list of servers and one winner";
    return;
  }
  Options options;
  if (algorithm == "libmemcached") options["distribution"] = "ketama_weighted";
  if (algorithm == "twemproxy") options["hash"] = has(node, "hash") ? text(node, "hash") : "md5";
  if (algorithm == "nginx") options["consistent"] = "true";
  const auto servers = named_servers(*list, has(node, "winner_port"));
  const auto peer = build(algorithm, options, servers);
  const auto* ring = peer ? dynamic_cast<const RingPeer*>(peer->get()) : nullptr;
  if (ring == nullptr) {
    result.problem = peer ? "its peer has no ring" : peer.error().message;
    return;
  }
  Comparison comparison(result);
  const auto name_of = [&](placement::MemberIndex index) {
    return index < list->items.size() ? list->items[index].text : std::string("nobody");
  };
  if (const auto point = whole(node, "point"))
    comparison.expect("the point's owner", winner->items[0].text, name_of(ring->owner_of(*point)));
  if (keys != nullptr) {
    for (const Node& key : keys->items)
      comparison.expect(key.text, winner->items[0].text, name_of(ring->owner_of(ring->hash(key.text))));
  }
  if (const Node* index = node.find("winner_index"); index != nullptr && index->items.size() == 1) {
    const auto at = base::parse_u64(index->items[0].text).value_or(~std::uint64_t{0});
    comparison.expect("winner_index", winner->items[0].text,
                      name_of(static_cast<placement::MemberIndex>(std::min<std::uint64_t>(at, ~0U))));
  }
}

void check_tie_list(const Node& root, std::string_view field, std::string_view keys, File& out) {
  const Node* list = root.find(field);
  if (list == nullptr) return;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    Case& result = out.cases.emplace_back();
    result.name = fmt::format("{} {} {}", field, i, text(list->items[i], "peer"));
    check_tie(list->items[i], root.find(keys), result);
  }
}

std::uint64_t points_of_equals(const std::string& who, std::uint64_t count) {
  const std::vector<Server> servers(count);
  if (who.find("hashring") != std::string::npos)
    return placement::peers::hashring_digests({}, servers)[0] * 4;
  if (who.find("libketama") != std::string::npos) return placement::peers::libketama_points(servers)[0];
  return std::uint64_t{placement::peers::ketama_digests(servers)[0]} * placement::peers::kPointsOfDigest;
}

// For each N of 1..1000 whether its equal servers have 156 points; the list must be complete.
void check_rounding(const Node& lists, File& out) {
  constexpr std::uint64_t kMost = 1000;
  for (std::size_t i = 0; i < lists.items.size(); ++i) {
    Case& result = out.cases.emplace_back();
    result.name = fmt::format("156 points: {}", lists.names[i]);
    Comparison comparison(result);
    std::vector<std::string> recorded;
    for (const Node& item : lists.items[i].items) recorded.push_back(item.text);
    for (std::uint64_t n = 1; n <= kMost; ++n) {
      const bool listed = std::ranges::find(recorded, std::to_string(n)) != recorded.end();
      comparison.expect(fmt::format("N = {}", n), std::uint64_t{listed ? 156U : 160U},
                        points_of_equals(lower(lists.names[i]), n));
    }
  }
}

// "ketama/md5/25 equal": what the case's fields leave out is in its id.
Node completed(const Node& node) {
  Node out = node;
  std::string id = text(node, "id");
  for (const char* name : {"distribution", "hash"}) {
    const auto slash = id.find('/');
    if (has(node, name) || slash == std::string::npos) continue;
    Node value;
    value.kind = Node::Kind::quoted;
    value.text = id.substr(0, slash);
    id.erase(0, slash + 1);
    out.names.emplace_back(name);
    out.items.push_back(std::move(value));
  }
  return out;
}

}  // namespace

void check_ties(const Node& root, const Sibling& sibling, File& out) {
  check_tie_list(root, "tie", "tie_keys", out);
  check_tie_list(root, "tie_nginx", "tie_nginx_keys", out);
  if (const Node* big = root.find("big")) {
    Node list = *big;
    for (Node& node : list.items) node = completed(node);
    check_case_list(root, list, "/big", text(root, "peer"), sibling, out);
  }
  if (const Node* lists = root.find("equal_weight_N_where_points_are_156_not_160"))
    check_rounding(*lists, out);
}

}  // namespace ringshift::plan::vectors
