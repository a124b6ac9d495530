#include "hashing/peers/digests.h"

#include <openssl/evp.h>

#define XXH_INLINE_ALL  // libringshift must not need libxxhash at its user's.
#include <xxhash.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace ringshift::hashing::peers {
namespace {

void compute_or_abort(const EVP_MD* algorithm, std::string_view bytes, unsigned char* out) noexcept {
  if (EVP_Digest(bytes.data(), bytes.size(), out, nullptr, algorithm, nullptr) == 1) return;
  std::fputs("ringshift: OpenSSL cannot compute a digest; check its installation and providers\n", stderr);
  std::abort();
}

}  // namespace

std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed) noexcept {
  return XXH64(bytes.data(), bytes.size(), seed);
}

std::uint32_t sha1_be(std::string_view bytes) noexcept {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  compute_or_abort(EVP_sha1(), bytes, out.data());
  return std::uint32_t{out[0]} << 24 | std::uint32_t{out[1]} << 16 | std::uint32_t{out[2]} << 8 | out[3];
}

std::optional<Digest> Digest::find(std::string_view name) {
  static_assert(kMaxBytes >= EVP_MAX_MD_SIZE);
  const EVP_MD* algorithm = EVP_get_digestbyname(std::string(name).c_str());
  if (algorithm == nullptr) return std::nullopt;
  // Of no fixed length (SHAKE), or not provided by this installation.
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  if (EVP_MD_get_size(algorithm) < 4 || EVP_Digest("", 0, out.data(), nullptr, algorithm, nullptr) != 1) {
    return std::nullopt;
  }
  Digest digest;
  digest.algorithm_ = algorithm;
  digest.size_ = static_cast<std::size_t>(EVP_MD_get_size(algorithm));
  return digest;
}

void Digest::compute(std::string_view bytes, unsigned char* out) const noexcept {
  compute_or_abort(static_cast<const EVP_MD*>(algorithm_), bytes, out);
}

}  // namespace ringshift::hashing::peers
