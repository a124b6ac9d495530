#include "hashing/sha1.h"

#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/encoding.h"

namespace ringshift::hashing {

std::string sha1_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), out.data(), &size, EVP_sha1(), nullptr) != 1 || size != 20) {
    std::fputs("ringshift: OpenSSL cannot compute SHA-1; check its installation and providers\n", stderr);
    std::abort();
  }
  return base::to_hex({reinterpret_cast<const char*>(out.data()), size});
}

}  // namespace ringshift::hashing
