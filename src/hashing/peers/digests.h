// What a library has as the peers compute it: SHA-1 and other digests by OpenSSL, XXH64 by xxHash.
// Check values: SHA-1("abc") begins a9993e36; XXH64("", 0) = ef46db3751d8e999. Thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringshift::hashing::peers {

[[nodiscard]] std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed = 0) noexcept;

// The first four bytes of SHA-1, big-endian. Aborts when OpenSSL cannot compute it (a broken installation).
[[nodiscard]] std::uint32_t sha1_be(std::string_view bytes) noexcept;

// A digest by OpenSSL's name for it ("md5", "sha1", "sha256", ...), as Node's crypto.createHash() takes them.
class Digest {
 public:
  static constexpr std::size_t kMaxBytes = 64;
  // nullopt when OpenSSL knows no such digest.
  [[nodiscard]] static std::optional<Digest> find(std::string_view name);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Writes size() bytes to `out`. REQUIRES: room for kMaxBytes.
  void compute(std::string_view bytes, unsigned char* out) const noexcept;

 private:
  const void* algorithm_ = nullptr;  // OpenSSL's own, which is never freed.
  std::size_t size_ = 0;
};

}  // namespace ringshift::hashing::peers
