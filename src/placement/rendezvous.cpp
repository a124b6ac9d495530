#include "placement/rendezvous.h"

#include <algorithm>
#include <bit>

namespace ringshift::placement {

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)); ln(m) = 2 atanh(s), s = (m-1)/(m+1), |s| < 0.172, by its
// series: ten terms leave less than 2^-53. The build forbids fusing multiplications and additions
// (-ffp-contract=off), which would round differently.
double exact_log(double x) noexcept {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  constexpr double kLn2 = 0.69314718055994530942;
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1, kHalfExponent = std::uint64_t{1022} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1022;
  double m = std::bit_cast<double>((bits & kFraction) | kHalfExponent);  // [1/2, 1)
  if (m < kSqrtHalf) {
    m += m;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 1.0 / 19;
  for (const double divisor : {17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0}) sum = sum * z + 1.0 / divisor;
  return static_cast<double>(exponent) * kLn2 + (2 * s + 2 * s * (z * sum));
}

Rendezvous::Rendezvous(std::span<const Member> members) {
  std::vector<const Member*> sorted;
  for (const Member& member : members) sorted.push_back(&member);
  std::ranges::sort(sorted, {}, &Member::id);
  for (const Member* member : sorted) {
    members_.push_back({hashing::xxh3(member->id), 1 / member->weight, member->index});
    equal_weights_ = equal_weights_ && member->weight == members.front().weight;
  }
}

MemberIndex Rendezvous::owner(std::uint64_t hash) const noexcept {
  if (members_.empty()) return kNoMember;
  if (!equal_weights_) return members_[best_after(hash, nullptr).position].index;
  std::uint64_t best = 0;
  MemberIndex owner = members_.front().index;
  for (const Entry& member : members_) {
    const std::uint64_t bits = hashing::mix(hash ^ member.hash);
    if (bits > best) {  // The first of equals has the smaller id.
      best = bits;
      owner = member.index;
    }
  }
  return owner;
}

Rendezvous::Rank Rendezvous::rank(std::uint64_t hash, std::uint32_t position) const noexcept {
  const Entry& member = members_[position];
  const std::uint64_t bits = hashing::mix(hash ^ member.hash);
  if (equal_weights_) return {0, bits, position};
  const double u = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  return {-exact_log(u) * member.inverse_weight, bits, position};
}

Rendezvous::Rank Rendezvous::best_after(std::uint64_t hash, const Rank* last) const noexcept {
  Rank best;
  bool found = false;
  for (std::uint32_t position = 0; position < members_.size(); ++position) {
    const Rank next = rank(hash, position);
    if (last != nullptr && !last->before(next)) continue;
    if (found && !next.before(best)) continue;
    best = next;
    found = true;
  }
  return best;
}

}  // namespace ringshift::placement
