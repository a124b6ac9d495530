// A line of HAProxy's configuration as words: bare, in "..." or '...', with backslashes; # begins a comment.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "import/mark.h"
#include "ringshift/error.h"

namespace ringshift::importing {

struct HaproxyWord {
  std::string text;
  Mark mark;
};

[[nodiscard]] Result<std::vector<HaproxyWord>> haproxy_words(std::string_view line, std::uint32_t number,
                                                             std::string_view place);

}  // namespace ringshift::importing
