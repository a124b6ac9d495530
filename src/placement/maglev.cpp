#include "placement/maglev.h"

#include <algorithm>

#include "hashing/xxh3.h"

namespace ringshift::placement {
namespace {

constexpr std::uint64_t kOffsetSeed = 2, kSkipSeed = 3;

struct Filler {
  std::string_view id;
  MemberIndex index = 0;
  double turns_per_round = 1;
  double turns = 0;  // Taken so far: a whole number.
  std::uint64_t next = 0, skip = 1;
};

std::vector<Filler> fillers(std::span<const Member> members, std::uint32_t table_size) {
  double heaviest = 0;
  for (const Member& member : members) heaviest = std::max(heaviest, member.weight);
  std::vector<Filler> out;
  out.reserve(members.size());
  for (const Member& member : members) {
    Filler filler{member.id, member.index, member.weight / heaviest};
    filler.next = hashing::xxh3(member.id, kOffsetSeed) % table_size;
    filler.skip = hashing::xxh3(member.id, kSkipSeed) % (table_size - 1) + 1;
    out.push_back(filler);
  }
  std::ranges::sort(out, {}, &Filler::id);
  return out;
}

}  // namespace

Maglev::Maglev(std::span<const Member> members, std::uint32_t table_size) {
  if (members.empty()) return;
  table_.assign(table_size, kNoMember);
  std::vector<Filler> all = fillers(members, table_size);
  std::uint32_t filled = 0;
  for (double round = 1;; ++round) {
    for (Filler& filler : all) {
      if (filler.turns >= round * filler.turns_per_round) continue;
      ++filler.turns;
      while (table_[filler.next] != kNoMember) filler.next = (filler.next + filler.skip) % table_size;
      table_[filler.next] = filler.index;
      if (++filled == table_size) return;
    }
  }
}

bool is_prime(std::uint32_t number) noexcept {
  if (number < 2) return false;
  for (std::uint64_t d = 2; d * d <= number; ++d) {
    if (number % d == 0) return false;
  }
  return true;
}

}  // namespace ringshift::placement
