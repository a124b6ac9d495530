// Recordings with an `assign`: one base62 character a key, `-` where the peer was not asked; or, where the
// servers outnumber those characters, a list of indices or names, null where the peer was not asked.
#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/encoding.h"
#include "hashing/hash_tag.h"
#include "placement/peers/builders.h"
#include "plan/vectors/question.h"

namespace ringshift::plan::vectors {
namespace {

using placement::MemberIndex;
using placement::peers::Peer;
using Keys = std::vector<std::string>;

std::unexpected<Error> invalid(std::string message) { return fail(ErrorKind::invalid, std::move(message)); }

// Points a server, where the recording tells them: a list, a number for each, or the ring's whole number.
void compare_points(const Place& place, const Peer& peer, const Question& question,
                    std::string_view algorithm, Comparison& comparison) {
  const Node& node = place.node;
  const auto* ring = dynamic_cast<const placement::peers::RingPeer*>(&peer);
  if (ring == nullptr) return;
  std::size_t most = 0;
  for (const Server& server : question.servers) most = std::max<std::size_t>(most, server.index + 1);
  std::vector<std::uint64_t> counts(most, 0);
  const auto dalli =
      placement::peers::dalli_points(algorithm == "dalli" ? question.servers : std::vector<Server>{});
  const std::span<const placement::peers::Point32> points =
      algorithm == "dalli" ? dalli : ring->ring().points();
  for (const auto& point : points) ++counts[point.member];
  if (const Node* each = node.find("points"); each != nullptr && each->kind == Node::Kind::list) {
    for (std::size_t i = 0; i < each->items.size() && i < counts.size(); ++i) {
      comparison.expect_at(place.at + "/points" + step(i), fmt::format("points of server {}", i),
                           base::parse_u64(each->items[i].text).value_or(0), counts[i]);
    }
  } else if (const auto total = whole(node, "points")) {
    comparison.expect_at(place.at + "/points", "points", *total, std::uint64_t{points.size()});
  }
  if (const auto each_has = whole(node, "points_per_server")) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      comparison.expect_at(place.at + "/points_per_server", fmt::format("points of server {}", i), *each_has,
                           counts[i]);
    }
  }
}

// What a case's `assign` says of each key; nullopt where the peer was not asked.
struct Answers {
  bool listed = false;
  std::vector<std::optional<std::uint64_t>> owners;
};

Result<Answers> read_answers(const Node& node, const std::vector<Server>& servers) {
  const Node* assign = node.find("assign");
  Answers out;
  if (assign == nullptr) return invalid("no 'assign': nothing is recorded");
  if (assign->kind == Node::Kind::list) {
    out.listed = true;
    for (const Node& item : assign->items) {
      if (item.kind == Node::Kind::null || item.text == "-1" || item.text == "-") {
        out.owners.emplace_back(std::nullopt);
        continue;
      }
      auto index = base::parse_u64(item.text);
      for (std::size_t i = 0; !index && i < servers.size(); ++i) {
        if (item.text == servers[i].label || item.text == servers[i].host_port()) index = servers[i].index;
      }
      if (!index) {
        return invalid(fmt::format("answer {} '{:.60}' is neither an index nor the name of a server",
                                   out.owners.size(), item.text));
      }
      out.owners.emplace_back(index);
    }
    return out;
  }
  for (const char c : assign->text) {
    const auto at = kBase62.find(c);
    if (at == std::string_view::npos && c != '-') {
      return invalid(fmt::format("answer {} is the byte 0x{:02x}, which is neither one of 0-9a-zA-Z nor '-'",
                                 out.owners.size(), static_cast<unsigned char>(c)));
    }
    out.owners.emplace_back(c == '-' ? std::nullopt : std::optional<std::uint64_t>(at));
  }
  return out;
}

// As the recording writes it; as a list when one of ours has no character.
std::string written(const std::vector<std::optional<std::uint64_t>>& owners, bool listed) {
  for (const auto owner : owners) listed = listed || (owner && *owner >= kBase62.size());
  std::string out = listed ? "[" : "\"";
  for (const auto owner : owners) {
    if (listed) {
      out += fmt::format("{}{}", out.size() == 1 ? "" : ",", owner ? std::to_string(*owner) : "null");
    } else {
      out += owner ? kBase62[*owner] : '-';
    }
  }
  return out + (listed ? "]" : "\"");
}

void compute(const Place& place, std::string_view algorithm, const Keys& keys, Case& out) {
  const Node& node = place.node;
  const auto fails = [&out](const Error& error) { out.problem = error.message; };
  const Result<Question> question = question_of(node, algorithm);
  if (!question) return fails(question.error());
  const auto peer =
      build(algorithm == "npm memcached" ? "hashring" : algorithm, question->options, question->servers);
  if (!peer) return fails(peer.error());
  const Result<Answers> recorded = read_answers(node, question->servers);
  if (!recorded) return fails(recorded.error());
  if (recorded->owners.size() != keys.size()) {
    out.problem = fmt::format("{} answers for {} keys", recorded->owners.size(), keys.size());
    return;
  }
  const hashing::HashTag tag(question->hash_tag);
  Comparison comparison(out);
  auto ours = recorded->owners;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!ours[i]) continue;
    const std::string key = question->prefix + keys[i];
    ours[i] = (*peer)->owner_of((*peer)->hash(tag.apply(key)));
    comparison.expect(fmt::format("key {} ({})", i, base::to_hex(keys[i])), *recorded->owners[i], *ours[i]);
  }
  out.answers.push_back({place.at + "/assign", written(ours, recorded->listed)});
  compare_points(place, **peer, *question, algorithm, comparison);
}

Result<Keys> keys_of_file(const Sibling& sibling, const std::string& name) {
  const Result<std::string> content = sibling(name);
  if (!content) {
    return invalid(
        fmt::format("the key set {} beside the recording cannot be read: {}", name, content.error().message));
  }
  const Result<Node> document = topology::parse_json_document(*content, name);
  if (!document) return std::unexpected(document.error());
  const Node* keys = document->find("keys");
  if (keys == nullptr || keys->kind != Node::Kind::list)
    return invalid(fmt::format("{}: no list 'keys'", name));
  return read_keys(*keys);
}

// The keys of `node`: its own, or those of the file it names; nullopt when it says nothing.
std::optional<Result<Keys>> keys_of(const Node& node, const Sibling& sibling) {
  if (const Node* own = node.find("keys"); own != nullptr && own->kind == Node::Kind::list)
    return read_keys(*own);
  if (has(node, "keys_file")) return keys_of_file(sibling, text(node, "keys_file"));
  return std::nullopt;
}

Result<Keys> keys_of_root(const Context& context) {
  if (auto keys = keys_of(context.root, context.sibling)) return *std::move(keys);
  return keys_of_file(context.sibling, "keys.json");
}

// h = 31 h + value over all values: short, and it tells their order too.
std::uint64_t rolled(const std::vector<std::uint64_t>& values) {
  std::uint32_t sum = 0;
  for (const auto value : values) sum = sum * 31 + static_cast<std::uint32_t>(value);
  return sum;
}

// One hash function's; one that the peer's build lacks is 1 for every key.
void check_values(const Place& place, const std::string& name, const Keys& keys, Case& result) {
  const bool supported = text(place.node, "supported") != "false";
  std::string known = without_brackets(base::ascii_lower(name));
  if (known == "one_at_a_time") known = "default";
  const auto* hash = hashing::peers::find_hash(hashing::peers::libmemcached_hashes(), known);
  const Node* list = place.node.kind == Node::Kind::list ? &place.node : place.node.find("values");
  const auto sum = whole(place.node, "roll31");
  if (hash == nullptr || (list == nullptr && !sum) ||
      (list != nullptr && list->items.size() != keys.size())) {
    result.problem = hash == nullptr ? fmt::format("the hash '{:.60}' is not known", name)
                                     : fmt::format("not one value for each of {} keys", keys.size());
    return;
  }
  Comparison comparison(result);
  std::vector<std::uint64_t> ours;
  for (const std::string& key : keys) ours.push_back(supported ? hash->hash(key) : 1);
  const std::string at = place.at + (list == &place.node ? "" : "/values");
  for (std::size_t k = 0; list != nullptr && k < keys.size(); ++k) {
    comparison.expect_at(at + step(k), fmt::format("key {}", k),
                         base::parse_u64(list->items[k].text).value_or(~0ULL), ours[k]);
  }
  if (sum) comparison.expect_at(place.at + "/roll31", "roll31", *sum, rolled(ours));
}

}  // namespace

void check_hash_values(const Context& context, const Place& values, File& out) {
  const auto keys = keys_of_root(context);
  for (std::size_t i = 0; i < values.node.items.size(); ++i) {
    Case& result = out.cases.emplace_back();
    const std::string name = values.node.kind == Node::Kind::map ? values.node.names[i] : std::to_string(i);
    result.name = "hash " + name;
    if (keys) {
      check_values(values.child(i), name, *keys, result);
    } else {
      result.problem = keys.error().message;
    }
  }
}

void check_cases(const Context& context, const Place& list, std::string_view peer, File& out) {
  std::optional<Result<Keys>> shared;
  for (std::size_t i = 0; i < list.node.items.size(); ++i) {
    const Place place = list.child(i);
    Case& result = out.cases.emplace_back();
    result.name = text(place.node, "id");
    if (result.name.empty()) result.name = fmt::format("case {}", i);
    const std::string own_peer = has(place.node, "peer") ? text(place.node, "peer") : std::string(peer);
    const std::string_view algorithm = algorithm_of(own_peer);
    const auto own = keys_of(place.node, context.sibling);
    if (!own && !shared) shared = keys_of_root(context);
    const Result<Keys>& keys = own ? *own : *shared;
    if (algorithm.empty()) {
      result.problem = fmt::format("peer '{:.80}' is not known", own_peer);
    } else if (!keys) {
      result.problem = keys.error().message;
    } else {
      compute(place, algorithm, *keys, result);
    }
  }
}

}  // namespace ringshift::plan::vectors
