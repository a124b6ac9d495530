// A `server` line of HAProxy, or the options of `default-server`.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "import/draft.h"
#include "import/haproxy_words.h"

namespace ringshift::importing {

struct HaproxyServer {
  HaproxyWord name;
  std::string address;
  std::uint64_t weight = 1;
  std::optional<std::uint64_t> id;
  bool disabled = false, backup = false;
  Mark mark;
};

// Reads the options in `words` into `server`; what no spec can say becomes a note.
[[nodiscard]] Status read_haproxy_options(std::span<const HaproxyWord> words, HaproxyServer& server,
                                          Draft& draft, std::string_view place);
// words: "server", name, address, options. `server` comes with the defaults.
[[nodiscard]] Status read_haproxy_server(std::span<const HaproxyWord> words, HaproxyServer& server,
                                         Draft& draft, std::string_view place);

}  // namespace ringshift::importing
