// Written values: a token that is unique in the run, made as long as wanted. A history keeps tokens only, so
// that values of megabytes cost it nothing; what is read is checked to its last byte.
//
// A short value is the token itself. A long one is TOKEN "/" SIZE "/" and a filler that the token determines.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace ringshift::check {

// `size` bytes; the token alone where that is longer.
[[nodiscard]] std::string long_value(std::string_view token, std::size_t size);
// The token of a value; a text that begins with "corrupt " (which no token does) where the rest is not as
// long_value makes it.
[[nodiscard]] std::string token_of(std::string value);

}  // namespace ringshift::check
