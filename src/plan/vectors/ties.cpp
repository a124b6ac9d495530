// ties_rounding.json: who wins a point that two servers share, and where rounding takes points away.
#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
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
void check_tie(const Place& place, const Node* keys, Case& result) {
  const Node& node = place.node;
  const std::string_view algorithm = algorithm_of(text(node, "peer"));
  const Node* list = nullptr;
  for (const char* name : {"servers_in_yaml_order", "servers_in_conf_order", "servers"})
    if (list == nullptr) list = node.find(name);
  const auto winner_place = place.child(has(node, "winner_port") ? "winner_port" : "winner_name");
  const Node* winner = winner_place ? &winner_place->node : nullptr;
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
  // Our own answer: the point's owner, or that of the keys which meet it.
  std::optional<placement::MemberIndex> ours;
  if (const auto point = whole(node, "point")) {
    ours = ring->owner_of(*point);
    comparison.expect("the point's owner", winner->items[0].text, name_of(*ours));
  }
  if (keys != nullptr) {
    for (const Node& key : keys->items) {
      const auto owner = ring->owner_of(ring->hash(key.text));
      if (!ours) ours = owner;
      comparison.expect(key.text, winner->items[0].text, name_of(owner));
    }
  }
  if (!ours) return;
  const bool plain = winner->items[0].kind == Node::Kind::plain;
  const std::string name = name_of(*ours);
  result.answers.push_back({winner_place->at + "/0", plain ? name : '"' + name + '"'});
  if (const auto index = place.child("winner_index"); index && index->node.items.size() == 1) {
    // Some list it as a text.
    const Node& recorded = index->node.items[0];
    comparison.expect("winner_index", base::parse_u64(recorded.text).value_or(~0ULL), std::uint64_t{*ours});
    const std::string mine = std::to_string(*ours);
    result.answers.push_back(
        {index->at + "/0", recorded.kind == Node::Kind::plain ? mine : '"' + mine + '"'});
  }
}

void check_tie_list(const Context& context, const Place& list, std::string_view keys, File& out) {
  for (std::size_t i = 0; i < list.node.items.size(); ++i) {
    const Place place = list.child(i);
    Case& result = out.cases.emplace_back();
    result.name = fmt::format("{} {}", place.at.substr(1), text(place.node, "peer"));
    check_tie(place, context.root.find(keys), result);
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
void check_rounding(const Place& lists, File& out) {
  constexpr std::uint64_t kMost = 1000;
  for (std::size_t i = 0; i < lists.node.items.size(); ++i) {
    const Place list = lists.child(i);
    Case& result = out.cases.emplace_back();
    result.name = fmt::format("156 points: {}", lists.node.names[i]);
    Comparison comparison(result);
    std::vector<std::string> recorded;
    for (const Node& item : list.node.items) recorded.push_back(item.text);
    std::string ours;
    for (std::uint64_t n = 1; n <= kMost; ++n) {
      const bool listed = std::ranges::find(recorded, std::to_string(n)) != recorded.end();
      const std::uint64_t points = points_of_equals(base::ascii_lower(lists.node.names[i]), n);
      comparison.expect(fmt::format("N = {}", n), std::uint64_t{listed ? 156U : 160U}, points);
      if (points == 156) ours += fmt::format("{}{}", ours.empty() ? "" : ",", n);
    }
    result.answers.push_back({list.at, '[' + ours + ']'});
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

bool check_ties(const Context& context, const std::string& field, File& out) {
  const Place place = *Place{context.root, ""}.child(field);
  if (field == "tie") {
    check_tie_list(context, place, "tie_keys", out);
  } else if (field == "tie_nginx") {
    check_tie_list(context, place, "tie_nginx_keys", out);
  } else if (field == "big") {
    Node list = place.node;
    for (Node& node : list.items) node = completed(node);
    check_cases(context, {list, place.at}, text(context.root, "peer"), out);
  } else if (field == "equal_weight_N_where_points_are_156_not_160" && place.node.kind == Node::Kind::map) {
    check_rounding(place, out);
  } else {
    return false;
  }
  return true;
}

}  // namespace ringshift::plan::vectors
