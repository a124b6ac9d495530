#include "plan/vectors/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/encoding.h"

namespace ringshift::plan::vectors {
namespace {

bool is_scalar(const Node& node) { return node.kind == Node::Kind::plain || node.kind == Node::Kind::quoted; }

std::unexpected<Error> invalid(std::string message) { return fail(ErrorKind::invalid, std::move(message)); }

// Takes ":digits" off the end of `address`; "" when there is none.
std::string take_number(std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) return {};
  const auto digits = address.find_first_not_of("0123456789.", colon + 1);
  if (digits != std::string::npos) return {};
  std::string taken = address.substr(colon + 1);
  address.resize(colon);
  return taken;
}

bool two_numbers(std::string address) {
  return !take_number(address).empty() && (!take_number(address).empty() || address.starts_with('/'));
}

bool is_socket(std::string_view address) { return address.starts_with('/') || address.starts_with("unix:"); }

Status set_weight(Server& server, std::string_view value) {
  const auto weight = number(value);
  if (!weight) return invalid(fmt::format("'{:.60}' is no weight", value));
  server.weight = *weight;
  return {};
}

// "ADDRESS[:WEIGHT] [weight=W] [id=N] [NAME]".
Result<Server> server_of_text(const std::string& line, const ServerForm& form) {
  const auto parts = words(line);
  if (parts.empty()) return invalid("a server without an address");
  std::string address(parts[0]), weight;
  // Of "host:port:weight" nobody could mean another thing; an IPv6 address without brackets is full of
  // colons.
  const bool plain = std::ranges::count(address, ':') == 2 && !address.starts_with("unix:");
  if ((form.weight_after_colon || plain) && two_numbers(address)) weight = take_number(address);
  Server server = placement::peers::server_of(address);
  if (server.port.empty()) server.port = is_socket(address) ? form.socket_port : form.default_port;
  for (const std::string_view part : std::span(parts).subspan(1)) {
    if (part.starts_with("weight=")) {
      weight = part.substr(7);
    } else if (part.starts_with("id=")) {
      server.label = part.substr(3);
    } else if (part.find('=') == std::string_view::npos && server.label.empty()) {
      server.label = part;
    } else {
      return invalid(fmt::format("'{:.60}' of server '{:.60}' is not known", part, line));
    }
  }
  if (weight.empty()) return server;
  if (const Status set = set_weight(server, weight); !set) return std::unexpected(set.error());
  return server;
}

Result<Server> server_of_list(const Node& node, const ServerForm& form) {
  const bool scalars = std::ranges::all_of(node.items, is_scalar);
  if (!scalars || node.items.empty() || node.items.size() > 3)
    return invalid("a server in a list is [host, port, weight] or [address, weight]");
  Server server = placement::peers::server_of(node.items[0].text);
  if (node.items.size() == 3) server.port = node.items[1].text;
  if (server.port.empty() || (server.port == "0" && is_socket(server.host)))
    server.port = is_socket(server.host) ? form.socket_port : form.default_port;
  if (node.items.size() == 1) return server;
  if (const Status set = set_weight(server, node.items.back().text); !set)
    return std::unexpected(set.error());
  return server;
}

Result<Server> server_of_map(const Node& node, const ServerForm& form) {
  std::string address;
  for (const std::string_view name : {"addr", "address", "host", "server"}) {
    if (address.empty()) address = text(node, name);
  }
  Server server = placement::peers::server_of(address);
  for (const std::string& name : node.names) {
    const std::string value = text(node, name);
    if (name == "port") {
      server.port = value;
    } else if (name == "weight") {
      if (const Status set = set_weight(server, value); !set) return std::unexpected(set.error());
    } else if (name == "vnodes") {
      server.vnodes = static_cast<std::uint32_t>(base::parse_u64(value).value_or(0));
    } else if (name == "id" || name == "label") {
      server.label = value;
    } else if (name != "name" && name != "addr" && name != "address" && name != "host" && name != "server") {
      return invalid(fmt::format("field '{:.60}' of a server is not known", name));
    }
  }
  if (server.host.empty()) return invalid("a server without an address");
  if (server.port.empty()) server.port = is_socket(server.host) ? form.socket_port : form.default_port;
  return server;
}

Result<Server> server_of_node(const Node& node, const ServerForm& form) {
  if (is_scalar(node)) return server_of_text(node.text, form);
  if (node.kind == Node::Kind::list) return server_of_list(node, form);
  if (node.kind == Node::Kind::map) return server_of_map(node, form);
  return invalid("a server that is null");
}

Status set_weights(std::vector<Server>& servers, const Node& weights) {
  if (weights.items.size() != servers.size()) {
    return invalid(fmt::format("{} weights for {} servers", weights.items.size(), servers.size()));
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    std::size_t at = i;
    if (weights.kind == Node::Kind::map) {
      const auto name = std::ranges::find(weights.names, servers[i].host_port());
      if (name == weights.names.end())
        return invalid(fmt::format("no weight for '{:.60}'", servers[i].host_port()));
      at = static_cast<std::size_t>(name - weights.names.begin());
    }
    if (const Status set = set_weight(servers[i], weights.items[at].text); !set) return set;
  }
  return {};
}

}  // namespace

std::string text(const Node& map, std::string_view name) {
  const Node* node = map.find(name);
  return node != nullptr && is_scalar(*node) ? node->text : "";
}

bool has(const Node& map, std::string_view name) {
  const Node* node = map.find(name);
  return node != nullptr && node->kind != Node::Kind::null;
}

std::optional<std::uint64_t> whole(const Node& map, std::string_view name) {
  return base::parse_u64(text(map, name));
}

std::optional<double> number(std::string_view from) {
  double value = 0;
  const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), value);
  if (error != std::errc{} || end != from.data() + from.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::vector<std::string_view> words(std::string_view from) {
  std::vector<std::string_view> out;
  while (true) {
    const auto begin = from.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return out;
    from.remove_prefix(begin);
    const auto size = std::min(from.find_first_of(" \t"), from.size());
    out.push_back(from.substr(0, size));
    from.remove_prefix(size);
  }
}

Result<std::vector<Server>> read_servers(const Node& map, std::string_view name, const ServerForm& form) {
  const Node* list = map.find(name);
  if (list == nullptr || (list->kind != Node::Kind::list && list->kind != Node::Kind::map)) {
    return invalid(fmt::format("no list '{}'", name));
  }
  if (list->items.size() > kMaxServers) {
    return invalid(fmt::format("{} servers are more than {}", list->items.size(), kMaxServers));
  }
  std::vector<Server> servers;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const Node& item = list->items[i];
    Result<Server> server =
        list->kind == Node::Kind::list ? server_of_node(item, form) : server_of_text(list->names[i], form);
    if (!server) return std::unexpected(server.error());
    if (list->kind == Node::Kind::map) {
      const std::string weight = item.kind == Node::Kind::map ? text(item, "weight") : item.text;
      if (item.kind == Node::Kind::map)
        server->vnodes = static_cast<std::uint32_t>(whole(item, "vnodes").value_or(0));
      if (!weight.empty()) {
        if (const Status set = set_weight(*server, weight); !set) return std::unexpected(set.error());
      }
    }
    server->index = static_cast<placement::MemberIndex>(i);
    servers.push_back(std::move(*server));
  }
  if (has(map, "weights")) {
    if (const Status set = set_weights(servers, *map.find("weights")); !set)
      return std::unexpected(set.error());
  }
  return servers;
}

Result<std::vector<std::string>> read_keys(const Node& list) {
  std::vector<std::string> keys;
  for (const Node& item : list.items) {
    auto key = is_scalar(item) ? base::from_hex(item.text) : std::nullopt;
    if (!key) return invalid(fmt::format("key {} is not hex: '{:.60}'", keys.size(), item.text));
    keys.push_back(std::move(*key));
  }
  return keys;
}

Result<std::unique_ptr<placement::peers::Peer>> build(std::string_view algorithm, const Options& options,
                                                      const std::vector<Server>& servers) {
  const auto* entry = placement::peers::find_peer(algorithm);
  if (entry == nullptr) return invalid(fmt::format("'{:.60}' is not a placement that is known", algorithm));
  if (const auto wrong = placement::peers::check(*entry, options)) {
    return invalid(fmt::format("{}: {}", wrong->option, wrong->message));
  }
  if (const auto wrong = placement::peers::check(*entry, std::span(servers))) {
    return invalid(fmt::format("server {}: {}", wrong->position, wrong->message));
  }
  return entry->build(options, servers);
}

std::string step(std::string_view name) {
  std::string out = "/";
  for (const char c : name) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Comparison::shown(double value) { return fmt::format("{}", value); }

void Comparison::add(bool same, const std::string& what, const std::string& recorded,
                     const std::string& ours) {
  ++result_.asked;
  if (same) {
    ++result_.matched;
  } else if (result_.problem.empty()) {
    result_.problem = fmt::format("{}: recorded {}, computed {}", what, recorded, ours);
  }
}

}  // namespace ringshift::plan::vectors
