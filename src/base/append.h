// std::string::append for the hot path: what has room is copied in a few instructions, and growing, which is
// rare and needs most of append's code, stays out of line. REQUIRES: `text` is no part of `to`, and not the empty
// view of nothing (one of "" is right).
#pragma once
#include <cassert>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace ringshift::base {

[[gnu::noinline]] inline void append_growing(std::string& to, std::string_view text) { to.append(text); }

inline void append(std::string& to, std::string_view text) {
  assert(text.data() != nullptr);
  const std::size_t old = to.size();
  const std::size_t size = old + text.size();
  if (size > to.capacity()) [[unlikely]]
    return append_growing(to, text);
  to.resize_and_overwrite(size, [&](char* data, std::size_t whole) {
    std::memcpy(data + old, text.data(), text.size());
    return whole;
  });
}

}  // namespace ringshift::base
