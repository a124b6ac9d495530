// The spec's `discovery`: from YAML or JSON, and what is wrong with it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/encoding.h"
#include "topology/discovery.h"
#include "topology/discovery_match.h"

namespace ringshift::topology {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaxPolicyTime = std::chrono::hours(24 * 365);

// "10m", "90s", "250ms", "1h", "0".
std::optional<milliseconds> parse_policy_time(std::string_view text) {
  if (text == "0") return milliseconds(0);
  const std::size_t unit_at = text.find_first_not_of("0123456789");
  if (unit_at == std::string_view::npos || unit_at == 0) return std::nullopt;
  const auto number = base::parse_u64(text.substr(0, unit_at));
  const std::string_view unit = text.substr(unit_at);
  const std::uint64_t factor = unit == "ms"  ? 1
                               : unit == "s" ? 1000
                               : unit == "m" ? 60'000
                               : unit == "h" ? 3'600'000
                                             : 0;
  const auto most = static_cast<std::uint64_t>(kMaxPolicyTime.count());
  if (!number || factor == 0 || *number > most / factor) return std::nullopt;
  return milliseconds(*number * factor);
}

void read_policy_time(Reader& reader, const Node& map, const std::string& path, std::string_view name,
                      milliseconds& out) {
  const Node* node = map.find(name);
  if (node == nullptr || reader.failed()) return;
  const std::string text = reader.scalar(*node, join(path, name));
  if (const auto time = parse_policy_time(text)) {
    out = *time;
  } else {
    reader.problem(node->line, join(path, name),
                   fmt::format("{} is no duration of at most a year: write 90s, 10m or 1h", shown(text)));
  }
}

std::vector<std::string> read_texts(Reader& reader, const Node& map, const std::string& path,
                                    std::string_view name) {
  std::vector<std::string> out;
  const Node* node = map.find(name);
  if (node == nullptr || reader.failed()) return out;
  if (node->kind != Node::Kind::list) return {reader.scalar(*node, join(path, name))};
  for (std::size_t i = 0; i < node->items.size() && !reader.failed(); ++i)
    out.push_back(reader.scalar(node->items[i], at(join(path, name), i)));
  return out;
}

DiscoverySource read_source(Reader& reader, const Node& node, const std::string& path) {
  DiscoverySource source;
  if (node.kind != Node::Kind::map) {
    reader.problem(node.line, path, "a map belongs here, such as {kind: registry}");
    return source;
  }
  const auto kind = reader.word(node, path, "kind", kSourceKinds);
  if (reader.failed()) return source;
  if (!kind) {
    reader.problem(node.line, path,
                   "the field 'kind' is missing: static, file, dns, registry, consul, nacos or "
                   "kubernetes");
    return source;
  }
  source.kind = kSourceKinds[*kind];
  const std::span<const std::string_view> known = source_fields(source.kind);
  for (std::size_t i = 0; i < node.names.size() && !reader.failed(); ++i) {
    const std::string& name = node.names[i];
    if (name == "kind") continue;
    if (std::ranges::find(known, std::string_view(name)) == known.end()) {
      const std::string near = nearest(name, known);
      reader.problem(node.items[i].line, path,
                     near.empty()
                         ? fmt::format("unknown field {} of a source of kind {}", shown(name), source.kind)
                         : fmt::format("unknown field {} of a source of kind {}: did you mean '{}'?",
                                       shown(name), source.kind, near));
      return source;
    }
    source.options[name] = read_texts(reader, node, path, name);
  }
  return source;
}

DiscoveryAssign read_rule(Reader& reader, const Node& node, const std::string& path) {
  DiscoveryAssign rule;
  if (!reader.map(node, path, {"ids", "weight", "zone", "host", "label", "as"})) return rule;
  reader.text(node, path, "ids", rule.ids);
  if (node.find("weight") != nullptr) {
    rule.weight = 1;
    reader.number(node, path, "weight", *rule.weight);
  }
  reader.text(node, path, "zone", rule.zone);
  reader.text(node, path, "host", rule.host);
  reader.text(node, path, "label", rule.label);
  reader.text(node, path, "as", rule.as);
  return rule;
}

}  // namespace

DiscoverySpec read_discovery(Reader& reader, const Node& node, const std::string& path) {
  DiscoverySpec out;
  if (!reader.map(node, path, {"source", "admit", "match", "assign", "cooldown", "remove", "eject"}))
    return out;
  if (const Node* source = node.find("source")) {
    out.source = read_source(reader, *source, join(path, "source"));
  } else {
    reader.problem(node.line, path, "the field 'source' is missing: for agents, {kind: registry}");
  }
  out.admit_auto = reader.word(node, path, "admit", {"manual", "auto"}) == 1;
  if (const Node* match = node.find("match");
      match != nullptr && reader.map(*match, join(path, "match"), {"ids", "addresses", "namespace"})) {
    out.match.ids = read_texts(reader, *match, join(path, "match"), "ids");
    out.match.addresses = read_texts(reader, *match, join(path, "match"), "addresses");
    reader.text(*match, join(path, "match"), "namespace", out.match.name_space);
  }
  if (const Node* assign = node.find("assign");
      assign != nullptr && reader.list(*assign, join(path, "assign"))) {
    for (std::size_t i = 0; i < assign->items.size() && !reader.failed(); ++i)
      out.assign.push_back(read_rule(reader, assign->items[i], at(join(path, "assign"), i)));
  }
  read_policy_time(reader, node, path, "cooldown", out.cooldown);
  if (const Node* remove = node.find("remove");
      remove != nullptr && reader.map(*remove, join(path, "remove"), {"after", "at_most", "floor"})) {
    read_policy_time(reader, *remove, join(path, "remove"), "after", out.remove.after);
    reader.whole(*remove, join(path, "remove"), "at_most", out.remove.at_most);
    reader.whole(*remove, join(path, "remove"), "floor", out.remove.floor);
  }
  if (node.find("eject") != nullptr) {
    out.eject = false;
    reader.flag(node, path, "eject", *out.eject);
  }
  return out;
}

std::optional<Problem> check_discovery(const DiscoverySpec& spec, const std::string& path) {
  const auto too_many = [&](const char* name, std::size_t count) -> std::optional<Problem> {
    if (count <= kMaxDiscoveryRules) return std::nullopt;
    return Problem{join(path, name),
                   fmt::format("{} entries are more than the {} that may be", count, kMaxDiscoveryRules)};
  };
  if (auto found = too_many("match.ids", spec.match.ids.size())) return found;
  if (auto found = too_many("match.addresses", spec.match.addresses.size())) return found;
  if (auto found = too_many("assign", spec.assign.size())) return found;
  for (std::size_t i = 0; i < spec.match.ids.size(); ++i) {
    if (spec.match.ids[i].empty()) return Problem{at(join(path, "match.ids"), i), "is empty: '*' fits all"};
  }
  for (std::size_t i = 0; i < spec.match.addresses.size(); ++i) {
    const std::string wrong = check_address_range(spec.match.addresses[i]);
    if (!wrong.empty()) return Problem{at(join(path, "match.addresses"), i), wrong};
  }
  for (std::size_t i = 0; i < spec.assign.size(); ++i) {
    const DiscoveryAssign& rule = spec.assign[i];
    const std::string here = at(join(path, "assign"), i);
    if (rule.weight && (!(*rule.weight > 0) || *rule.weight > kMaxWeight)) {
      return Problem{
          join(here, "weight"),
          fmt::format("{} is not a weight: give a number above 0 and at most {}", *rule.weight, kMaxWeight)};
    }
    if (rule.label.empty() != rule.as.empty()) return Problem{here, "label and as belong together"};
    if (!rule.as.empty() && rule.as != "zone" && rule.as != "host") {
      return Problem{join(here, "as"),
                     fmt::format("{} is neither zone nor host: nothing else is taken from what an "
                                 "instance says of itself",
                                 shown(rule.as))};
    }
    if (!rule.weight && rule.zone.empty() && rule.host.empty() && rule.label.empty()) {
      return Problem{here, "assigns nothing: give weight, zone, host, or label and as"};
    }
  }
  if (spec.remove.at_most == 0) {
    return Problem{join(path, "remove.at_most"), "0 would never remove anybody: say 'after: 0' for that"};
  }
  if (spec.remove.floor == 0) return Problem{join(path, "remove.floor"), "a cluster has at least 1 member"};
  return std::nullopt;
}

Result<std::optional<DiscoverySpec>> discovery_of_spec(std::string_view text, std::string_view place) {
  const Result<Node> root = parse_document(text, place);
  if (!root) return std::unexpected(root.error());
  const Node* node = root->find("discovery");
  if (node == nullptr || node->kind == Node::Kind::null) return std::nullopt;
  Reader reader(place);
  DiscoverySpec spec = read_discovery(reader, *node, "discovery");
  if (reader.failed()) return std::unexpected(reader.error());
  if (const auto problem = check_discovery(spec, "discovery")) {
    return fail(ErrorKind::invalid,
                describe(place, line_of(*root, problem->path), problem->path, problem->message));
  }
  return spec;
}

Result<DiscoverySpec> parse_discovery(std::string_view json, std::string_view place) {
  const Result<Node> root = parse_json_document(json, place);
  if (!root) return std::unexpected(root.error());
  Reader reader(place);
  DiscoverySpec spec = read_discovery(reader, *root, "");
  if (reader.failed()) return std::unexpected(reader.error());
  if (const auto problem = check_discovery(spec, "")) {
    return fail(ErrorKind::invalid, describe(place, 0, problem->path, problem->message));
  }
  return spec;
}

}  // namespace ringshift::topology
