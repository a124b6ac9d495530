// The key hash of a peer's placement: a pure function with a name. Two placements whose key hashes have one
// name can be compared by arcs. Threads: immutable. Cost: an indirect call.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hashing/peers/digests.h"
#include "hashing/peers/md5.h"
#include "hashing/peers/memcached_hashes.h"

namespace ringshift::placement::peers {

class KeyHash {
 public:
  using Wide = std::uint64_t (*)(std::string_view) noexcept;

  KeyHash(std::string_view name, hashing::peers::Hash32 hash, int bits = 32)
      : name_(name), narrow_(hash), bits_(bits) {}
  KeyHash(std::string_view name, Wide hash) : name_(name), wide_(hash), bits_(64) {}
  // The digest's first four bytes, little-endian. `name` is OpenSSL's.
  KeyHash(std::string_view name, hashing::peers::Digest digest) : name_(name), digest_(digest) {}

  [[nodiscard]] std::uint64_t operator()(std::string_view key) const noexcept {
    if (empty_is_zero_ && key.empty()) return 0;
    if (narrow_ != nullptr) return narrow_(key);
    return wide_ != nullptr ? wide_(key) : digested(key);
  }
  // operator() of each key. REQUIRES: out.size() == keys.size().
  void many(std::span<const std::string_view> keys, std::span<std::uint64_t> out) const noexcept {
    if (narrow_ != hashing::peers::md5_le) {
      for (std::size_t i = 0; i < keys.size(); ++i) out[i] = (*this)(keys[i]);
      return;
    }
    hashing::peers::md5_first_words(keys, out);
    for (std::size_t i = 0; i < keys.size() && empty_is_zero_; ++i) {
      if (keys[i].empty()) out[i] = 0;
    }
  }
  void set_empty_to_zero() noexcept { empty_is_zero_ = true; }  // twemproxy's: not the hash's own answer.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int bits() const noexcept { return bits_; }  // How many bits of it vary.

 private:
  [[nodiscard]] std::uint64_t digested(std::string_view key) const noexcept {
    unsigned char out[hashing::peers::Digest::kMaxBytes];
    digest_.compute(key, out);
    return out[0] | std::uint32_t{out[1]} << 8 | std::uint32_t{out[2]} << 16 | std::uint32_t{out[3]} << 24;
  }

  std::string name_;
  hashing::peers::Hash32 narrow_ = nullptr;
  Wide wide_ = nullptr;
  hashing::peers::Digest digest_;
  int bits_ = 32;
  bool empty_is_zero_ = false;
};

}  // namespace ringshift::placement::peers
