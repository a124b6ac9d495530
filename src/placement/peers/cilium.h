// Cilium's maglev table: which backend of a service each of its M entries names.
//
// Backends are ordered by their labels' bytes. A backend's permutation of the entries is offset = h1 % M,
// skip = h2 % (M - 1) + 1, from the two halves of MurmurHash3 x64_128 of its label. They take entries in
// turn; with weights (only when the mean, rounded down, is above 1) a backend is passed over at entry n while
// (n + 1) * w is below its counter, a double cut to a whole number, which begins at w / backends and grows by
// the sum of the weights each time it takes one.
//
// It is no placement of the spec: Cilium asks its table with the kernel's hash of a packet's addresses, not
// of a key. It is here because its tables are published, in Cilium's own tests.
//
// Pure; O(M * backends) at worst. REQUIRES: M is prime, weights are whole and at least one of them is not 0.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/member.h"

namespace ringshift::placement::peers {

inline constexpr std::string_view kCiliumSeed = "JLfvgnHc2kaSUFaI";  // Cilium's default, in base64: 12 bytes.
inline constexpr std::uint32_t kMaxCiliumTable = 131'071;            // Its own bound.

struct CiliumBackend {
  std::string label;
  std::uint64_t weight = 1;
  MemberIndex index = 0;
};

struct CiliumStep {
  std::uint64_t offset = 0, skip = 0;
};
[[nodiscard]] CiliumStep cilium_step(std::string_view label, std::uint32_t table_size,
                                     std::uint32_t seed) noexcept;
[[nodiscard]] std::vector<MemberIndex> cilium_table(std::span<const CiliumBackend> backends,
                                                    std::uint32_t table_size, std::uint32_t seed);

}  // namespace ringshift::placement::peers
