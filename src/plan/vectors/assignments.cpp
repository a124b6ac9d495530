// Recordings with an `assign`: one base62 character a key, `-` where the peer was not asked.
#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "hashing/hash_tag.h"
#include "hashing/peers/crc32.h"
#include "placement/peers/builders.h"
#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

using placement::MemberIndex;
using placement::peers::Peer;

std::unexpected<Error> unknown(std::string_view what, std::string_view value) {
  return fail(ErrorKind::invalid, fmt::format("{} '{:.80}' is not known", what, value));
}

// A case ready to be computed.
struct Question {
  std::vector<Server> servers;
  Options options;
  std::string hash_tag;
  std::string prefix;  // Before every key (Cache::Memcached::Fast's namespace).
};

// "md5 (default)" and "default(one_at_a_time)" without what is in brackets.
std::string without_brackets(std::string_view name) {
  name = name.substr(0, name.find('('));
  while (name.ends_with(' ')) name.remove_suffix(1);
  return std::string(name);
}

Status libmemcached(const Node& node, Question& question) {
  std::string distribution = lower(text(node, "distribution"));
  if (distribution == "ketama_spy" || distribution == "consistent_ketama_spy") distribution = "spy";
  question.options["distribution"] = distribution;
  std::string hash = without_brackets(lower(text(node, "hash")));
  if (hash == "one_at_a_time" || hash == "jenkins_one_at_a_time") hash = "default";
  if (hash == "crc32") hash = "crc";
  if (!hash.empty()) question.options["hash"] = hash;
  if (const std::string weighted = text(node, "is_weighted_after"); weighted == "1" || weighted == "true") {
    question.options["weighted"] = "true";
  }
  for (Server& server : question.servers) server.weight = std::max(server.weight, 1.0);  // 0 counts as 1.
  return {};
}

Status twemproxy(const Node& node, Question& question) {
  for (const char* name : {"distribution", "hash"}) {
    if (has(node, name)) question.options[name] = text(node, name);
  }
  question.hash_tag = text(node, "hash_tag");
  if (question.hash_tag.size() == 2 || question.hash_tag.empty()) return {};
  return unknown("hash_tag", question.hash_tag);
}

Status nginx(const Node& node, Question& question) {
  std::string directive = text(node, "directive");
  while (directive.ends_with(';') || directive.ends_with(' ')) directive.pop_back();
  const auto parts = words(directive);
  if (parts.size() < 2 || parts.size() > 3 || parts[0] != "hash") return unknown("directive", directive);
  if (parts.size() == 3 && parts[2] != "consistent") return unknown("directive", directive);
  question.options["consistent"] = parts.size() == 3 ? "true" : "false";
  return {};
}

Status haproxy(const Node& node, Question& question) {
  const std::string type = text(node, "hash_type");
  const auto parts = words(type);
  if (parts.empty() || parts.size() > 3) return unknown("hash_type", type);
  question.options["method"] = parts[0];
  question.options["avalanche"] = "false";
  for (const std::string_view part : std::span(parts).subspan(1)) {
    if (part == "avalanche") {
      question.options["avalanche"] = "true";
    } else {
      question.options["hash"] = part;
    }
  }
  return {};
}

Status cache_memcached_fast(const Node& node, Question& question) {
  const Node* options = node.find("options");
  if (options == nullptr) return {};
  for (const std::string& name : options->names) {
    const std::string value = text(*options, name);
    if (name == "ketama_points") {
      question.options[name] = value;
    } else if (name == "namespace") {
      question.prefix = value;
    } else {
      return unknown("option", name);
    }
  }
  return {};
}

Status hashring(const Node& node, Question& question) {
  if (const std::string hash = without_brackets(text(node, "algorithm")); !hash.empty())
    question.options["hash"] = hash;
  const Node* options = node.find("options");
  if (options == nullptr) return {};
  for (const std::string& name : options->names) {
    const std::string value = text(*options, name);
    if (name == "vnode count" || name == "vnodes") {
      question.options["vnodes"] = value;
    } else if (name == "default port") {
      question.options["default_port"] = value;
    } else if (name == "replicas" || name == "compatibility") {
      question.options[name] = value;
    } else if (name != "max cache size") {  // Which changes no answer.
      return unknown("option", name);
    }
  }
  return {};
}

// `socket_address_string` is the first server's, as Java showed it: "host/ip:port", or "/ip:port" without a
// name.
Status spymemcached(const Node& node, Question& question) {
  for (const char* name : {"locator", "hash", "format"}) {
    if (has(node, name)) question.options[name] = text(node, name);
  }
  question.options["weighted"] = has(node, "weights") ? "true" : "false";
  const std::string shown = text(node, "socket_address_string");
  const auto slash = shown.find('/');
  if (slash == std::string::npos || slash == 0 || question.servers.empty()) return {};
  const std::string host = shown.substr(0, slash);
  const Server resolved = placement::peers::server_of(shown.substr(slash + 1));
  const std::string first = question.servers.front().host;
  for (Server& server : question.servers) {
    if (server.host != first) continue;
    if (text(node, "format") == "LIBMEMCACHED") {
      server.host = host;
    } else {
      server.label = fmt::format("{}/{}:{}", host, resolved.host, server.port);
    }
  }
  return {};
}

Status names_of_dalli(const Node& node, Question& question) {
  const Node* names = node.find("names");
  if (names == nullptr) return {};
  if (names->items.size() != question.servers.size()) return unknown("names", "another number than servers");
  for (std::size_t i = 0; i < names->items.size(); ++i) question.servers[i].label = names->items[i].text;
  return {};
}

// The characters of `assign` count in the order of `node_order`, where there is one.
Status reorder(const Node& node, Question& question) {
  const Node* order = node.find("node_order");
  if (order == nullptr) return {};
  for (Server& server : question.servers) {
    const auto found = std::ranges::find(order->items, server.host_port(), &Node::text);
    if (found == order->items.end()) return unknown("a server that node_order lacks,", server.host_port());
    server.index = static_cast<MemberIndex>(found - order->items.begin());
  }
  return {};
}

Result<Question> question_of(const Node& node, std::string_view algorithm) {
  Question question;
  const ServerForm form = form_of(algorithm);
  auto servers = read_servers(node, has(node, "nodes") ? "nodes" : "servers", form);
  if (!servers) return std::unexpected(servers.error());
  question.servers = std::move(*servers);
  Status read;
  if (algorithm == "libmemcached") read = libmemcached(node, question);
  if (algorithm == "twemproxy") read = twemproxy(node, question);
  if (algorithm == "nginx") read = nginx(node, question);
  if (algorithm == "haproxy") read = haproxy(node, question);
  if (algorithm == "cache-memcached-fast") read = cache_memcached_fast(node, question);
  if (algorithm == "hashring") read = hashring(node, question);
  if (algorithm == "npm memcached") {
    read = hashring(node, question);
    question.options.emplace("default_port", "11211");
  }
  if (algorithm == "spymemcached") read = spymemcached(node, question);
  if (algorithm == "dalli") read = names_of_dalli(node, question);
  if (read) read = reorder(node, question);
  if (!read) return std::unexpected(read.error());
  return question;
}

// Points a server, where the recording tells them: a list, a number for each, or the ring's whole number.
void compare_points(const Node& node, const Peer& peer, const Question& question, std::string_view algorithm,
                    Comparison& comparison) {
  const auto* ring = dynamic_cast<const placement::peers::RingPeer*>(&peer);
  if (ring == nullptr) return;
  std::vector<std::uint64_t> counts(question.servers.size(), 0);
  const auto dalli =
      placement::peers::dalli_points(algorithm == "dalli" ? question.servers : std::vector<Server>{});
  const std::span<const placement::peers::Point32> points =
      algorithm == "dalli" ? dalli : ring->ring().points();
  for (const auto& point : points) ++counts[point.member];
  if (const Node* each = node.find("points"); each != nullptr && each->kind == Node::Kind::list) {
    for (std::size_t i = 0; i < each->items.size() && i < counts.size(); ++i) {
      comparison.expect(fmt::format("points of server {}", i),
                        base::parse_u64(each->items[i].text).value_or(0), counts[i]);
    }
  } else if (const auto total = whole(node, "points")) {
    comparison.expect("points", *total, std::uint64_t{points.size()});
  }
  if (const auto each_has = whole(node, "points_per_server")) {
    for (std::size_t i = 0; i < counts.size(); ++i)
      comparison.expect(fmt::format("points of server {}", i), *each_has, counts[i]);
  }
}

void compute(const Node& node, std::string_view algorithm, const std::vector<std::string>& keys, Case& out) {
  const Result<Question> question = question_of(node, algorithm);
  if (!question) {
    out.problem = question.error().message;
    return;
  }
  const auto peer =
      build(algorithm == "npm memcached" ? "hashring" : algorithm, question->options, question->servers);
  if (!peer) {
    out.problem = peer.error().message;
    return;
  }
  const std::string recorded = text(node, "assign");
  if (recorded.size() != keys.size()) {
    out.problem = fmt::format("{} answers for {} keys", recorded.size(), keys.size());
    return;
  }
  const hashing::HashTag tag(question->hash_tag);
  Comparison comparison(out);
  std::string ours = recorded;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (recorded[i] == '-') continue;
    const std::string key = question->prefix + keys[i];
    const MemberIndex owner = (*peer)->owner_of((*peer)->hash(tag.apply(key)));
    ours[i] = owner < kBase62.size() ? kBase62[owner] : '?';
    comparison.expect(fmt::format("key {} ({})", i, base::to_hex(keys[i])), std::string(1, recorded[i]),
                      std::string(1, ours[i]));
  }
  out.answer = '"' + ours + '"';
  compare_points(node, **peer, *question, algorithm, comparison);
}

// The recorded values of each hash function; one that the peer's build lacks is 1 for every key.
void check_hash_values(const Node& values, const std::vector<std::string>& keys, File& out) {
  for (std::size_t i = 0; i < values.items.size(); ++i) {
    const Node& one = values.items[i];
    Case& result = out.cases.emplace_back();
    result.name = "hash " + values.names[i];
    const bool supported = text(one, "supported") != "false";
    const auto* hash = hashing::peers::find_hash(hashing::peers::libmemcached_hashes(),
                                                 without_brackets(lower(values.names[i])));
    const Node* list = one.find("values");
    if (hash == nullptr || list == nullptr || list->items.size() != keys.size()) {
      result.problem = hash == nullptr ? "this hash is not known" : "not one value for each key";
      continue;
    }
    Comparison comparison(result);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      comparison.expect(fmt::format("key {}", k), base::parse_u64(list->items[k].text).value_or(~0ULL),
                        std::uint64_t{supported ? hash->hash(keys[k]) : 1});
    }
  }
}

Result<std::vector<std::string>> keys_of(const Node& root, const Sibling& sibling) {
  if (const Node* own = root.find("keys"); own != nullptr && own->kind == Node::Kind::list)
    return read_keys(*own);
  std::string name = text(root, "keys_file");
  if (name.empty()) name = "keys.json";
  const Result<std::string> content = sibling(name);
  if (!content) return std::unexpected(content.error());
  const Result<Node> document = topology::parse_json_document(*content, name);
  if (!document) return std::unexpected(document.error());
  const Node* keys = document->find("keys");
  if (keys == nullptr || keys->kind != Node::Kind::list) {
    return fail(ErrorKind::invalid, fmt::format("{}: no list 'keys'", name));
  }
  return read_keys(*keys);
}

}  // namespace

std::string_view algorithm_of(std::string_view peer) {
  const std::string name = lower(peer);
  struct Known {
    std::string_view word, algorithm;
  };
  // The first that occurs in the name: "libmemcached" before "memcached", "spymemcached" before both.
  static constexpr Known kKnown[] = {{"spymemcached", "spymemcached"},
                                     {"libmemcached", "libmemcached"},
                                     {"twemproxy", "twemproxy"},
                                     {"nutcracker", "twemproxy"},
                                     {"libketama", "libketama"},
                                     {"nginx", "nginx"},
                                     {"haproxy", "haproxy"},
                                     {"dalli", "dalli"},
                                     {"cache::memcached::fast", "cache-memcached-fast"},
                                     {"cache_memcached_fast", "cache-memcached-fast"},
                                     {"npm memcached", "npm memcached"},
                                     {"hashring", "hashring"}};
  for (const Known& known : kKnown) {
    if (name.find(known.word) != std::string::npos) return known.algorithm;
  }
  return {};
}

ServerForm form_of(std::string_view algorithm) {
  if (algorithm == "twemproxy") return {true, ""};
  if (algorithm == "dalli") return {true, "11211"};
  if (algorithm == "libmemcached") return {false, "11211"};
  return {};
}

void check_case_list(const Node& root, const Node& list, const std::string& pointer, std::string_view peer,
                     const Sibling& sibling, File& out) {
  const auto keys = keys_of(root, sibling);
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const Node& node = list.items[i];
    Case& result = out.cases.emplace_back();
    result.name = text(node, "id");
    if (result.name.empty()) result.name = fmt::format("case {}", i);
    result.pointer = fmt::format("{}/{}/assign", pointer, i);
    const std::string own_peer = has(node, "peer") ? text(node, "peer") : std::string(peer);
    const std::string_view algorithm = algorithm_of(own_peer);
    if (algorithm.empty()) {
      result.problem = fmt::format("peer '{:.80}' is not known", own_peer);
    } else if (!keys) {
      result.problem = keys.error().message;
    } else {
      compute(node, algorithm, *keys, result);
    }
  }
}

void check_assignments(const Node& root, const Sibling& sibling, File& out) {
  if (const Node* cases = root.find("cases"))
    check_case_list(root, *cases, "/cases", text(root, "peer"), sibling, out);
  if (const Node* other = root.find("memcached_npm")) {
    if (const Node* cases = other->find("cases")) {
      check_case_list(root, *cases, "/memcached_npm/cases", "npm memcached", sibling, out);
    }
  }
  if (const Node* values = root.find("hash_values")) {
    if (const auto keys = keys_of(root, sibling)) check_hash_values(*values, *keys, out);
  }
}

}  // namespace ringshift::plan::vectors
