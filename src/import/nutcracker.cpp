// nutcracker.yml as twemproxy 0.5 reads it: a map of pools, each with its directives.
//
// A server is "host:port:weight [name]" or "/socket:weight [name]", taken apart from its end. What twemproxy
// hashes is the name; without one the host, with its port unless that is 11211, as they are written there. Of
// a socket without a name it is the path and the colon after it (seen in nutcracker's own statistics).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/encoding.h"
#include "import/draft.h"
#include "import/yaml_tree.h"
#include "topology/reader.h"

namespace ringshift::importing {
namespace {

using topology::shown;
using Kind = YamlNode::Kind;

struct Ignored {
  std::string_view name, why;
};
// What does not decide where a key lies.
constexpr Ignored kIgnored[] = {
    {"listen", "is where nutcracker listened: give it to ringshift as --listen, once nutcracker is stopped"},
    {"timeout", "is not in a spec: `ringshift proxy --request-timeout-ms` bounds a request"},
    {"backlog", "is not in a spec: the proxy sets its own"},
    {"client_connections", "is not in a spec: the proxy sets its own bound on clients"},
    {"server_connections", "is not in a spec: each proxy thread keeps one pipelined connection a member"},
    {"tcpkeepalive", "is not in a spec"},
    {"preconnect", "is not needed: the proxy connects to its members at its start"},
    {"server_retry_timeout", "is not in a spec: the proxy retries a lost member by itself"},
    {"server_failure_limit", "is not in a spec: no member is ejected"},
};

constexpr std::string_view kServerForm =
    "write host:port:weight or /socket:weight, with a name after it if it has one";

class Pool {
 public:
  Pool(Draft& draft, std::string_view place) : draft_(draft), place_(place) {}

  Status read(const YamlNode& pool) {
    draft_.spec.placement = peer_placement("twemproxy");
    draft_.spec.placement.options["distribution"] = "ketama";
    draft_.protocol(topology::Protocol::memcached);  // redis: false is twemproxy's default.
    for (std::size_t i = 0; i < pool.keys.size(); ++i) {
      if (Status done = directive(pool.keys[i], pool.items[i]); !done) return done;
    }
    return {};
  }

 private:
  Status directive(const YamlNode::Key& key, const YamlNode& value) {
    if (key.name == "servers") return servers(value);
    if (value.kind != Kind::scalar)
      return refuse(place_, value.mark,
                    fmt::format("{} has one value, and here is none or a list", shown(key.name)));
    const std::string& text = value.text;
    if (key.name == "hash") {
      draft_.spec.placement.hash = text;
      draft_.marks["placement.hash"] = value.mark;
    } else if (key.name == "distribution") {
      draft_.spec.placement.options["distribution"] = text;
      draft_.marks["placement.distribution"] = value.mark;
    } else if (key.name == "hash_tag") {
      if (text.size() != 2) {
        return refuse(place_, value.mark,
                      fmt::format("hash_tag {} is not two characters, as twemproxy demands", shown(text)));
      }
      draft_.spec.placement.hash_tag = text;
      draft_.marks["placement.hash_tag"] = value.mark;
    } else if (key.name == "redis") {
      const auto yes = flag(key, value);
      if (!yes) return std::unexpected(yes.error());
      draft_.protocol(*yes ? topology::Protocol::redis : topology::Protocol::memcached);
    } else {
      return no_placement(key, value);
    }
    return {};
  }

  Status no_placement(const YamlNode::Key& key, const YamlNode& value) {
    const std::string words = fmt::format("{}: {}", key.name, value.text);
    if (key.name == "auto_eject_hosts") {
      const auto yes = flag(key, value);
      if (!yes) return std::unexpected(yes.error());
      if (*yes) {
        draft_.note(
            key.mark, words,
            "ringshift ejects no member: while one is down its keys answer errors. Keys that nutcracker "
            "wrote elsewhere during an ejection are not looked for there");
      }
      return {};
    }
    if (key.name == "redis_auth") {
      draft_.note(
          key.mark, "redis_auth: (hidden)",
          "ringshift knows no passwords, to members or for clients: protect the members by their network, "
          "and remove requirepass from them and the password from the clients");
      return {};
    }
    if (key.name == "redis_db") {
      if (value.text == "0") return {};
      return refuse(
          place_, value.mark,
          fmt::format("redis_db {}: the keys lie in that database of each server, and ringshift uses "
                      "database 0 only: move them (SWAPDB 0 {}, with nutcracker stopped), then take "
                      "the line out",
                      shown(value.text), base::printable(value.text, 8)));
    }
    const auto found = std::ranges::find(kIgnored, key.name, &Ignored::name);
    if (found == std::end(kIgnored)) {
      return refuse(place_, key.mark,
                    fmt::format("{} is no directive of twemproxy 0.5: remove it, if it does not decide which "
                                "server has a key",
                                shown(key.name)));
    }
    draft_.note(key.mark, words, std::string(found->why));
    return {};
  }

  Result<bool> flag(const YamlNode::Key& key, const YamlNode& value) {
    if (value.text == "true" || value.text == "false") return value.text == "true";
    return refuse(place_, value.mark,
                  fmt::format("{} is {}: twemproxy takes true or false", shown(key.name), shown(value.text)));
  }

  Status servers(const YamlNode& list) {
    if (list.kind != Kind::list) return refuse(place_, list.mark, "servers is a list: - host:port:weight");
    for (const YamlNode& item : list.items) {
      if (item.kind != Kind::scalar)
        return refuse(place_, item.mark, fmt::format("this is no server: {}", kServerForm));
      if (Status done = server(item); !done) return done;
    }
    return {};
  }

  Status server(const YamlNode& item) {
    std::string_view rest = item.text, name;
    if (const auto space = rest.rfind(' '); space != std::string_view::npos) {
      name = rest.substr(space + 1);
      rest = rest.substr(0, space);
    }
    const auto bad = [&](std::string_view what) {
      return refuse(place_, item.mark, fmt::format("server {} {}: {}", shown(item.text), what, kServerForm));
    };
    const bool socket = rest.starts_with('/');
    const auto weight_at = rest.rfind(':');
    if (weight_at == std::string_view::npos || weight_at == 0) return bad("has no weight");
    const auto weight = base::parse_u64(rest.substr(weight_at + 1));
    if (!weight) return bad("has no whole number as its weight");
    if (*weight == 0) return bad("has the weight 0, which twemproxy refuses too");
    std::string_view endpoint = rest.substr(0, weight_at);
    topology::Member member;
    member.id = name;
    member.weight = static_cast<double>(*weight);
    std::string label(name), usual;  // What twemproxy hashes; what our placement would by itself.
    if (socket) {
      if (endpoint.find(':') != std::string_view::npos) return bad("has a colon in its path");
      member.address = "unix:" + std::string(endpoint);
      usual = member.address;
      if (label.empty()) label = std::string(endpoint) + ':';
    } else {
      const auto port_at = endpoint.rfind(':');
      if (port_at == std::string_view::npos || port_at == 0) return bad("has no port or no weight");
      const std::string_view host = endpoint.substr(0, port_at);
      const std::string port = plain_port(endpoint.substr(port_at + 1));
      if (port.empty()) return bad("has no port from 1 to 65535");
      member.address = address_of(host, port);
      usual = port == "11211" ? member.address.substr(0, member.address.rfind(':')) : member.address;
      if (label.empty()) label = port == "11211" ? host : endpoint;
    }
    if (!labels_.insert(label).second) {
      return refuse(place_, item.mark,
                    fmt::format("server {}: {} is the name of a server before it: twemproxy "
                                "refuses that too",
                                shown(item.text), shown(label)));
    }
    if (label != usual) member.label = label;
    draft_.member(item.mark, std::move(member));
    return {};
  }

  Draft& draft_;
  std::string_view place_;
  std::set<std::string> labels_;
};

}  // namespace

Drafts read_nutcracker(std::string_view text, const Request& request) {
  const Result<YamlNode> root = parse_yaml(text, request.place);
  if (!root) return std::unexpected(root.error());
  if (root->kind != Kind::map)
    return refuse(request.place, root->mark,
                  "a nutcracker.yml is a map of pools: NAME: {listen: ..., servers: [...]}");
  std::vector<Draft> drafts;
  for (std::size_t i = 0; i < root->keys.size(); ++i) {
    const YamlNode::Key& key = root->keys[i];
    if (!request.pool.empty() && key.name != request.pool) continue;
    if (root->items[i].kind != Kind::map)
      return refuse(request.place, key.mark, fmt::format("pool {} is no map of directives", shown(key.name)));
    Draft& draft = drafts.emplace_back();
    draft.source = key.name;
    draft.mark = key.mark;
    if (Status done = Pool(draft, request.place).read(root->items[i]); !done)
      return std::unexpected(done.error());
  }
  return drafts;
}

}  // namespace ringshift::importing
