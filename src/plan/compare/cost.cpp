#include "plan/compare/cost.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>

namespace ringshift::plan::compare {
namespace {

// The time that this thread ran: what others do on the machine's cores is not counted.
struct Clock {
  static std::chrono::nanoseconds now() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The result of measured work goes through here: memory that the compiler must believe somebody reads.
void consume(std::uint64_t value) {
  static std::atomic<std::uint64_t> sink{0};
  sink.store(value, std::memory_order_relaxed);
}

std::size_t bytes_of(const placement::peers::Peer& peer) {
  if (const auto* ring = dynamic_cast<const placement::peers::RingPeer*>(&peer))
    return ring->ring().memory_bytes();
  if (const auto* wide = dynamic_cast<const placement::peers::WideRingPeer*>(&peer))
    return wide->points().size() * sizeof(placement::peers::WideRingPeer::Point);
  if (const auto* table = dynamic_cast<const placement::peers::TablePeer*>(&peer))
    return table->table().size() * sizeof(placement::MemberIndex);
  return 0;
}

}  // namespace

std::vector<std::string_view> timing_keys(const KeySet& keys) {
  constexpr std::size_t kKeys = 8192;
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < std::min(kKeys, keys.size()); ++i) out.push_back(keys[i]);
  return out;
}

double lookup_ns(const std::vector<std::string_view>& keys,
                 const std::function<std::uint64_t(const std::vector<std::string_view>&)>& pass,
                 std::chrono::milliseconds round) {
  constexpr int kRounds = 5;
  consume(pass(keys));  // Fills the caches.
  std::vector<double> rounds;
  for (int i = 0; i < kRounds; ++i) {
    const auto begin = Clock::now();
    std::uint64_t done = 0;
    auto end = begin;
    do {
      consume(pass(keys));
      done += keys.size();
      end = Clock::now();
    } while (end - begin < round);
    rounds.push_back(std::chrono::duration<double, std::nano>(end - begin).count() /
                     static_cast<double>(done));
  }
  return median(rounds);
}

double lookup_ns(const placement::Placement& compiled, const std::vector<std::string_view>& keys) {
  return lookup_ns(keys, [&](const std::vector<std::string_view>& batch) {
    std::uint64_t sum = 0;
    for (const std::string_view key : batch) sum += compiled.owner(key);
    return sum;
  });
}

double build_us(const std::function<void()>& build) {
  constexpr int kMost = 5;
  constexpr std::chrono::milliseconds kEnough{50};
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.empty() || (times.size() < kMost && Clock::now() - begin < kEnough)) {
    const auto start = Clock::now();
    build();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return median(times);
}

std::size_t memory_bytes(const placement::Placement& compiled) {
  struct Visitor {
    std::size_t operator()(const placement::Ring& ring) const { return ring.bytes(); }
    std::size_t operator()(const placement::Modulo& modulo) const { return modulo.residues().size_bytes(); }
    std::size_t operator()(const placement::Slots& slots) const { return slots.table().size_bytes(); }
    std::size_t operator()(const placement::Jump& jump) const { return jump.members().size_bytes(); }
    std::size_t operator()(const placement::Rendezvous& all) const { return all.memory_bytes(); }
    std::size_t operator()(const placement::Maglev& maglev) const { return maglev.table().size_bytes(); }
    std::size_t operator()(const placement::MultiProbe& probes) const { return probes.memory_bytes(); }
    std::size_t operator()(const placement::Memento& memento) const { return memento.memory_bytes(); }
    std::size_t operator()(const placement::Partitions& parts) const { return parts.table().size_bytes(); }
    std::size_t operator()(const placement::Tokens& tokens) const { return tokens.ring().bytes(); }
    std::size_t operator()(const placement::BoundedRing& bounded) const { return bounded.ring().bytes(); }
    std::size_t operator()(const placement::PeerPlacement& peer) const { return bytes_of(peer.peer()); }
  };
  return std::visit(Visitor{}, compiled.algorithm());
}

}  // namespace ringshift::plan::compare
