#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "discovery/json_look.h"
#include "discovery/kubernetes.h"
#include "topology/reader.h"

namespace ringshift::discovery {
namespace {

using topology::Node;

// The port that was named, or the only one; 0: none of them.
std::uint16_t port_of(JsonLook& look, const Node& slice, const std::string& wanted) {
  const auto& ports = look.list(slice, "ports").items;
  for (const Node& port : ports) {
    if (!look.is_map(port, "ports")) break;
    const auto number = look.whole(port, "port").value_or(0);
    if (number < 1 || number > 65535) continue;
    const bool it = wanted.empty() ? ports.size() == 1
                                   : look.text(port, "name") == wanted || fmt::format("{}", number) == wanted;
    if (it) return static_cast<std::uint16_t>(number);
  }
  return 0;
}

InstanceState state_of(JsonLook& look, const Node& endpoint) {
  const Node& conditions = look.map(endpoint, "conditions");
  const bool ready = look.flag(conditions, "ready").value_or(true);
  const bool serving = look.flag(conditions, "serving").value_or(ready);
  const bool terminating = look.flag(conditions, "terminating").value_or(false);
  if (serving && terminating)
    return InstanceState::draining;  // Also with publishNotReadyAddresses, ready for ever.
  return ready && !terminating ? InstanceState::ready : InstanceState::unhealthy;
}

// One instance: an endpoint's addresses are all the same to whoever connects.
Instance read_endpoint(JsonLook& look, const Node& endpoint, std::uint16_t port,
                       const std::string& name_space, const Options& options) {
  Instance instance;
  std::string ip;
  if (const auto& addresses = look.list(endpoint, "addresses").items; !addresses.empty())
    ip = look.scalar(addresses.front(), "addresses");
  const Node& target = look.map(endpoint, "targetRef");
  const std::string pod = look.text(target, "kind") == "Pod" ? look.text(target, "name") : "";
  const std::string hostname = look.text(endpoint, "hostname");
  std::string host = ip;
  if (options.address == "name")
    host = hostname.empty() ? "" : fmt::format("{}.{}.{}.svc", hostname, options.service, name_space);
  if (!host.empty()) instance.address = join_address(host, port);
  const std::string& name = pod.empty() ? hostname : pod;
  instance.id = options.id_from == "address" || name.empty() ? fmt::format("{}:{}", ip, port) : name;
  instance.state = state_of(look, endpoint);
  add_label(instance, "namespace", name_space);
  for (const auto& [label, field] : {std::pair{"kubernetes.zone", "zone"}, {"kubernetes.node", "nodeName"}})
    if (std::string value = look.text(endpoint, field); !value.empty()) add_label(instance, label, value);
  return instance;
}

KubernetesSlice read_slice(JsonLook& look, const Node& object, const Options& options) {
  KubernetesSlice slice;
  const Node& metadata = look.map(object, "metadata");
  slice.name = look.text(metadata, "name");
  if (slice.name.empty()) look.problem("metadata", "has no name");
  slice.version = base::parse_u64(look.text(metadata, "resourceVersion")).value_or(0);
  const std::string name_space = look.text(metadata, "namespace");
  slice.of_service = look.text(look.map(metadata, "labels"), "kubernetes.io/service-name") == options.service;
  if (!slice.of_service) return slice;
  if (look.text(object, "addressType") == "FQDN") {  // Deprecated, and never of pods.
    slice.left_out.push_back(slice.name + ": its addresses are names");
    return slice;
  }
  const auto& endpoints = look.list(object, "endpoints").items;
  if (endpoints.empty()) return slice;
  const std::uint16_t port = port_of(look, object, options.port);
  if (port == 0 && !look.bad()) {
    slice.left_out.push_back(fmt::format("{}: {}", topology::shown(slice.name),
                                         options.port.empty() ? "has several ports, or none: name one by port"
                                                              : "has no port " + options.port));
    return slice;
  }
  for (const Node& endpoint : endpoints) {
    if (look.bad() || !look.is_map(endpoint, "endpoints")) break;
    Instance instance = read_endpoint(look, endpoint, port, name_space, options);
    if (const std::string wrong = check_instance(instance); wrong.empty()) {
      slice.instances.push_back(std::move(instance));
    } else if (slice.left_out.size() < Seen::kToldMax) {
      slice.left_out.push_back(fmt::format("{}: {}", topology::shown(instance.id), wrong));
    }
  }
  return slice;
}

std::string answer_is_none(const JsonLook& look) {
  return fmt::format("the Kubernetes API's answer is none: {}", look.wrong());
}

}  // namespace

Result<KubernetesPage> parse_slice_list(std::string_view json, const Options& options) {
  const auto root = topology::parse_json_document(json, "the Kubernetes API's answer");
  if (!root) return std::unexpected(root.error());
  JsonLook look;
  KubernetesPage page;
  if (look.is_map(*root, "answer")) {
    if (look.text(*root, "kind") != "EndpointSliceList") look.problem("kind", "is not EndpointSliceList");
    const Node& metadata = look.map(*root, "metadata");
    page.version = look.text(metadata, "resourceVersion");
    page.more = look.text(metadata, "continue");
    if (page.version.empty()) look.problem("metadata", "has no resourceVersion");
    for (const Node& item : look.list(*root, "items").items) {
      if (look.bad() || !look.is_map(item, "items")) break;
      page.slices.push_back(read_slice(look, item, options));
    }
  }
  if (look.bad()) return fail(ErrorKind::invalid, answer_is_none(look));
  return page;
}

Result<KubernetesEvent> parse_slice_event(std::string_view line, const Options& options) {
  const auto root = topology::parse_json_document(line, "the Kubernetes API's event");
  if (!root) return std::unexpected(root.error());
  JsonLook look;
  KubernetesEvent event;
  if (look.is_map(*root, "event")) {
    const std::string type = look.text(*root, "type");
    const Node& object = look.map(*root, "object");
    event.version = look.text(look.map(object, "metadata"), "resourceVersion");
    if (type == "ERROR") {
      event.message = look.text(object, "message");
      event.kind = look.whole(object, "code").value_or(0) == 410 ? KubernetesEvent::Kind::gone
                                                                 : KubernetesEvent::Kind::failed;
    } else if (type == "BOOKMARK") {
      event.kind = KubernetesEvent::Kind::bookmark;
    } else if (type == "ADDED" || type == "MODIFIED" || type == "DELETED") {
      event.kind = type == "DELETED" ? KubernetesEvent::Kind::remove : KubernetesEvent::Kind::put;
      event.slice = read_slice(look, object, options);
    } else {
      look.problem("type", fmt::format("{} is none", topology::shown(type)));
    }
    if (type != "ERROR" && event.version.empty()) look.problem("metadata", "has no resourceVersion");
  }
  if (look.bad()) return fail(ErrorKind::invalid, answer_is_none(look));
  return event;
}

void SliceSet::reset(std::vector<KubernetesSlice> slices) {
  slices_.clear();
  for (KubernetesSlice& slice : slices)
    if (slice.of_service) slices_.insert_or_assign(slice.name, std::move(slice));
}

bool SliceSet::apply(KubernetesEvent event) {
  const auto known = slices_.find(event.slice.name);
  const std::uint64_t version = event.slice.version;
  if (known != slices_.end() && version != 0 && version < known->second.version) return false;
  // A slice whose label was changed belongs to another service from now on.
  if (event.kind == KubernetesEvent::Kind::remove || !event.slice.of_service) {
    if (known == slices_.end()) return false;
    slices_.erase(known);
    return true;
  }
  if (event.kind != KubernetesEvent::Kind::put) return false;
  std::string name = event.slice.name;
  slices_.insert_or_assign(std::move(name), std::move(event.slice));
  return true;
}

Seen SliceSet::seen() const {
  constexpr int kRank[] = {0, 2, 1};  // ready, unhealthy, draining: the best of several.
  std::map<std::string, const Instance*, std::less<>> best;
  Seen seen;
  for (const auto& [name, slice] : slices_) {
    for (const std::string& why : slice.left_out) seen.leave_out(why);
    for (const Instance& instance : slice.instances) {
      const Instance*& chosen = best[instance.id];
      const auto rank = [&](const Instance& one) { return kRank[static_cast<std::size_t>(one.state)]; };
      if (chosen == nullptr || rank(instance) < rank(*chosen)) chosen = &instance;
    }
  }
  for (const auto& [id, instance] : best) seen.all.push_back(*instance);
  return seen;
}

}  // namespace ringshift::discovery
