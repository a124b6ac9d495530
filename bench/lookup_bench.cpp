// What a look-up and a build cost, as a program that links the library has them: through Snapshot, with keys
// of 16 bytes. Targets: DESIGN section 8. How to read the output: README.md beside this file.
//
// Keys are drawn from 64 Ki different ones, in an order that no branch predictor learns, and which touch
// nearly all of a ring of 1000 members.
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
#include "least.h"
#include "placement/placement.h"
#include "ringshift/snapshot.h"

namespace ringshift {
namespace {

constexpr std::uint32_t kPoints = 256;
constexpr std::size_t kKeys = 1U << 16;
constexpr std::size_t kKeyBytes = 16;

const std::string& all_keys() {
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

// The keys one after the other, round and round.
class Keys {
 public:
  std::string_view next() noexcept { return {bytes_ + (i_++ & (kKeys - 1)) * kKeyBytes, kKeyBytes}; }

 private:
  const char* bytes_ = all_keys().data();
  std::size_t i_ = 0;
};

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

topology::Topology document(std::int64_t members, std::string_view tag = "") {
  topology::Topology out;
  out.spec = spec(members);
  out.spec.placement.hash_tag = tag;
  return out;
}

// A peer's weighted ring of MD5 points and MD5 keys.
topology::Topology peer_document(std::int64_t members, const std::string& algorithm) {
  topology::Topology out = document(members);
  out.spec.placement.algorithm = algorithm;
  out.spec.placement.hash = algorithm == "twemproxy" ? "md5" : "default";
  if (algorithm == "libmemcached") out.spec.placement.options["distribution"] = "ketama_weighted";
  return out;
}

std::shared_ptr<const topology::Snapshot> compiled(topology::Topology document) {
  auto snapshot = topology::Snapshot::compile(std::move(document), {});
  if (!snapshot) {
    std::fprintf(stderr, "lookup_bench: %s\n", snapshot.error().message.c_str());
    std::abort();
  }
  return *snapshot;
}

void route_each(benchmark::State& state, topology::Topology document) {
  const auto snapshot = compiled(std::move(document));
  Keys keys;
  for (auto _ : state) benchmark::DoNotOptimize(snapshot->route(keys.next()));
}

// Per key.
void route_batches(benchmark::State& state, topology::Topology document) {
  constexpr std::size_t kBatch = 128;
  const auto snapshot = compiled(std::move(document));
  std::array<std::string_view, kBatch> batch;
  std::array<topology::Route, kBatch> routes;
  Keys keys;
  while (state.KeepRunningBatch(kBatch)) {
    for (std::string_view& key : batch) key = keys.next();
    snapshot->route_many(batch, routes);
    benchmark::DoNotOptimize(routes);
  }
}

// The floor: no placement can be faster than its hash.
void hash_only(benchmark::State& state) {
  Keys keys;
  for (auto _ : state) benchmark::DoNotOptimize(hashing::xxh3(keys.next()));
}
BENCHMARK(hash_only)->Apply(bench::report_least);

void sizes(benchmark::internal::Benchmark* each) {
  each->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Apply(bench::report_least);
}
void few_sizes(benchmark::internal::Benchmark* each) { each->Arg(10)->Arg(100)->Apply(bench::report_least); }

void snapshot_route(benchmark::State& state) { route_each(state, document(state.range(0))); }
BENCHMARK(snapshot_route)->Apply(sizes);
void snapshot_route_with_tag(benchmark::State& state) { route_each(state, document(state.range(0), "{}")); }
BENCHMARK(snapshot_route_with_tag)->Apply(sizes);
void snapshot_route_many(benchmark::State& state) { route_batches(state, document(state.range(0))); }
BENCHMARK(snapshot_route_many)->Apply(sizes);

#ifdef RINGSHIFT_HAVE_LIBMEMCACHED
// libmemcached itself: MD5 of the key, then a binary search of 160 points a member.
void libmemcached_weighted_ketama(benchmark::State& state) {
  memcached_st* client = memcached_create(nullptr);
  memcached_behavior_set(client, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
  for (const auto& member : spec(state.range(0)).members) {
    const std::string host = member.address.substr(0, member.address.find(':'));
    memcached_server_add_with_weight(client, host.c_str(), 6379, 1);
  }
  Keys keys;
  for (auto _ : state)
    benchmark::DoNotOptimize(memcached_generate_hash(client, keys.next().data(), kKeyBytes));
  memcached_free(client);
}
BENCHMARK(libmemcached_weighted_ketama)->Apply(few_sizes);  // It aborts the process above 100 servers.
#endif

// Our own of the peers' placements: the same answers.
void as_libmemcached(benchmark::State& state) {
  route_each(state, peer_document(state.range(0), "libmemcached"));
}
BENCHMARK(as_libmemcached)->Apply(few_sizes);
void as_libmemcached_many(benchmark::State& state) {
  route_batches(state, peer_document(state.range(0), "libmemcached"));
}
BENCHMARK(as_libmemcached_many)->Apply(few_sizes);
void as_twemproxy_md5(benchmark::State& state) {
  route_each(state, peer_document(state.range(0), "twemproxy"));
}
BENCHMARK(as_twemproxy_md5)->Apply(few_sizes);
void as_twemproxy_md5_many(benchmark::State& state) {
  route_batches(state, peer_document(state.range(0), "twemproxy"));
}
BENCHMARK(as_twemproxy_md5_many)->Apply(few_sizes);

template <class Make>
void one_placement(benchmark::State& state, Make make) {
  const topology::Spec members = spec(state.range(0));
  const placement::Placement placement({}, make(inputs(members)));
  Keys keys;
  for (auto _ : state) benchmark::DoNotOptimize(placement.owner(keys.next()));
}

using Members = std::vector<placement::Member>;
#define RINGSHIFT_PLACEMENT(name, ...)                                                                \
  void name(benchmark::State& state) {                                                                \
    one_placement(state, [](const Members& members) -> placement::Algorithm { return __VA_ARGS__; }); \
  }                                                                                                   \
  BENCHMARK(name)->Arg(10)->Arg(100)->Arg(1000)->Apply(bench::report_least)
RINGSHIFT_PLACEMENT(modulo, placement::Modulo(members));
RINGSHIFT_PLACEMENT(slots, placement::Slots(members));
RINGSHIFT_PLACEMENT(jump, placement::Jump(members));
RINGSHIFT_PLACEMENT(rendezvous, placement::Rendezvous(members));
RINGSHIFT_PLACEMENT(maglev, placement::Maglev(members, placement::kMaglevTableSize));
RINGSHIFT_PLACEMENT(multi_probe, placement::MultiProbe(members, 1, placement::kProbes));
RINGSHIFT_PLACEMENT(partitions, placement::Partitions(placement::deal(members, 65'536)));
RINGSHIFT_PLACEMENT(bounded_ring, placement::BoundedRing(members, kPoints, placement::kEpsilon));
#undef RINGSHIFT_PLACEMENT

void ring_build(benchmark::State& state) {
  const topology::Spec members = spec(state.range(0));
  const auto all = inputs(members);
  for (auto _ : state) benchmark::DoNotOptimize(placement::Ring(all, kPoints).size());
  const placement::Ring ring(all, kPoints);
  state.counters["bytes_per_point"] = static_cast<double>(ring.bytes()) / static_cast<double>(ring.size());
}
BENCHMARK(ring_build)->Apply(sizes)->Unit(benchmark::kMillisecond);

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
BENCHMARK(ring_add_one)->Apply(sizes)->Unit(benchmark::kMillisecond);

// Everything: validation, canonical JSON, digest, rings.
void snapshot_compile(benchmark::State& state) {
  const topology::Topology whole = document(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(topology::Snapshot::compile(whole, {}));
}
BENCHMARK(snapshot_compile)->Apply(sizes)->Unit(benchmark::kMillisecond);

// The same when one member joined the snapshot before.
void snapshot_add_one(benchmark::State& state) {
  const auto previous = compiled(document(state.range(0)));
  const topology::Topology next = document(state.range(0) + 1);
  for (auto _ : state) benchmark::DoNotOptimize(topology::Snapshot::compile(next, {}, previous.get()));
}
BENCHMARK(snapshot_add_one)->Apply(sizes)->Unit(benchmark::kMillisecond);

// What a step of a resize costs a router: other slices, the same placements.
void snapshot_same_placement(benchmark::State& state) {
  const auto previous = compiled(document(state.range(0)));
  topology::Topology next = document(state.range(0));
  next.fence.step = 1;
  for (auto _ : state) benchmark::DoNotOptimize(topology::Snapshot::compile(next, {}, previous.get()));
}
BENCHMARK(snapshot_same_placement)->Apply(sizes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringshift

int main(int argc, char** argv) {
  return ringshift::bench::run(argc, argv,
                               {{"snapshot_route/100", "", 6},
                                {"snapshot_route/1000", "", 10},
                                {"snapshot_route/100", "libmemcached_weighted_ketama/100", 20},
                                {"as_libmemcached/100", "libmemcached_weighted_ketama/100", 1.3},
                                {"as_libmemcached_many/100", "libmemcached_weighted_ketama/100", 1.3},
                                {"as_twemproxy_md5/100", "libmemcached_weighted_ketama/100", 1.3},
                                {"as_twemproxy_md5_many/100", "libmemcached_weighted_ketama/100", 1.3},
                                {"snapshot_compile/1000", "", 10},
                                {"ring_add_one/1000", "", 3},
                                {"snapshot_add_one/1000", "", 3}});
}
