#include "config/proxy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "config/fields.h"
#include "net/address.h"

namespace ringshift::config {
namespace {

using proxy::LimitRule;
using proxy::RouteRule;
using proxy::RouteTable;

constexpr std::uint64_t kMaxMilliseconds = 3'600'000;
constexpr std::uint64_t kMaxBytes = 1ULL << 40;
constexpr std::size_t kMaxRoutes = 10'000;
constexpr std::size_t kSocketPathMax = 107;  // sockaddr_un.

// What CLIENT SETNAME takes.
bool fits_client_name(const std::string& id) {
  return !id.empty() && std::ranges::all_of(id, [](char c) { return c > ' ' && c < 127; });
}

class Parser {
 public:
  Parser(const std::string& place, const ReadFile& read)
      : directory_(std::filesystem::path(place).parent_path()), fields_(place), read_(read) {}

  Result<ProxyFile> parse(const YamlNode& root) {
    if (fields_.map(root, "the file",
                    {"listen", "threads", "id", "timeouts", "bounds", "slow_log_ms", "allow_flush",
                     "protected_mode", "handover", "users", "clusters", "routes", "limits", "tls"})) {
      process(root);
      timeouts(root);
      bounds(root);
      if (const YamlNode* node = fields_.find(root, "users")) users(*node);
      if (const YamlNode* node = fields_.find(root, "clusters")) clusters(*node);
      routes(root);
      if (const YamlNode* node = fields_.find(root, "limits")) limits(*node);
      if (const YamlNode* node = fields_.find(root, "tls")) tls(*node);
    }
    if (fields_.failed()) return std::unexpected(fields_.error());
    return std::move(file_);
  }

 private:
  void tls(const YamlNode& node) {
    fields_.problem(node.mark,
                    "tls: certificates are named by flags, not in this file: --tls-listen, --tls-cert and "
                    "--tls-key for clients, --tls-members for members");
  }

  void process(const YamlNode& root) {
    if (const YamlNode* node = fields_.find(root, "listen")) {
      file_.listen = fields_.texts(*node, "listen");
      if (file_.listen.empty()) fields_.problem(node->mark, "listen names no address");
      for (const std::string& address : file_.listen) {
        if (const auto endpoint = net::parse_endpoint(address); !endpoint) {
          fields_.problem(node->mark, fmt::format("listen: {}", endpoint.error().message));
        } else if (std::ranges::count(file_.listen, address) > 1) {
          return fields_.problem(node->mark, fmt::format("listen: {} is there twice", address));
        }
      }
    }
    if (const YamlNode* node = fields_.find(root, "threads")) {
      file_.threads = fields_.whole(*node, "threads", 0, 256);
    }
    if (const YamlNode* node = fields_.find(root, "id")) {
      file_.id = fields_.text(*node, "id");
      if (!fits_client_name(*file_.id)) {
        fields_.problem(node->mark,
                        "id: members see it as a client's name: no spaces, no control characters");
      }
    }
    if (const YamlNode* node = fields_.find(root, "handover")) {
      const std::string path = fields_.text(*node, "handover");
      file_.handover = resolve(path);
      if (path.empty() || file_.handover->size() > kSocketPathMax) {
        fields_.problem(node->mark, fmt::format("handover: '{}' cannot be a socket's path: 1 to {} bytes",
                                                *file_.handover, kSocketPathMax));
      }
    }
    if (const YamlNode* node = fields_.find(root, "slow_log_ms")) {
      if (const auto ms = fields_.whole(*node, "slow_log_ms", 0, kMaxMilliseconds)) {
        file_.slow_log = std::chrono::milliseconds(*ms);
      }
    }
    if (const YamlNode* node = fields_.find(root, "allow_flush")) {
      file_.allow_flush = fields_.flag(*node, "allow_flush");
    }
    if (const YamlNode* node = fields_.find(root, "protected_mode")) {
      file_.rules.protected_mode = fields_.flag(*node, "protected_mode");
    }
  }

  void timeouts(const YamlNode& root) {
    const YamlNode* node = fields_.find(root, "timeouts");
    if (node == nullptr ||
        !fields_.map(*node, "timeouts",
                     {"request_ms", "connect_ms", "hold_ms", "shutdown_grace_ms", "drain_ms"})) {
      return;
    }
    const auto read = [&](std::string_view name, std::optional<std::chrono::milliseconds>& out) {
      const YamlNode* field = fields_.find(*node, name);
      if (field == nullptr) return;
      const std::uint64_t least = name == "shutdown_grace_ms" || name == "drain_ms" ? 0 : 1;
      if (const auto value = fields_.whole(*field, name, least, kMaxMilliseconds)) {
        out = std::chrono::milliseconds(*value);
      }
    };
    read("request_ms", file_.request_timeout);
    read("connect_ms", file_.connect_timeout);
    read("hold_ms", file_.hold_timeout);
    read("shutdown_grace_ms", file_.shutdown_grace);
    read("drain_ms", file_.drain_timeout);
  }

  void bounds(const YamlNode& root) {
    const YamlNode* node = fields_.find(root, "bounds");
    if (node == nullptr ||
        !fields_.map(*node, "bounds",
                     {"clients", "in_flight", "output_bytes", "cut_output_bytes", "member_queue_bytes"})) {
      return;
    }
    const auto read = [&](std::string_view name, std::uint64_t most, std::optional<std::uint64_t>& out) {
      if (const YamlNode* field = fields_.find(*node, name)) out = fields_.whole(*field, name, 1, most);
    };
    read("clients", 1'000'000, file_.max_clients);
    read("in_flight", 1'000'000, file_.max_in_flight);
    read("output_bytes", kMaxBytes, file_.max_output_bytes);
    read("cut_output_bytes", kMaxBytes, file_.cut_output_bytes);
    read("member_queue_bytes", kMaxBytes, file_.max_member_queue_bytes);
  }

  // --- users ----------------------------------------------------------------------------------------------

  void users(const YamlNode& node) {
    if (!fields_.list(node, "users")) return;
    for (const YamlNode& entry : node.items) {
      if (!fields_.map(entry, "a user", {"name", "rules", "file"})) return;
      const YamlNode* name = fields_.find(entry, "name");
      const YamlNode* rules = fields_.find(entry, "rules");
      const YamlNode* file = fields_.find(entry, "file");
      if (file != nullptr && name == nullptr && rules == nullptr) {
        users_file(*file);
      } else if (name == nullptr || rules == nullptr || file != nullptr) {
        fields_.problem(entry.mark, "a user has a name and rules, or else it is a file of users");
      } else {
        user(*name, *rules);
      }
    }
  }

  void user(const YamlNode& name, const YamlNode& rules) {
    std::vector<std::string> words = fields_.texts(rules, "rules");
    if (rules.kind == YamlNode::Kind::scalar) words = split(rules.text);
    auto parsed = access::User::parse(fields_.text(name, "name"), words);
    if (!parsed) return fields_.problem(rules.mark, parsed.error().message);
    if (!known_users_.insert(parsed->name()).second) {
      return fields_.problem(name.mark, fmt::format("user '{}' is there already", parsed->name()));
    }
    file_.rules.users.add(std::move(*parsed));
  }

  void users_file(const YamlNode& node) {
    const std::string path = resolve(fields_.text(node, "file"));
    const auto text = read_(path);
    if (!text) return fields_.problem(node.mark, text.error().message);
    access::Users read;
    if (const Status status = access::read_users(*text, path, read); !status) {
      return fields_.problem(node.mark, status.error().message);
    }
    for (const auto& [name, user] : read.all()) {
      // "default" is there without being said.
      if (name == "default" && user->may_all() && user->needs_no_password()) continue;
      if (!known_users_.insert(name).second) {
        return fields_.problem(node.mark, fmt::format("{}: user '{}' is there already", path, name));
      }
      file_.rules.users.add(*user);
    }
  }

  static std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
      if (end > at) words.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
    return words;
  }

  bool user_is_known(const YamlNode& node, const std::string& name) {
    if (file_.rules.users.find(name) != nullptr) return true;
    std::vector<std::string_view> names;
    for (const auto& [known, user] : file_.rules.users.all()) names.push_back(known);
    fields_.problem(node.mark, fmt::format("there is no user '{}'{}", name, suggestion(name, names)));
    return false;
  }

  // --- clusters and routes --------------------------------------------------------------------------------

  void clusters(const YamlNode& node) {
    if (!fields_.list(node, "clusters")) return;
    for (const YamlNode& entry : node.items) {
      if (!fields_.map(entry, "a cluster", {"name", "spec", "registry", "namespace", "cluster"})) return;
      ClusterSource source;
      const auto read = [&](std::string_view name, std::string& out) {
        if (const YamlNode* field = fields_.find(entry, name)) out = fields_.text(*field, name);
      };
      read("name", source.name);
      read("spec", source.spec);
      read("registry", source.registry);
      read("namespace", source.name_space);
      read("cluster", source.name_there);
      if (source.name.empty()) fields_.problem(entry.mark, "a cluster has no name");
      if (source.spec.empty() == source.registry.empty()) {
        fields_.problem(entry.mark, "a cluster has either a spec (a file) or a registry (its URL)");
      }
      if (!source.registry.empty() && !source.registry.starts_with("http://") &&
          !source.registry.starts_with("https://") && !source.registry.starts_with("zk://")) {
        fields_.problem(entry.mark, fmt::format("registry: '{}' is no URL such as http://127.0.0.1:7379",
                                                source.registry));
      }
      if (source.registry.empty() && (!source.name_space.empty() || !source.name_there.empty())) {
        fields_.problem(entry.mark, "namespace and cluster are of a registry, and here is none");
      }
      if (std::ranges::find(file_.clusters, source.name, &ClusterSource::name) != file_.clusters.end()) {
        fields_.problem(entry.mark, fmt::format("cluster '{}' is there already", source.name));
      }
      if (!source.spec.empty()) source.spec = resolve(source.spec);
      if (!source.registry.empty() && source.name_there.empty()) source.name_there = source.name;
      file_.clusters.push_back(std::move(source));
    }
    if (file_.clusters.empty()) fields_.problem(node.mark, "clusters names none");
  }

  std::optional<std::size_t> cluster(const YamlNode& node) {
    const std::string name = fields_.text(node, "cluster");
    const auto found = std::ranges::find(file_.clusters, name, &ClusterSource::name);
    if (found != file_.clusters.end()) return static_cast<std::size_t>(found - file_.clusters.begin());
    std::vector<std::string_view> names;
    for (const ClusterSource& source : file_.clusters) names.push_back(source.name);
    fields_.problem(node.mark, fmt::format("there is no cluster '{}'{}", name, suggestion(name, names)));
    return std::nullopt;
  }

  void routes(const YamlNode& root) {
    const YamlNode* node = fields_.find(root, "routes");
    if (node == nullptr) {
      if (file_.clusters.size() > 1) {
        fields_.problem(root.mark, "there are several clusters: say by routes which keys belong to which");
      }
      return;
    }
    if (!fields_.list(*node, "routes")) return;
    if (node->items.empty()) {
      return fields_.problem(node->mark,
                             "routes: without any every key is refused; leave the field out to "
                             "serve the one cluster");
    }
    if (node->items.size() > kMaxRoutes) {
      return fields_.problem(node->mark, fmt::format("more than {} routes", kMaxRoutes));
    }
    std::map<std::string, std::vector<RouteRule>> by_user;  // "": of everybody else.
    for (const YamlNode& entry : node->items) {
      if (!fields_.map(entry, "a route", {"prefix", "cluster", "user"})) return;
      RouteRule rule;
      const YamlNode* prefix = fields_.find(entry, "prefix");
      const YamlNode* where = fields_.find(entry, "cluster");
      const YamlNode* user = fields_.find(entry, "user");
      if (where == nullptr) return fields_.problem(entry.mark, "a route has no cluster");
      if (prefix != nullptr) rule.prefix = fields_.text(*prefix, "prefix");
      if (const auto index = cluster(*where)) rule.cluster = *index;
      std::vector<std::string> names{""};
      if (user != nullptr) names = fields_.texts(*user, "user");
      for (const std::string& name : names) {
        if (user != nullptr && !user_is_known(*user, name)) return;
        std::vector<RouteRule>& rules = by_user[name];
        if (std::ranges::find(rules, rule.prefix, &RouteRule::prefix) != rules.end()) {
          return fields_.problem(entry.mark,
                                 fmt::format("prefix '{}' has a route already{}", rule.prefix,
                                             name.empty() ? "" : fmt::format(" for user '{}'", name)));
        }
        rules.push_back(rule);
      }
    }
    file_.rules.routes = RouteTable(by_user[""]);
    by_user.erase("");
    for (auto& [name, rules] : by_user) file_.rules.user_routes.emplace(name, RouteTable(std::move(rules)));
  }

  // --- limits ---------------------------------------------------------------------------------------------

  void limits(const YamlNode& node) {
    if (!fields_.list(node, "limits")) return;
    std::set<std::pair<LimitRule::Scope, std::string>> seen;
    for (const YamlNode& entry : node.items) {
      if (!fields_.map(entry, "a limit",
                       {"user", "client", "prefix", "cluster", "requests_per_second", "bytes_per_second",
                        "burst", "burst_bytes"})) {
        return;
      }
      LimitRule rule;
      if (!scope(entry, rule)) return;
      const auto read = [&](std::string_view name, double& out) {
        if (const YamlNode* field = fields_.find(entry, name)) out = fields_.rate(*field, name);
      };
      read("requests_per_second", rule.requests_per_second);
      read("bytes_per_second", rule.bytes_per_second);
      read("burst", rule.burst);
      read("burst_bytes", rule.burst_bytes);
      if (rule.requests_per_second == 0 && rule.bytes_per_second == 0) {
        fields_.problem(entry.mark, "a limit has requests_per_second, bytes_per_second, or both");
      }
      if ((rule.burst > 0 && rule.requests_per_second == 0) ||
          (rule.burst_bytes > 0 && rule.bytes_per_second == 0)) {
        fields_.problem(entry.mark, "burst is of requests_per_second, burst_bytes of bytes_per_second");
      }
      if (!seen.emplace(rule.scope, rule.name).second) {
        fields_.problem(entry.mark, "there is a limit for the same already");
      }
      file_.rules.limits.push_back(std::move(rule));
    }
  }

  bool scope(const YamlNode& entry, LimitRule& rule) {
    const YamlNode* user = fields_.find(entry, "user");
    const YamlNode* client = fields_.find(entry, "client");
    const YamlNode* prefix = fields_.find(entry, "prefix");
    const YamlNode* of_cluster = fields_.find(entry, "cluster");
    if ((user != nullptr) + (client != nullptr) + (prefix != nullptr) + (of_cluster != nullptr) != 1) {
      fields_.problem(entry.mark, "a limit is for one of these: user, client, prefix, cluster");
      return false;
    }
    if (user != nullptr) {
      rule.scope = LimitRule::Scope::user;
      rule.name = fields_.text(*user, "user");
      return rule.name == "*" || user_is_known(*user, rule.name);
    }
    if (client != nullptr) {
      rule.scope = LimitRule::Scope::client;
      if (!fields_.flag(*client, "client")) {
        fields_.problem(client->mark,
                        "client: true is for each connection by itself; else leave the limit out");
      }
    } else if (prefix != nullptr) {
      rule.scope = LimitRule::Scope::prefix;
      rule.name = fields_.text(*prefix, "prefix");
    } else {
      rule.scope = LimitRule::Scope::cluster;
      if (const auto index = cluster(*of_cluster)) rule.name = file_.clusters[*index].name;
    }
    return !fields_.failed();
  }

  [[nodiscard]] std::string resolve(const std::string& path) const {
    return std::filesystem::path(path).is_absolute() ? path : (directory_ / path).string();
  }

  const std::filesystem::path directory_;
  Fields fields_;
  const ReadFile& read_;
  std::set<std::string> known_users_;
  ProxyFile file_;
};

}  // namespace

Result<ProxyFile> parse_proxy_file(std::string_view text, const std::string& place, const ReadFile& read) {
  const auto root = importing::parse_yaml(text, place);
  if (!root) return std::unexpected(root.error());
  return Parser(place, read).parse(*root);
}

}  // namespace ringshift::config
