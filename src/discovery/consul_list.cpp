#include <fmt/format.h>

#include "discovery/consul.h"
#include "discovery/json_look.h"
#include "topology/reader.h"

namespace ringshift::discovery {
namespace {

using topology::Node;

InstanceState consul_state(JsonLook& look, const Node& entry) {
  InstanceState state = InstanceState::ready;
  for (const Node& check : look.list(entry, "Checks").items) {
    if (!look.is_map(check, "Checks")) break;
    const std::string id = look.text(check, "CheckID");
    const std::string status = look.text(check, "Status");
    const bool maintenance = id == "_node_maintenance" || id.starts_with("_service_maintenance:");
    if (maintenance && status != "passing") return InstanceState::draining;
    if (status != "passing" && status != "warning") state = InstanceState::unhealthy;
  }
  return state;
}

Instance read_consul_entry(JsonLook& look, const Node& entry, const Options& options) {
  const Node& node = look.map(entry, "Node");
  const Node& service = look.map(entry, "Service");
  Instance instance;
  const std::string node_name = look.text(node, "Node");
  const std::string service_id = look.text(service, "ID");
  instance.id = options.id_from == "node"   ? node_name
                : options.id_from == "both" ? fmt::format("{}:{}", node_name, service_id)
                                            : service_id;
  std::string host = look.text(service, "Address");
  if (host.empty()) host = look.text(node, "Address");  // As registered without an address of its own.
  const auto port = look.whole(service, "Port").value_or(0);
  if (!host.empty() && port >= 1 && port <= 65535)
    instance.address = join_address(host, static_cast<std::uint16_t>(port));
  const Node& meta = look.map(service, "Meta");
  for (std::size_t i = 0; i < meta.items.size(); ++i) {
    const std::string value = look.scalar(meta.items[i], "Meta");
    add_label(instance, meta.names[i], value);
    if (meta.names[i] == options.id_label && !value.empty()) instance.id = value;
    if (meta.names[i] == "protocol") instance.protocol = value;
  }
  std::string tags;
  for (const Node& tag : look.list(service, "Tags").items)
    tags += (tags.empty() ? "" : ",") + look.scalar(tag, "Tags");
  if (!tags.empty()) add_label(instance, "consul.tags", tags);
  add_label(instance, "consul.node", node_name);
  add_label(instance, "consul.datacenter", look.text(node, "Datacenter"));
  if (const std::string name_space = look.text(service, "Namespace"); !name_space.empty())
    add_label(instance, "namespace", name_space);
  instance.state = consul_state(look, entry);
  return instance;
}

}  // namespace

Result<Seen> parse_consul_health(std::string_view json, const Options& options) {
  const auto root = topology::parse_json_document(json, "Consul's answer");
  if (!root) return std::unexpected(root.error());
  JsonLook look;
  Seen seen;
  if (root->kind != Node::Kind::list) look.problem("answer", "is no list");
  for (const Node& entry : root->items) {
    if (look.bad() || !look.is_map(entry, "entry")) break;
    if (entry.find("Node") == nullptr || entry.find("Service") == nullptr)
      look.problem("entry", "has no Node or no Service");
    Instance instance = read_consul_entry(look, entry, options);
    if (!look.bad()) seen.add(std::move(instance));
  }
  if (look.bad()) return fail(ErrorKind::invalid, fmt::format("Consul's answer is none: {}", look.wrong()));
  return seen;
}

}  // namespace ringshift::discovery
