// Files that hold secrets, or belong to them: whole or not there, and never replaced without a word.
#pragma once
#include <string>
#include <string_view>

#include "ringshift/error.h"

namespace ringshift::cli {

// Written beside `path` and renamed. `force`: although there is one; else invalid names the file and the
// flag.
[[nodiscard]] Status write_file(const std::string& path, std::string_view text, unsigned mode, bool force);
// At most a mebibyte.
[[nodiscard]] Result<std::string> read_whole_file(const std::string& path);

}  // namespace ringshift::cli
