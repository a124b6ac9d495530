// Random members, specs and topologies, always valid ones.
#pragma once
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "ringshift/topology.h"

namespace ringshift::property {

using topology::Member;
using topology::Placement;
using topology::Resize;
using topology::SliceSet;
using topology::Spec;
using topology::Topology;

// `count` members with unique ids, each at an address that follows from its id.
inline std::vector<Member> members(int count, bool whole_weights) {
  std::vector<Member> out;
  int number = 0;
  for (int i = 0; i < count; ++i) {
    number += *rc::gen::inRange(1, 5000);
    Member member;
    member.id = "m" + std::to_string(number);
    member.address = "10.0.0.1:" + std::to_string(number + 1);
    member.weight = whole_weights ? *rc::gen::inRange(1, 5) : *rc::gen::inRange(1, 40) / 8.0;
    if (*rc::gen::arbitrary<bool>()) member.zone = "z" + std::to_string(number % 3);
    out.push_back(std::move(member));
  }
  return out;
}

inline Spec spec() {
  Spec out;
  out.cluster = "c";
  out.placement.algorithm = *rc::gen::element<std::string>("ring", "modulo", "slots");
  out.placement.hash = out.placement.algorithm == "slots" ? "crc16" : "xxh3";
  out.placement.points = *rc::gen::inRange<std::uint32_t>(8, 300);
  out.placement.hash_tag = *rc::gen::element<std::string>("", "{}", "[]", "$$");
  out.consistency = *rc::gen::element(topology::Consistency::strict, topology::Consistency::cache,
                                      topology::Consistency::none);
  out.members = members(*rc::gen::inRange(1, 12), out.placement.algorithm == "modulo");
  out.retired = {"gone-1", "gone-2"};
  out.limits.move_bytes_per_second = *rc::gen::inRange<std::uint64_t>(1, 1ULL << 40);
  return out;
}

// A spec of any placement, ours or another program's, whose options fit together.
inline Spec any_placement(int least_members = 1) {
  Spec out = spec();
  out.consistency = topology::Consistency::none;
  Placement placement;
  placement.hash_tag = out.placement.hash_tag;
  placement.algorithm = *rc::gen::element<std::string>(
      "ring", "modulo", "slots", "jump", "rendezvous", "maglev", "multi-probe", "memento", "partitions",
      "tokens", "bounded-ring", "twemproxy", "libmemcached", "libketama", "nginx", "haproxy", "spymemcached",
      "dalli", "hashring", "cache-memcached-fast", "envoy-ring", "envoy-maglev", "article-go", "article-php",
      "article-js");
  const std::string& name = placement.algorithm;
  const bool equal = name == "jump" || name == "memento";
  out.members = members(*rc::gen::inRange(least_members, 9), /*whole_weights=*/true);
  for (Member& member : out.members) {
    if (equal) member.weight = 1;
    if (*rc::gen::arbitrary<bool>()) member.host = "h" + std::to_string(*rc::gen::inRange(0, 4));
  }
  placement.hash = *rc::gen::element<std::string>("xxh3", "murmur3", "fnv1a-64");
  if (name == "slots") placement.hash = "crc16";
  placement.points = name == "multi-probe" ? *rc::gen::inRange<std::uint32_t>(1, 4) : 64;
  placement.table_size = *rc::gen::element<std::uint32_t>(251, 1021, 65'537);
  placement.partitions = *rc::gen::inRange<std::uint32_t>(64, 300);
  if (name == "tokens") {
    std::uint64_t token = 0;
    for (const Member& member : out.members)
      for (int i = 0; i < 4; ++i) placement.tokens[member.id].push_back(++token * 0x9e3779b97f4a7c15);
  }
  const Placement plain;
  if (name != "ring" && name != "bounded-ring" && name != "multi-probe") placement.points = plain.points;
  if (name != "maglev") placement.table_size = plain.table_size;
  if (name != "partitions") placement.partitions = plain.partitions;
  auto& options = placement.options;
  const auto peer = [&](std::string hash, bool tags = false) {
    placement.hash = std::move(hash);
    if (!tags) placement.hash_tag.clear();
  };
  if (name == "twemproxy") {
    peer(*rc::gen::element<std::string>("md5", "fnv1a_64", "crc32", "hsieh", "jenkins"), true);
    options["distribution"] = *rc::gen::element<std::string>("ketama", "modula");
  } else if (name == "libmemcached") {
    peer(*rc::gen::element<std::string>("default", "murmur", "crc"));
    options["distribution"] = *rc::gen::element<std::string>("modula", "ketama", "ketama_weighted", "spy");
  } else if (name == "nginx") {
    peer("");
    options["consistent"] = *rc::gen::element<std::string>("true", "false");
  } else if (name == "haproxy") {
    peer(*rc::gen::element<std::string>("sdbm", "djb2", "wt6", "crc32"));
    options["avalanche"] = "true";
    options["method"] = *rc::gen::element<std::string>("consistent", "map-based");
  } else if (name == "spymemcached") {
    peer("KETAMA_HASH");
    options["locator"] = *rc::gen::element<std::string>("ARRAY_MOD", "KETAMA");
  } else if (name == "hashring") {
    peer(*rc::gen::element<std::string>("md5", "sha1"));
    options["vnodes"] = std::to_string(*rc::gen::inRange(1, 60));
  } else if (name == "cache-memcached-fast") {
    peer("");
    options["ketama_points"] = *rc::gen::element<std::string>("0", "150");
  } else if (name == "article-go") {
    peer("md5");
  } else if (name == "article-php") {
    peer("crc32");
  } else if (name == "libketama" || name == "dalli" || name.starts_with("envoy") || name == "article-js") {
    peer("");
  }
  out.placement = std::move(placement);
  return out;
}

inline SliceSet slices() {
  SliceSet out;
  for (const int begin : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1023))) {
    const int end = *rc::gen::inRange(begin + 1, 1025);
    out = topology::unite(out, {{static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(end)}});
  }
  return out;
}

inline Topology topology_document() {
  Topology out;
  out.spec = spec();
  if (out.spec.consistency != topology::Consistency::strict) {
    for (const Member& member : out.spec.members) {
      if (*rc::gen::arbitrary<bool>()) out.factors[member.id] = *rc::gen::inRange<std::uint32_t>(0, 1000);
    }
  }
  out.fence = {*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>(), {{"m1", "00ff"}}};
  if (*rc::gen::arbitrary<bool>()) return out;
  Resize resize;
  resize.id = "r-1";
  resize.placement = out.spec.placement;
  resize.members = out.spec.members;
  resize.members.push_back({"new", "10.0.0.2:1", 1.0, "", "", ""});
  resize.rollback = *rc::gen::arbitrary<bool>();
  resize.phase = *rc::gen::element(topology::Phase::prep, topology::Phase::hold, topology::Phase::dual);
  resize.done = slices();
  // What is left over from `done`, or nothing.
  if (*rc::gen::arbitrary<bool>()) {
    std::uint16_t begin = 0;
    for (const auto& range : resize.done) {
      if (range.begin > begin) resize.active.push_back({begin, range.begin});
      begin = range.end;
    }
  }
  out.resize = std::move(resize);
  return out;
}

}  // namespace ringshift::property
