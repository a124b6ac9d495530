#include "plan/vectors/question.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace ringshift::plan::vectors {
namespace {

using placement::MemberIndex;

std::unexpected<Error> unknown(std::string_view what, std::string_view value) {
  return fail(ErrorKind::invalid, fmt::format("{} '{:.80}' is not known", what, value));
}

void take_prefix(std::string& value, std::string_view prefix) {
  if (value.starts_with(prefix)) value.erase(0, prefix.size());
}

Status libmemcached(const Node& node, Question& question) {
  std::string distribution = without_brackets(base::ascii_lower(text(node, "distribution")));
  take_prefix(distribution, "memcached_distribution_");
  if (distribution == "ketama_spy" || distribution == "consistent_ketama_spy") distribution = "spy";
  if (distribution == "consistent_ketama") distribution = "ketama";
  if (distribution == "consistent_weighted" || distribution == "weighted") distribution = "ketama_weighted";
  if (!distribution.empty()) question.options["distribution"] = distribution;
  std::string hash = without_brackets(base::ascii_lower(text(node, "hash")));
  take_prefix(hash, "memcached_hash_");
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
    if (has(node, name)) question.options[name] = base::ascii_lower(text(node, name));
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
  // A server of weight 0 is drained: it has no points, and is no place in the list of those that have.
  for (std::size_t i = 0; i < question.servers.size(); ++i) {
    Server& server = question.servers[i];
    if (server.label.empty()) server.label = std::to_string(i + 1);
  }
  std::erase_if(question.servers, [](const Server& server) { return server.weight == 0; });
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

// A peer by its own name in the catalogue: its options, in the case itself or under `options`.
Status by_catalogue(const Node& node, const placement::peers::Entry& entry, Question& question) {
  const Node* inner = node.find("options");
  for (const auto& rule : entry.options) {
    const std::string name(rule.name);
    if (has(node, name)) question.options[name] = text(node, name);
    if (inner != nullptr && has(*inner, name)) question.options[name] = text(*inner, name);
  }
  if (inner != nullptr) {
    for (const std::string& name : inner->names)
      if (entry.find(name) == nullptr) return unknown("option", name);
  }
  return {};
}

bool is_by_catalogue(std::string_view algorithm) {
  return algorithm.starts_with("envoy-") || algorithm.starts_with("article-");
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

}  // namespace

Result<Question> question_of(const Node& node, std::string_view algorithm) {
  Question question;
  const ServerForm form = form_of(algorithm);
  auto servers = read_servers(node, has(node, "nodes") ? "nodes" : "servers", form);
  if (!servers) return std::unexpected(servers.error());
  question.servers = std::move(*servers);
  Status read;
  if (is_by_catalogue(algorithm))
    read = by_catalogue(node, *placement::peers::find_peer(algorithm), question);
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

// "md5 (default)" and "default(one_at_a_time)" without what is in brackets.
std::string without_brackets(std::string_view name) {
  name = name.substr(0, name.find('('));
  while (name.ends_with(' ')) name.remove_suffix(1);
  return std::string(name);
}

std::string_view algorithm_of(std::string_view peer) {
  const std::string name = base::ascii_lower(peer);
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
                                     {"hashring", "hashring"},
                                     {"pylibmc", "libmemcached"},
                                     {"php-memcached", "libmemcached"}};
  if (name.starts_with("envoy-") || name.starts_with("article-")) {
    const auto* entry = placement::peers::find_peer(name);
    return entry == nullptr ? std::string_view{} : entry->name;
  }
  for (const Known& known : kKnown) {
    if (name.find(known.word) != std::string::npos) return known.algorithm;
  }
  return {};
}

ServerForm form_of(std::string_view algorithm) {
  if (algorithm == "twemproxy") return {true, "", ""};
  if (algorithm == "dalli") return {true, "11211", ""};
  if (algorithm == "libmemcached") return {false, "11211", ""};
  return {};
}

}  // namespace ringshift::plan::vectors
