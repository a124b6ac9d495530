#include <array>

#include "placement/peers/catalog.h"
#include "topology/discovery.h"
#include "topology/parse.h"
#include "topology/validate.h"

namespace ringshift::topology {
namespace {

Member read_member(Reader& reader, const Node& node, const std::string& path) {
  Member member;
  if (!reader.map(node, path, {"id", "address", "weight", "zone", "host", "label"})) return member;
  reader.text(node, path, "id", member.id, true);
  reader.text(node, path, "address", member.address, true);
  reader.number(node, path, "weight", member.weight);
  reader.text(node, path, "zone", member.zone);
  reader.text(node, path, "host", member.host);
  reader.text(node, path, "label", member.label);
  return member;
}

std::vector<SlotRange> read_ranges(Reader& reader, const Node& node, const std::string& path) {
  std::vector<SlotRange> slots;
  if (!reader.list(node, path)) return slots;
  for (std::size_t i = 0; i < node.items.size() && !reader.failed(); ++i) {
    const Node& item = node.items[i];
    const std::string here = at(path, i);
    if (!reader.map(item, here, {"first", "last", "member"})) break;
    SlotRange range;
    for (const std::string_view name : {"first", "last"}) {
      if (item.find(name) == nullptr) {
        reader.problem(item.line, here, "a range has the fields first, last and member");
      }
    }
    reader.whole(item, here, "first", range.first);
    reader.whole(item, here, "last", range.last);
    reader.text(item, here, "member", range.member, true);
    slots.push_back(std::move(range));
  }
  return slots;
}

void read_ids(Reader& reader, const Node& map, const std::string& path, std::string_view name,
              std::vector<std::string>& out) {
  const Node* list = map.find(name);
  if (list == nullptr || !reader.list(*list, join(path, name))) return;
  for (std::size_t i = 0; i < list->items.size() && !reader.failed(); ++i)
    out.push_back(reader.scalar(list->items[i], at(join(path, name), i)));
}

// {cache-1: [0, 4611686018427387904], cache-2: [...]}
void read_tokens(Reader& reader, const Node& node, const std::string& path, Placement& placement) {
  if (node.kind != Node::Kind::map) {
    reader.problem(node.line, path, "a map of member to a list of tokens belongs here");
    return;
  }
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    const Node& list = node.items[i];
    const std::string here = join(path, node.names[i]);
    if (!reader.list(list, here)) return;
    std::vector<std::uint64_t>& tokens = placement.tokens[node.names[i]];
    for (std::size_t j = 0; j < list.items.size() && !reader.failed(); ++j) {
      if (const auto token = reader.scalar_whole(list.items[j], at(here, j), ~std::uint64_t{0}))
        tokens.push_back(*token);
    }
  }
}

void read_own_options(Reader& reader, const Node& node, const std::string& path, Placement& placement) {
  reader.whole(node, path, "table_size", placement.table_size);
  reader.whole(node, path, "probes", placement.probes);
  reader.number(node, path, "epsilon", placement.epsilon);
  reader.whole(node, path, "partitions", placement.partitions);
  if (const Node* table = node.find("table"))
    placement.table = read_ranges(reader, *table, join(path, "table"));
  read_ids(reader, node, path, "buckets", placement.buckets);
  read_ids(reader, node, path, "removed", placement.removed);
  if (const Node* tokens = node.find("tokens")) read_tokens(reader, *tokens, join(path, "tokens"), placement);
}

Limits read_limits(Reader& reader, const Node& node, const std::string& path) {
  Limits limits;
  if (!reader.map(node, path,
                  {"move_keys_per_second", "move_bytes_per_second", "move_batch_keys",
                   "move_batches_in_flight", "move_batches_in_all", "move_memory_bytes", "move_latency_ms",
                   "origin_misses_per_second", "big_key_bytes"})) {
    return limits;
  }
  reader.whole(node, path, "move_keys_per_second", ~std::uint64_t{0} >> 1, limits.move_keys_per_second);
  reader.bytes(node, path, "move_bytes_per_second", limits.move_bytes_per_second);
  reader.whole(node, path, "move_batch_keys", limits.move_batch_keys);
  reader.whole(node, path, "move_batches_in_flight", limits.move_batches_in_flight);
  reader.whole(node, path, "move_batches_in_all", limits.move_batches_in_all);
  reader.bytes(node, path, "move_memory_bytes", limits.move_memory_bytes);
  reader.whole(node, path, "move_latency_ms", limits.move_latency_ms);
  reader.whole(node, path, "origin_misses_per_second", ~std::uint64_t{0} >> 1,
               limits.origin_misses_per_second);
  reader.bytes(node, path, "big_key_bytes", limits.big_key_bytes);
  return limits;
}

// Another program's: its options by its own names, of which validation knows what they may be.
Placement read_peer_placement(Reader& reader, const Node& node, const std::string& path) {
  Placement placement;
  placement.algorithm = node.find("algorithm")->text;
  const auto* peer = placement::peers::find_peer(placement.algorithm);
  const auto* hash = peer->find("hash");
  placement.hash = hash == nullptr ? "" : std::string(hash->fallback);
  for (std::size_t i = 0; i < node.items.size() && !reader.failed(); ++i) {
    const std::string& name = node.names[i];
    const std::string value = reader.scalar(node.items[i], join(path, name));
    if (name == "algorithm") continue;
    if (name == "hash" && hash != nullptr) {
      placement.hash = value;
    } else if (name == "hash_tag" && peer->hash_tag) {
      placement.hash_tag = value;
    } else {
      placement.options[name] = value;
    }
  }
  return placement;
}

// Our own algorithms first, as kOwnAlgorithms has them, then the peers'.
std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names(kOwnAlgorithms.begin(), kOwnAlgorithms.end());
  for (const auto& peer : placement::peers::catalog()) names.push_back(peer.name);
  return names;
}

}  // namespace

Placement read_placement(Reader& reader, const Node& node, const std::string& path) {
  Placement placement;
  if (const Node* algorithm = node.find("algorithm");
      algorithm != nullptr && placement::peers::find_peer(algorithm->text) != nullptr) {
    return read_peer_placement(reader, node, path);
  }
  if (!reader.map(node, path,
                  {"algorithm", "hash", "points", "hash_tag", "slots", "table_size", "probes", "epsilon",
                   "partitions", "table", "buckets", "removed", "tokens"})) {
    return placement;
  }
  if (const auto algorithm = reader.word(node, path, "algorithm", algorithm_names())) {
    placement.algorithm = kOwnAlgorithms[*algorithm];
  }
  if (placement.algorithm == "slots") {  // As Redis Cluster does it, unless the spec says otherwise.
    placement.hash = "crc16";
    placement.hash_tag = "{}";
  }
  if (placement.algorithm == "multi-probe") placement.points = 1;
  reader.text(node, path, "hash", placement.hash);
  reader.whole(node, path, "points", placement.points);
  reader.text(node, path, "hash_tag", placement.hash_tag);
  if (const Node* slots = node.find("slots"))
    placement.slots = read_ranges(reader, *slots, join(path, "slots"));
  read_own_options(reader, node, path, placement);
  return placement;
}

std::vector<Member> read_members(Reader& reader, const Node& node, const std::string& path) {
  std::vector<Member> members;
  if (!reader.list(node, path)) return members;
  if (node.items.size() > kMaxMembers) {
    reader.problem(node.line, path,
                   std::to_string(node.items.size()) + " members are more than the " +
                       std::to_string(kMaxMembers) + " that one cluster may have");
    return members;
  }
  members.reserve(node.items.size());
  for (std::size_t i = 0; i < node.items.size() && !reader.failed(); ++i) {
    members.push_back(read_member(reader, node.items[i], at(path, i)));
  }
  return members;
}

Spec read_spec(Reader& reader, const Node& node, const std::string& path) {
  Spec spec;
  if (!reader.map(node, path,
                  {"cluster", "protocol", "placement", "consistency", "members", "retired", "limits",
                   "databases", "discovery"})) {
    return spec;
  }
  reader.text(node, path, "cluster", spec.cluster, true);
  if (reader.word(node, path, "protocol", {"redis", "memcached"}) == 1) {
    spec.protocol = Protocol::memcached;
    spec.consistency = Consistency::cache;  // The default of each protocol is the most that it can keep.
  }
  if (const Node* placement = node.find("placement")) {
    spec.placement = read_placement(reader, *placement, join(path, "placement"));
  }
  if (const auto consistency = reader.word(node, path, "consistency", {"strict", "cache", "none"})) {
    spec.consistency = static_cast<Consistency>(*consistency);
  }
  if (const Node* members = node.find("members")) {
    spec.members = read_members(reader, *members, join(path, "members"));
  } else {
    reader.problem(node.line, path,
                   "the field 'members' is missing: list at least one member with id and address");
  }
  if (const Node* retired = node.find("retired");
      retired != nullptr && reader.list(*retired, join(path, "retired"))) {
    for (std::size_t i = 0; i < retired->items.size() && !reader.failed(); ++i) {
      spec.retired.push_back(reader.scalar(retired->items[i], at(join(path, "retired"), i)));
    }
  }
  reader.whole(node, path, "databases", spec.databases);
  if (const Node* limits = node.find("limits"))
    spec.limits = read_limits(reader, *limits, join(path, "limits"));
  // Not for routers, so not a part of Spec: it is judged here and taken by discovery_of_spec().
  if (const Node* node_of = node.find("discovery"); node_of != nullptr && node_of->kind != Node::Kind::null) {
    const std::string here = join(path, "discovery");
    const DiscoverySpec discovery = read_discovery(reader, *node_of, here);
    if (reader.failed()) return spec;
    if (const auto problem = check_discovery(discovery, here))
      reader.problem(node_of->line, problem->path, problem->message);
    if (discovery.eject.value_or(false) && spec.consistency == Consistency::strict && !reader.failed()) {
      reader.problem(
          node_of->line, join(here, "eject"),
          "consistency strict ejects nobody: who takes a member's keys for a while would serve what "
          "is old, and so would the member afterwards; leave it out, or say consistency: cache");
    }
  }
  return spec;
}

Result<Spec> parse_spec(std::string_view text, std::string_view place) {
  const Result<Node> root = parse_document(text, place);
  if (!root) return std::unexpected(root.error());
  if (root->kind == Node::Kind::null) {
    return fail(ErrorKind::invalid,
                describe(place, 0, "", "the text is empty: a spec has at least cluster and members"));
  }
  Reader reader(place);
  Spec spec = read_spec(reader, *root, "");
  if (reader.failed()) return std::unexpected(reader.error());
  if (const auto problem = check_spec(spec)) {
    return fail(ErrorKind::invalid,
                describe(place, line_of(*root, problem->path), problem->path, problem->message));
  }
  return spec;
}

}  // namespace ringshift::topology
