#include "doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "doctor/cluster_checks.h"
#include "doctor/member_checks.h"
#include "resize/lost.h"
#include "ringshift/snapshot.h"

namespace ringshift::doctor {
namespace {

constexpr std::chrono::milliseconds kPoll{200};

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// With bounded-ring a key's place depends on the load of the moment.
bool place_is_fixed(const topology::Spec& spec) { return spec.placement.algorithm != "bounded-ring"; }

std::vector<MemberFacts> ask_members(const topology::Topology& topology, const Options& options) {
  const auto snapshot = topology::Snapshot::compile(topology, {1, 1});
  const std::vector<topology::Member> members =
      topology.resize ? resize::living_members(topology) : topology.spec.members;
  const bool sample =
      snapshot && place_is_fixed(topology.spec) && topology.spec.protocol == topology::Protocol::redis;
  return examine_all(members, sample ? snapshot->get() : nullptr, options.member_access);
}

std::vector<ProxyFacts> ask_proxies(const Options& options) {
  std::vector<ProxyFacts> facts;
  for (const std::string& address : options.proxies) {
    facts.push_back(look_at_proxy(address, options.proxy_access));
  }
  return facts;
}

// Nothing is left that more time could show.
bool all_have_told(const Looks& looks) {
  const RegistryLook& now = looks.second;
  if (!now.unreachable.empty() || !now.controller || now.request || !now.topology) return false;
  if (now.discovery && !now.membership) return false;
  if (!looks.first.topology || looks.first.topology->mod_revision != now.topology->mod_revision) return false;
  return std::ranges::all_of(now.routers, [&](const coord::KeyValue& router) {
    const auto before = std::ranges::find(looks.first.routers, router.key, &coord::KeyValue::key);
    return before != looks.first.routers.end() && before->mod_revision != router.mod_revision;
  });
}

bool speaks_redis(const topology::Spec& spec, Findings& out) {
  if (spec.protocol == topology::Protocol::redis) return true;
  out.warning("protocol", "", "the members speak memcached's, which the doctor does not",
              "look at them by hand");
  return false;
}

}  // namespace

std::vector<Finding> examine_cluster(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                     const std::vector<std::string>& endpoints, const Options& options) {
  Findings registry("registry"), topology_found("topology"), resize_found("resize"), membership("membership"),
      routers("routers");
  std::vector<EndpointFacts> urls;
  for (const std::string& url : endpoints) urls.push_back(look_at_endpoint(url, options.registry_tls));
  check_endpoints(urls, registry);

  Looks looks;
  looks.first = look_at_registry(coordinator, keys);
  const auto first_at = std::chrono::steady_clock::now();
  if (!looks.first.unreachable.empty()) {
    looks.second = looks.first;
    check_registry(looks, registry);
    return std::move(registry).take();
  }
  // The members are asked while the time between the looks passes.
  std::optional<topology::Topology> topology;
  if (looks.first.topology) {
    auto parsed = topology::parse_topology(looks.first.topology->value, looks.first.topology->key);
    if (parsed) topology = std::move(*parsed);
  }
  std::vector<MemberFacts> members;
  if (topology && topology->spec.protocol == topology::Protocol::redis)
    members = ask_members(*topology, options);
  do {
    std::this_thread::sleep_for(kPoll);
    looks.second = look_at_registry(coordinator, keys);
    looks.between =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - first_at);
  } while (looks.between < kBetweenLooks && (looks.first.topology || looks.first.spec) &&
           (!topology || topology->resize || !all_have_told(looks)));

  check_registry(looks, registry);
  const std::optional<topology::Topology> now = check_topology(looks.second, topology_found);
  if (now) {
    check_resize(looks, *now, resize_found);
    check_membership(looks.second, *now, membership);
    check_routers(looks, *now, routers);
    check_proxies(ask_proxies(options), *now,
                  fmt::format("version 1.{}, digest ", looks.second.topology->mod_revision), routers);
    static_cast<void>(speaks_redis(now->spec, topology_found));
  }
  std::vector<Finding> all = std::move(registry).take();
  append(all, std::move(topology_found).take());
  append(all, std::move(resize_found).take());
  append(all, std::move(membership).take());
  append(all, std::move(routers).take());
  // By the topology that they were asked under: keys move meanwhile.
  if (topology) append(all, check_members(members, *topology, /*from_registry=*/true));
  return all;
}

std::vector<Finding> examine_static(const topology::Spec& spec, const Options& options) {
  topology::Topology topology;
  topology.spec = spec;
  Findings found("topology"), routers("routers");
  for (const std::string& warning : topology::warnings(spec)) {
    found.warning("spec", "", warning, "change the spec, or leave it if that is meant");
  }
  if (found.all().empty()) {
    found.ok("spec", "", fmt::format("{} members, {}", spec.members.size(), spec.placement.algorithm));
  }
  const bool redis = speaks_redis(spec, found);
  check_proxies(ask_proxies(options), topology, "", routers);
  std::vector<Finding> all = std::move(found).take();
  append(all, std::move(routers).take());
  if (redis) append(all, check_members(ask_members(topology, options), topology, /*from_registry=*/false));
  return all;
}

}  // namespace ringshift::doctor
