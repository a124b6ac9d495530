// The topology document: which members a cluster has, how keys are placed on them, and how far a resize
// has come. The operator writes a Spec; the controller turns it into a Topology, which routers obey.
//
// Both are plain values. parse_* validates everything and names the offending value, its place and the fix;
// to_json is canonical (sorted keys, no white space), so equal topologies have equal digests.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::topology {

inline constexpr std::uint32_t kSliceCount = 1024;  // Equal parts of the keyspace; see slice_of().

enum class Protocol { redis, memcached };
enum class Consistency {
  strict,  // Per-key linearizable; a resize moves every key.
  cache,   // As strict, but a stuck router is not waited for.
  none,    // Pure routing: nothing to move.
};

struct Member {
  std::string id;       // Stable, never reused.
  std::string address;  // host:port, [v6]:port or unix:/path
  double weight = 1.0;
  std::string zone, host, label;  // Optional, "" when not given.
  bool operator==(const Member&) const = default;
};

struct SlotRange {
  std::uint16_t first = 0, last = 0;  // Both included, 0..16383.
  std::string member;
  bool operator==(const SlotRange&) const = default;
};

struct Placement {
  std::string algorithm = "ring";     // ring | modulo | slots | jump | rendezvous | maglev | multi-probe |
                                      // memento | partitions | tokens | bounded-ring; or another program's.
  std::string hash = "xxh3";          // xxh3 | murmur3 | fnv1a-64 (finalised); crc16 for slots.
  std::uint32_t points = 256;         // ring, bounded-ring: points per unit of weight. multi-probe: 1.
  std::string hash_tag;               // "" or an open and a close character, such as "{}".
  std::vector<SlotRange> slots;       // slots: the table; empty means ranges by weight in member order.
  std::uint32_t table_size = 65'537;  // maglev: a prime.
  std::uint32_t probes = 21;          // multi-probe.
  double epsilon = 0.25;              // bounded-ring: how much above its fair share a member may be loaded.
  std::uint32_t partitions = 1024;    // partitions: how many equal parts.
  std::vector<SlotRange> table;       // partitions: who has which; empty means dealt by weight.
  std::vector<std::string> buckets;   // memento: ids by bucket, removed ones too; empty means the members.
  std::vector<std::string> removed;   // memento: the removed ids in the order of their removal.
  std::map<std::string, std::vector<std::uint64_t>> tokens;  // tokens: member id -> its tokens.
  // Another program's placement (twemproxy, libmemcached, nginx, ...): its other options by its own names,
  // only those that were given. Its `hash` is "" where it has no choice of one.
  std::map<std::string, std::string, std::less<>> options;
  bool operator==(const Placement&) const = default;
};

struct Limits {
  std::uint64_t move_keys_per_second = 5000;
  std::uint64_t move_bytes_per_second = 50ULL << 20;
  std::uint32_t move_batch_keys = 10;
  std::uint32_t move_batches_in_flight = 3;        // Of one source.
  std::uint32_t move_batches_in_all = 64;          // Over all sources.
  std::uint64_t move_memory_bytes = 256ULL << 20;  // Payload that the mover holds.
  std::uint32_t move_latency_ms = 10;          // Of a source, above which it is moved from slower; 0: never.
  std::uint64_t origin_misses_per_second = 0;  // Of all routers, above which all is slower; 0: never.
  std::uint64_t big_key_bytes = 32ULL << 20;   // Above it a key waits for the operator's word.
  bool operator==(const Limits&) const = default;
};

// What the operator asks for.
struct Spec {
  std::string cluster;
  Protocol protocol = Protocol::redis;
  Placement placement;
  Consistency consistency = Consistency::strict;
  std::vector<Member> members;
  std::vector<std::string> retired;  // Ids that may never come back.
  Limits limits;
  std::uint32_t databases = 1;  // SELECT 0 .. databases - 1. More than one, and no resize is possible.
  bool operator==(const Spec&) const = default;
};

// A set of slices, kept as sorted, disjoint, non-adjacent half-open ranges.
struct SliceRange {
  std::uint16_t begin = 0, end = 0;
  bool operator==(const SliceRange&) const = default;
};
using SliceSet = std::vector<SliceRange>;
[[nodiscard]] bool contains(const SliceSet& set, std::uint32_t slice) noexcept;
[[nodiscard]] SliceSet unite(const SliceSet& a, const SliceSet& b);
[[nodiscard]] std::uint32_t count(const SliceSet& set) noexcept;

enum class Phase { prep, hold, dual };
enum class ReadOrder { old_first, new_first };

// The barrier that routers last passed. A member's `rs:stamp` holds "epoch.step.state.run_id" with these
// numbers; epoch 0 means that no resize ever ran and no stamp is expected. Both only grow, for ever.
struct Fence {
  std::uint64_t epoch = 0;                     // One for each direction of each resize.
  std::uint64_t step = 0;                      // One for each HOLD, across all epochs.
  std::map<std::string, std::string> run_ids;  // Member id -> the run id its stamp is bound to.
  bool operator==(const Fence&) const = default;
};

// A resize under way, from the topology's own members and placement (A) to `placement`, `members` (B).
struct Resize {
  std::string id;
  Placement placement;
  std::vector<Member> members;
  bool rollback = false;  // The active slices go from B back to A.
  Phase phase = Phase::prep;
  ReadOrder read_order = ReadOrder::old_first;
  SliceSet done;    // Slices that belong to B.
  SliceSet active;  // Slices in `phase`; disjoint from `done`. Empty in PREP.
  // Ids of members that do not come back, sorted: nothing is asked of them. A key that would come from one of
  // them is the destination's as soon as its slice is past HOLD, and is absent there until somebody writes
  // it.
  std::vector<std::string> lost;
  bool operator==(const Resize&) const = default;
};

// What routers obey.
struct Topology {
  Spec spec;
  std::map<std::string, std::uint32_t> factors;  // Member id -> 0..999; absent means 1000. Not with strict.
  Fence fence;
  std::optional<Resize> resize;
  bool operator==(const Topology&) const = default;
};

// (epoch of the registry, mod_revision of the topology key). Never a clock.
struct Version {
  std::uint64_t epoch = 0;
  std::uint64_t revision = 0;
  auto operator<=>(const Version&) const = default;
};
[[nodiscard]] std::string to_string(const Version& version);  // "epoch.revision"

// A spec from YAML (JSON is YAML). `place` names the source in errors, for example a file name.
[[nodiscard]] Result<Spec> parse_spec(std::string_view text, std::string_view place);
[[nodiscard]] std::string to_json(const Spec& spec);

// What an operator should know although the spec is valid (for example a skewed weight).
[[nodiscard]] std::vector<std::string> warnings(const Spec& spec);

[[nodiscard]] Result<Topology> parse_topology(std::string_view json, std::string_view place);
[[nodiscard]] std::string to_json(const Topology& topology);

// SHA-256 of to_json(topology), in hex.
[[nodiscard]] std::string digest(const Topology& topology);

// What an operator should know of a change although it is allowed: a placement by order whose members were
// renumbered, a table that was not carried over.
[[nodiscard]] std::vector<std::string> change_warnings(const Spec& current, const Spec& next);

// Whether `next` may follow `current`: no retired id returns, not more than half of the members vanish
// unless `force`. Gives the reason when not.
[[nodiscard]] Status check_succession(const Spec& current, const Spec& next, bool force);

}  // namespace ringshift::topology
