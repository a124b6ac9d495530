// SHA-1 by OpenSSL, for the names that Redis gives to scripts; nothing is kept safe by it. Aborts when
// OpenSSL cannot compute it (a broken installation).
#pragma once
#include <string>
#include <string_view>

namespace ringshift::hashing {

[[nodiscard]] std::string sha1_hex(std::string_view bytes);

}  // namespace ringshift::hashing
