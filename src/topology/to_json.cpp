// The canonical form: JSON with sorted keys and no white space, every field written, so that equal values
// give equal bytes and a digest says whether two routers obey the same document.
#include <nlohmann/json.hpp>

#include "base/encoding.h"
#include "hashing/sha256.h"
#include "placement/peers/catalog.h"
#include "ringshift/topology.h"

namespace ringshift::topology {
namespace {

using nlohmann::json;  // Its objects are std::map: sorted by key.

// A peer's: only what it has and what was given. A number and a flag are written as such.
json of_peer(const Placement& placement) {
  json out = {{"algorithm", placement.algorithm}};
  if (!placement.hash.empty()) out["hash"] = placement.hash;
  if (!placement.hash_tag.empty()) out["hash_tag"] = placement.hash_tag;
  for (const auto& [name, value] : placement.options) {
    if (const auto number = base::parse_u64(value); number && std::to_string(*number) == value) {
      out[name] = *number;
    } else if (value == "true" || value == "false") {
      out[name] = value == "true";
    } else {
      out[name] = value;
    }
  }
  return out;
}

json of(const std::vector<SlotRange>& ranges) {
  json out = json::array();
  for (const SlotRange& range : ranges) {
    out.push_back({{"first", range.first}, {"last", range.last}, {"member", range.member}});
  }
  return out;
}

// The options that only some algorithms have are written when they differ from their defaults.
void add_options(const Placement& placement, json& out) {
  const Placement usual;
  if (placement.table_size != usual.table_size) out["table_size"] = placement.table_size;
  if (placement.probes != usual.probes) out["probes"] = placement.probes;
  if (placement.epsilon != usual.epsilon) out["epsilon"] = placement.epsilon;
  if (placement.partitions != usual.partitions) out["partitions"] = placement.partitions;
  if (!placement.table.empty()) out["table"] = of(placement.table);
  if (!placement.buckets.empty()) out["buckets"] = placement.buckets;
  if (!placement.removed.empty()) out["removed"] = placement.removed;
  if (!placement.tokens.empty()) out["tokens"] = placement.tokens;
}

json of(const Placement& placement) {
  if (placement::peers::find_peer(placement.algorithm) != nullptr) return of_peer(placement);
  json out = {{"algorithm", placement.algorithm},
              {"hash", placement.hash},
              {"points", placement.points},
              {"hash_tag", placement.hash_tag},
              {"slots", of(placement.slots)}};
  add_options(placement, out);
  return out;
}

json of(const std::vector<Member>& members) {
  json out = json::array();
  for (const Member& member : members) {
    json one = {{"id", member.id}, {"address", member.address}, {"weight", member.weight}};
    if (!member.zone.empty()) one["zone"] = member.zone;
    if (!member.host.empty()) one["host"] = member.host;
    if (!member.label.empty()) one["label"] = member.label;
    out.push_back(std::move(one));
  }
  return out;
}

const char* name(Consistency consistency) {
  switch (consistency) {
    case Consistency::strict:
      return "strict";
    case Consistency::cache:
      return "cache";
    case Consistency::none:
      return "none";
  }
  return "?";
}

const char* name(Phase phase) {
  switch (phase) {
    case Phase::prep:
      return "prep";
    case Phase::hold:
      return "hold";
    case Phase::dual:
      return "dual";
  }
  return "?";
}

// What came later is left out where it is as by default: older programs refuse names that they do not know,
// and digests stay as they were.
json of(const Limits& limits) {
  json out = {{"move_keys_per_second", limits.move_keys_per_second},
              {"move_bytes_per_second", limits.move_bytes_per_second},
              {"move_batch_keys", limits.move_batch_keys}};
  const Limits usual;
  const auto add = [&](const char* name, auto value, auto fallback) {
    if (value != fallback) out[name] = value;
  };
  add("move_batches_in_flight", limits.move_batches_in_flight, usual.move_batches_in_flight);
  add("move_batches_in_all", limits.move_batches_in_all, usual.move_batches_in_all);
  add("move_memory_bytes", limits.move_memory_bytes, usual.move_memory_bytes);
  add("move_latency_ms", limits.move_latency_ms, usual.move_latency_ms);
  add("origin_misses_per_second", limits.origin_misses_per_second, usual.origin_misses_per_second);
  add("big_key_bytes", limits.big_key_bytes, usual.big_key_bytes);
  return out;
}

json of(const Spec& spec) {
  json out = {{"cluster", spec.cluster},
              {"protocol", spec.protocol == Protocol::redis ? "redis" : "memcached"},
              {"placement", of(spec.placement)},
              {"consistency", name(spec.consistency)},
              {"members", of(spec.members)},
              {"retired", spec.retired},
              {"limits", of(spec.limits)}};
  // One is left out, so that the digests of specs that do not name it stay as they were.
  if (spec.databases != 1) out["databases"] = spec.databases;
  return out;
}

json of(const SliceSet& set) {
  json out = json::array();
  for (const SliceRange& range : set) out.push_back(json::array({range.begin, range.end}));
  return out;
}

json of(const Resize& resize) {
  json out = {{"id", resize.id},
              {"placement", of(resize.placement)},
              {"members", of(resize.members)},
              {"rollback", resize.rollback},
              {"phase", name(resize.phase)},
              {"read_order", resize.read_order == ReadOrder::old_first ? "old_first" : "new_first"},
              {"done", of(resize.done)},
              {"active", of(resize.active)}};
  // Left out where nobody is lost: routers from before the field obey all other resizes, and refuse this one.
  if (!resize.lost.empty()) out["lost"] = resize.lost;
  return out;
}

// A value made by a program may hold any bytes: broken UTF-8 is replaced rather than thrown about.
std::string text(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

std::string to_json(const Spec& spec) { return text(of(spec)); }

std::string to_json(const Topology& topology) {
  json out = {
      {"spec", of(topology.spec)},
      {"factors", topology.factors},
      {"fence",
       {{"epoch", topology.fence.epoch}, {"step", topology.fence.step}, {"run_ids", topology.fence.run_ids}}},
      {"resize", nullptr}};
  if (topology.resize) out["resize"] = of(*topology.resize);
  return text(out);
}

std::string digest(const Topology& topology) { return hashing::sha256_hex(to_json(topology)); }

std::string to_string(const Version& version) {
  return std::to_string(version.epoch) + "." + std::to_string(version.revision);
}

}  // namespace ringshift::topology
