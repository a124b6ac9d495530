// What a look-up and a build cost. Targets (DESIGN section 8): hash and owner of a 16-byte key <= 6 ns at 100
// members x 256 points and <= 10 ns at 1000; build of 1000 x 256 <= 10 ms, one member added <= 3 ms.
//
// Keys are drawn from 64 Ki different ones, in an order that no branch predictor learns. On a machine that
// does other work too, take the least of many repetitions:
//   lookup_bench --benchmark_min_time=0.05 --benchmark_repetitions=20
#include <benchmark/benchmark.h>

#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#ifdef RINGSHIFT_HAVE_LIBMEMCACHED
#include <libmemcached/memcached.h>
#endif

#include "hashing/xxh3.h"
#include "placement/placement.h"
#include "ringshift/snapshot.h"

namespace ringshift {
namespace {

constexpr std::uint32_t kPoints = 256;
constexpr std::size_t kKeys = 1U << 16;
constexpr std::size_t kKeyBytes = 16;

const std::string& keys() {
  static const std::string all = [] {
    std::string out;
    for (std::size_t i = 0; i < kKeys; ++i) {
      char key[kKeyBytes + 1];
      std::snprintf(key, sizeof key, "%016llx", static_cast<unsigned long long>(hashing::mix(i)));
      out.append(key, kKeyBytes);
    }
    return out;
  }();
  return all;
}

std::string_view key(std::size_t i) {
  return std::string_view(keys()).substr((i & (kKeys - 1)) * kKeyBytes, kKeyBytes);
}

topology::Spec spec(std::int64_t members) {
  topology::Spec out;
  out.cluster = "bench";
  out.placement.points = kPoints;
  for (std::int64_t i = 0; i < members; ++i) {
    const std::string number = std::to_string(i);
    out.members.push_back({"cache-" + number, "host-" + number + ":6379", 1.0, "", "", ""});
  }
  return out;
}

std::vector<placement::Member> inputs(const topology::Spec& from) {
  std::vector<placement::Member> out;
  for (const auto& member : from.members)
    out.push_back({member.id, 1.0, static_cast<std::uint32_t>(out.size())});
  return out;
}

void hash_only(benchmark::State& state) {
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(hashing::xxh3(key(i++)));
}
BENCHMARK(hash_only);

void hash_and_owner(benchmark::State& state) {
  const topology::Spec members = spec(state.range(0));
  const placement::Placement placement({}, placement::Ring(inputs(members), kPoints));
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(placement.owner(key(i++)));
}
BENCHMARK(hash_and_owner)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000);

// The hashes of a batch, then its owners, with prefetch. Per key.
void ring_batch(benchmark::State& state) {
  constexpr std::size_t kBatch = 100;
  const topology::Spec members = spec(state.range(0));
  const placement::Placement placement({}, placement::Ring(inputs(members), kPoints));
  std::array<std::uint64_t, kBatch> hashes;
  std::array<placement::MemberIndex, kBatch> owners;
  std::size_t i = 0;
  while (state.KeepRunningBatch(kBatch)) {
    for (std::uint64_t& hash : hashes) hash = hashing::xxh3(key(i++));
    placement.owners(hashes, owners);
    benchmark::DoNotOptimize(owners);
  }
}
BENCHMARK(ring_batch)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000);

template <class Make>
void one_placement(benchmark::State& state, Make make) {
  const topology::Spec members = spec(state.range(0));
  const placement::Placement placement({}, make(inputs(members)));
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(placement.owner(key(i++)));
}

using Members = std::vector<placement::Member>;
#define RINGSHIFT_PLACEMENT(name, ...)                                                                \
  void name(benchmark::State& state) {                                                                \
    one_placement(state, [](const Members& members) -> placement::Algorithm { return __VA_ARGS__; }); \
  }                                                                                                   \
  BENCHMARK(name)->Arg(10)->Arg(100)->Arg(1000)
RINGSHIFT_PLACEMENT(modulo, placement::Modulo(members));
RINGSHIFT_PLACEMENT(slots, placement::Slots(members));
RINGSHIFT_PLACEMENT(jump, placement::Jump(members));
RINGSHIFT_PLACEMENT(rendezvous, placement::Rendezvous(members));
RINGSHIFT_PLACEMENT(maglev, placement::Maglev(members, placement::kMaglevTableSize));
RINGSHIFT_PLACEMENT(multi_probe, placement::MultiProbe(members, 1, placement::kProbes));
RINGSHIFT_PLACEMENT(partitions, placement::Partitions(placement::deal(members, 65'536)));
RINGSHIFT_PLACEMENT(bounded_ring, placement::BoundedRing(members, kPoints, placement::kEpsilon));
#undef RINGSHIFT_PLACEMENT

#ifdef RINGSHIFT_HAVE_LIBMEMCACHED
// libmemcached's weighted ketama: MD5 of the key, then a binary search of 160 points a member.
void libmemcached_weighted_ketama(benchmark::State& state) {
  memcached_st* client = memcached_create(nullptr);
  memcached_behavior_set(client, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
  for (const auto& member : spec(state.range(0)).members) {
    const std::string host = member.address.substr(0, member.address.find(':'));
    memcached_server_add_with_weight(client, host.c_str(), 6379, 1);
  }
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(memcached_generate_hash(client, key(i++).data(), kKeyBytes));
  memcached_free(client);
}
BENCHMARK(libmemcached_weighted_ketama)->Arg(10)->Arg(100);  // It aborts the process above 100 servers.
#endif

// As above, through the public interface and with a hash tag.
void snapshot_route(benchmark::State& state) {
  topology::Topology document;
  document.spec = spec(state.range(0));
  document.spec.placement.hash_tag = "{}";
  const auto snapshot = *topology::Snapshot::compile(std::move(document), {});
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(snapshot->route(key(i++)));
}
BENCHMARK(snapshot_route)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000);

void ring_build(benchmark::State& state) {
  const topology::Spec members = spec(state.range(0));
  const auto all = inputs(members);
  for (auto _ : state) benchmark::DoNotOptimize(placement::Ring(all, kPoints).size());
  const placement::Ring ring(all, kPoints);
  state.counters["bytes_per_point"] = static_cast<double>(ring.bytes()) / static_cast<double>(ring.size());
}
BENCHMARK(ring_build)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

// One member joins N: merged into the ring of before.
void ring_add_one(benchmark::State& state) {
  const topology::Spec members = spec(state.range(0) + 1);
  const auto all = inputs(members);
  const std::span<const placement::Member> before(all.data(), all.size() - 1), added(&all.back(), 1);
  const placement::Ring ring(before, kPoints);
  std::vector<placement::MemberIndex> same(before.size());
  for (std::size_t i = 0; i < same.size(); ++i) same[i] = static_cast<placement::MemberIndex>(i);
  for (auto _ : state) {
    const placement::Ring next(ring, same, added, kPoints, hashing::Hash64::xxh3,
                               [&](placement::MemberIndex index) { return all[index].id; });
    benchmark::DoNotOptimize(next.size());
  }
}
BENCHMARK(ring_add_one)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

// Everything: validation, canonical JSON, digest, rings.
void snapshot_compile(benchmark::State& state) {
  topology::Topology document;
  document.spec = spec(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(topology::Snapshot::compile(document, {}));
}
BENCHMARK(snapshot_compile)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringshift
