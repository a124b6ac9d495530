// HAProxy's key hashes (hash-type's functions) and full_hash(), its avalanche and the hash of its points.
// Source: HAProxy 2.6 as recorded in tests/vectors/haproxy_hash.json. Bytes are unsigned. Pure.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringshift::hashing::peers {

[[nodiscard]] std::uint32_t sdbm(std::string_view key) noexcept;
[[nodiscard]] std::uint32_t djb2(std::string_view key) noexcept;
[[nodiscard]] std::uint32_t wt6(std::string_view key) noexcept;
// Jenkins' six-step integer hash, times a prime close to 3/4 of 2^32.
[[nodiscard]] std::uint32_t full_hash(std::uint32_t value) noexcept;

}  // namespace ringshift::hashing::peers
