#include <fmt/format.h>

#include <algorithm>

#include "discovery/json_look.h"
#include "discovery/nacos.h"
#include "topology/reader.h"

namespace ringshift::discovery {
namespace {

using topology::Node;

constexpr std::chrono::seconds kTokenMost{24 * 3600};

Instance read_nacos_host(JsonLook& look, const Node& host, const Options& options) {
  Instance instance;
  const std::string ip = look.text(host, "ip");
  const auto port = look.whole(host, "port").value_or(0);
  if (!ip.empty() && port >= 1 && port <= 65535) {
    instance.address = join_address(ip, static_cast<std::uint16_t>(port));
    instance.id = fmt::format("{}:{}", ip, port);
  }
  const Node& metadata = look.map(host, "metadata");
  for (std::size_t i = 0; i < metadata.items.size(); ++i) {
    const std::string value = look.scalar(metadata.items[i], "metadata");
    add_label(instance, metadata.names[i], value);
    if (metadata.names[i] == options.id_label && !value.empty()) instance.id = value;
    if (metadata.names[i] == "protocol") instance.protocol = value;
  }
  add_label(instance, "nacos.cluster", look.text(host, "clusterName"));
  if (!options.name_space.empty()) add_label(instance, "namespace", options.name_space);
  const bool offline =
      !look.flag(host, "enabled").value_or(true) || look.number(host, "weight").value_or(1) <= 0;
  const bool sick = look.text(metadata, kNacosState) == to_string(InstanceState::unhealthy);
  instance.state = sick                                        ? InstanceState::unhealthy
                   : offline                                   ? InstanceState::draining
                   : look.flag(host, "healthy").value_or(true) ? InstanceState::ready
                                                               : InstanceState::unhealthy;
  return instance;
}

// v2 and v3 wrap: {"code":0,"message":"success","data":...}.
const Node& unwrapped(JsonLook& look, const Node& root) {
  if (root.find("hosts") != nullptr || root.find("data") == nullptr) return root;
  if (const auto code = look.whole(root, "code"); code && *code != 0)
    look.problem("code", fmt::format("{}: {}", *code, topology::shown(look.text(root, "message"))));
  return look.map(root, "data");
}

}  // namespace

Result<Seen> parse_nacos_list(std::string_view json, const Options& options) {
  const auto root = topology::parse_json_document(json, "Nacos's answer");
  if (!root) return std::unexpected(root.error());
  JsonLook look;
  Seen seen;
  if (look.is_map(*root, "answer")) {
    const Node& answer = unwrapped(look, *root);
    if (answer.find("hosts") == nullptr) look.problem("answer", "has no hosts");
    if (look.flag(answer, "reachProtectionThreshold").value_or(false)) {
      return fail(
          ErrorKind::retryable,
          "Nacos protects the service: too few of its instances are healthy, and it calls all of them so");
    }
    for (const Node& host : look.list(answer, "hosts").items) {
      if (look.bad() || !look.is_map(host, "hosts")) break;
      Instance instance = read_nacos_host(look, host, options);
      if (look.bad()) break;
      if (instance.address.empty()) {
        seen.leave_out("a host without ip or port");
      } else {
        seen.add(std::move(instance));
      }
    }
  }
  if (look.bad()) return fail(ErrorKind::invalid, fmt::format("Nacos's answer is none: {}", look.wrong()));
  return seen;
}

Result<NacosToken> parse_nacos_login(std::string_view json) {
  const auto root = topology::parse_json_document(json, "Nacos's login");
  JsonLook look;
  NacosToken token;
  if (root && look.is_map(*root, "answer")) {
    token.token = look.text(*root, "accessToken");
    token.ttl = std::chrono::seconds(
        std::min<std::uint64_t>(look.whole(*root, "tokenTtl").value_or(0), kTokenMost.count()));
  }
  const bool clean = std::ranges::all_of(token.token, [](char c) { return c > 0x20 && c < 0x7f; });
  // What it said instead may be as secret as a token.
  if (!root || look.bad() || token.token.empty() || !clean)
    return fail(ErrorKind::invalid, "Nacos's login gave no token: is its authentication on?");
  return token;
}

}  // namespace ringshift::discovery
