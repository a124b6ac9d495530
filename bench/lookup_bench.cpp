// What a look-up and a build cost. Targets (DESIGN section 8): hash and owner of a 16-byte key <= 6 ns at 100
// members x 256 points and <= 10 ns at 1000; build of 1000 x 256 <= 10 ms, one member added <= 3 ms.
//
// Keys are drawn from 64 Ki different ones, in an order that no branch predictor learns.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

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
}
BENCHMARK(ring_build)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

// Everything: validation, canonical JSON, digest, rings.
void snapshot_compile(benchmark::State& state) {
  topology::Topology document;
  document.spec = spec(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(topology::Snapshot::compile(document, {}));
}
BENCHMARK(snapshot_compile)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringshift
