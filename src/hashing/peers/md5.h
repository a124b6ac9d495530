// MD5 (RFC 1321), where a peer's ring needs it: as a scatterer of labels and keys, never as a protection.
//
// Our own: without a context or an algorithm to look up, and without an allocation, for each short key.
// Check value: md5("abc") = 900150983cd24fb0d6963f7d28e17f72. Pure, thread-safe.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ringshift::hashing::peers {

// The digest as four little-endian words, in the order of its bytes.
using Md5Words = std::array<std::uint32_t, 4>;
[[nodiscard]] Md5Words md5(std::string_view bytes) noexcept;

// out[i] = md5(messages[i])[0], eight at a time: a short message costs a third of what it costs alone.
// REQUIRES: out.size() == messages.size().
void md5_first_words(std::span<const std::string_view> messages, std::span<std::uint64_t> out) noexcept;

}  // namespace ringshift::hashing::peers
