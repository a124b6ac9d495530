// What the ketama-like peers share: how many points a weight gives, and the points of a label.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/peers/ring32.h"
#include "placement/peers/server.h"

namespace ringshift::placement::peers {

inline constexpr std::uint32_t kPointsOfDigest = 4;  // An MD5 gives four points.
inline constexpr std::uint32_t kKetamaPoints = 160;  // A server's, when all weigh the same.

// Digests of each server in 32-bit floating point, from left to right: floor(w/W * 160/4 * n), as
// libmemcached, twemproxy and spymemcached round it. Of equal weights that is 39 and not 40 for some n.
[[nodiscard]] std::vector<std::uint32_t> ketama_digests(std::span<const Server> servers);

// The four points of MD5(label), in the order of its bytes, each little-endian.
void add_digest(Points32& points, std::string_view label, MemberIndex member);

// `prefix` and the decimal number.
[[nodiscard]] std::string numbered(std::string_view prefix, std::uint64_t number);

// Every server, weight times, in order.
[[nodiscard]] std::vector<MemberIndex> by_weight(std::span<const Server> servers);
[[nodiscard]] std::vector<MemberIndex> one_each(std::span<const Server> servers);

}  // namespace ringshift::placement::peers
