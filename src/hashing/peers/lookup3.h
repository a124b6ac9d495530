// Bob Jenkins' lookup3, hashlittle() (2006, public domain). Of nothing it gives its unmixed initial c.
// Check value: lookup3("Four score and seven years ago", 0) = 0x17770551 (lookup3.c, driver5). Pure.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringshift::hashing::peers {

[[nodiscard]] std::uint32_t lookup3(std::string_view bytes, std::uint32_t initval) noexcept;

}  // namespace ringshift::hashing::peers
