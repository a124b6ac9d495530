// A size on the command line: bytes, or with a binary unit as in a spec.
#pragma once
#include <string>

namespace ringshift::cli {

// For CLI11's transform(): "1.5KiB" becomes "1536"; gives what is wrong, or "".
[[nodiscard]] std::string size_to_bytes(std::string& text);

}  // namespace ringshift::cli
