// Every placement, ours and other programs', in its usual forms, with what it promises: docs/placements.md
// shows the same rows to people, and placement_table_test.cpp keeps the two alike.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/encoding.h"
#include "hashing/hash64.h"
#include "ringshift/carry_over.h"
#include "ringshift/snapshot.h"
#include "ringshift/topology.h"

namespace ringshift::topology::contract {

struct PlacementRow {
  const char* name;
  const char* yaml;       // Of `placement:`.
  bool any_order = true;  // The order of the members does not matter.
  bool weights = true;    // Shares follow weights.
  bool minimal = true;    // Among equal members a change moves keys only to or from the member that changed.
  bool weighted = true;   // Also among members of unequal weight.
  bool removes_anywhere = true;  // Minimal also when the member removed is not the last.
  bool exact_diff = true;        // diff() between two member lists is exact.
  double balance = 0.25;         // Relative deviation of a share that its few points make.
  double least_heir = 0.35;      // A removed member's keys: the least that a survivor gets, of an even part.
};

// Rounding to digests of four points takes weights off by up to one digest in 40.
inline const std::vector<PlacementRow>& peer_rows() {
  static const std::vector<PlacementRow> rows = {
      {.name = "twemproxy ketama",
       .yaml = "algorithm: twemproxy, distribution: ketama, hash: fnv1a_64",
       .weighted = false},
      {.name = "twemproxy ketama md5",
       .yaml = "algorithm: twemproxy, distribution: ketama, hash: md5, hash_tag: '{}'",
       .weighted = false},
      {.name = "twemproxy modula",
       .yaml = "algorithm: twemproxy, distribution: modula, hash: murmur",
       .minimal = false,
       .weighted = false,
       .balance = 0.01},
      {.name = "libmemcached modula",
       .yaml = "algorithm: libmemcached, distribution: modula",
       .any_order = false,
       .weights = false,
       .minimal = false,
       .weighted = false,
       .balance = 0.01},
      {.name = "libmemcached ketama",
       .yaml = "algorithm: libmemcached, distribution: ketama, hash: murmur",
       .weighted = false,
       .balance = 0.3},
      {.name = "libmemcached ketama_weighted",
       .yaml = "algorithm: libmemcached, distribution: ketama_weighted",
       .weighted = false},
      {.name = "libmemcached spy",
       .yaml = "algorithm: libmemcached, distribution: spy, hash: md5",
       .weighted = false,
       .balance = 0.4},
      {.name = "libketama", .yaml = "algorithm: libketama", .weighted = false},
      {.name = "nginx hash",
       .yaml = "algorithm: nginx",
       .any_order = false,
       .minimal = false,
       .weighted = false,
       .balance = 0.01},
      {.name = "nginx hash consistent", .yaml = "algorithm: nginx, consistent: true"},
      {.name = "haproxy consistent",
       .yaml = "algorithm: haproxy, hash: sdbm, avalanche: true",
       .any_order = false,
       .removes_anywhere = false,
       .balance = 0.6,
       .least_heir = 0.01},
      {.name = "haproxy map-based",
       .yaml = "algorithm: haproxy, method: map-based, hash: djb2, avalanche: true",
       .any_order = false,
       .minimal = false,
       .weighted = false,
       .removes_anywhere = false,
       .balance = 0.01},
      {.name = "spymemcached ARRAY_MOD",
       .yaml = "algorithm: spymemcached, hash: CRC_HASH",
       .any_order = false,
       .weights = false,
       .minimal = false,
       .weighted = false,
       .balance = 0.01},
      {.name = "spymemcached KETAMA",
       .yaml = "algorithm: spymemcached, locator: KETAMA, hash: KETAMA_HASH",

       .weighted = false},
      {.name = "dalli", .yaml = "algorithm: dalli", .weighted = false},
      {.name = "hashring", .yaml = "algorithm: hashring", .weighted = false},
      {.name = "cache-memcached-fast 0",
       .yaml = "algorithm: cache-memcached-fast",
       .any_order = false,
       .minimal = false,
       .weighted = false,
       .removes_anywhere = false,
       .balance = 0.01},
      {.name = "cache-memcached-fast 150", .yaml = "algorithm: cache-memcached-fast, ketama_points: 150"},
      {.name = "envoy-ring",
       .yaml = "algorithm: envoy-ring, minimum_ring_size: 1024",
       .minimal = false,
       .weighted = false,
       .balance = 0.3},
      {.name = "envoy-maglev",
       .yaml = "algorithm: envoy-maglev",
       .minimal = false,
       .weighted = false,
       .balance = 0.01},
      {.name = "article-go", .yaml = "algorithm: article-go, hash: md5", .weights = false},
      {.name = "article-php", .yaml = "algorithm: article-php, hash: md5", .weights = false},
      {.name = "article-js", .yaml = "algorithm: article-js", .weights = false},
  };
  return rows;
}

inline const std::vector<PlacementRow>& own_rows() {
  static const std::vector<PlacementRow> rows = {
      {.name = "ring", .yaml = "algorithm: ring"},
      {.name = "bounded-ring", .yaml = "algorithm: bounded-ring"},
      {.name = "multi-probe", .yaml = "algorithm: multi-probe, points: 1, probes: 21"},
      {.name = "rendezvous", .yaml = "algorithm: rendezvous"},
      {.name = "jump", .yaml = "algorithm: jump", .weights = false},
      {.name = "memento", .yaml = "algorithm: memento", .weights = false},
      {.name = "partitions", .yaml = "algorithm: partitions"},
      {.name = "slots", .yaml = "algorithm: slots, hash: crc16"},
      {.name = "maglev", .yaml = "algorithm: maglev"},
      {.name = "modulo", .yaml = "algorithm: modulo"},
  };
  return rows;
}

inline Member numbered_member(std::size_t number, double weight = 1) {
  const std::string name = std::to_string(number);
  return {"cache-" + name, "10.0.1." + name + ":11211", weight, "", "", ""};
}

// Members cache-1, cache-2, ... of the given weights.
inline Spec spec_of(const PlacementRow& row, const std::vector<double>& weights) {
  std::string text = std::string("cluster: c\nconsistency: none\nplacement: {") + row.yaml +
                     "}\nmembers: [{id: x, address: 'h:1'}]\n";
  auto spec = parse_spec(text, row.name);
  if (!spec) ADD_FAILURE() << spec.error().message;
  spec->members.clear();
  for (const double weight : weights)
    spec->members.push_back(numbered_member(spec->members.size() + 1, weight));
  return *spec;
}
inline Spec spec_of(const PlacementRow& row, std::size_t members) {
  return spec_of(row, std::vector<double>(members, 1.0));
}

inline std::shared_ptr<const Snapshot> compiled(Spec spec) {
  Topology topology;
  topology.spec = std::move(spec);
  auto snapshot = Snapshot::compile(std::move(topology), {});
  if (!snapshot) ADD_FAILURE() << snapshot.error().message;
  return snapshot ? *snapshot : nullptr;
}

// The state that a resize would carry over.
inline Spec carried_over(const Spec& current, Spec next) {
  auto spec = carry_over(current, std::move(next));
  if (!spec) ADD_FAILURE() << spec.error().message;
  return spec ? *spec : current;
}

// 16 hex digits: spread evenly by hashes that scatter short or similar keys badly.
inline const std::vector<std::string>& scattered_keys() {
  static const std::vector<std::string> all = [] {
    constexpr std::size_t kKeys = 1'000'000;
    std::vector<std::string> out;
    out.reserve(kKeys);
    for (std::size_t i = 0; i < kKeys; ++i) {
      const std::uint64_t bits = hashing::mix(i ^ 0x5eed);
      std::string bytes;
      for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(bits >> shift));
      out.push_back(base::to_hex(bytes));
    }
    return out;
  }();
  return all;
}

}  // namespace ringshift::topology::contract
