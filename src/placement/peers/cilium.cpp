#include "placement/peers/cilium.h"

#include <algorithm>

#include "hashing/peers/murmur.h"

namespace ringshift::placement::peers {

CiliumStep cilium_step(std::string_view label, std::uint32_t table_size, std::uint32_t seed) noexcept {
  const auto [low, high] = hashing::peers::murmur3_x64_128(label, seed);
  return {low % table_size, high % (table_size - 1) + 1};
}

std::vector<MemberIndex> cilium_table(std::span<const CiliumBackend> backends, std::uint32_t table_size,
                                      std::uint32_t seed) {
  struct Turn {
    CiliumBackend backend;
    std::uint64_t next = 0, skip = 0;
    double counter = 0;
  };
  std::vector<Turn> turns;
  std::uint64_t sum = 0;
  for (const CiliumBackend& backend : backends) {
    const CiliumStep step = cilium_step(backend.label, table_size, seed);
    turns.push_back({backend, step.offset, step.skip,
                     static_cast<double>(backend.weight) / static_cast<double>(backends.size())});
    sum += backend.weight;
  }
  std::vector<MemberIndex> table(turns.empty() ? 0 : table_size, kNoMember);
  if (turns.empty()) return table;
  std::ranges::stable_sort(turns, {},
                           [](const Turn& turn) -> const std::string& { return turn.backend.label; });
  const bool weighted = sum / turns.size() > 1;
  for (std::uint64_t n = 0; n < table_size; ++n) {
    std::size_t at = n % turns.size();
    while (weighted) {
      Turn& turn = turns[at];
      if ((n + 1) * turn.backend.weight >= static_cast<std::uint64_t>(turn.counter)) {
        turn.counter += static_cast<double>(sum);
        break;
      }
      at = (at + 1) % turns.size();
    }
    Turn& turn = turns[at];
    while (table[turn.next] != kNoMember) turn.next = (turn.next + turn.skip) % table_size;
    table[turn.next] = turn.backend.index;
    turn.next = (turn.next + turn.skip) % table_size;
  }
  return table;
}

}  // namespace ringshift::placement::peers
