// SHA-256 by OpenSSL. Aborts when OpenSSL cannot compute it (a broken installation): a digest that is
// missing must never look like one that agrees.
#pragma once
#include <string>
#include <string_view>

namespace ringshift::hashing {

[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace ringshift::hashing
