// What a section of HAProxy says of the placement, and the lines that may stand in `defaults` for it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/haproxy_words.h"
#include "import/import.h"

namespace ringshift::importing {

using HaproxyLine = std::vector<HaproxyWord>;

struct HaproxyRules {
  HaproxyLine balance, hash_type, balance_factor, default_server;
  std::optional<HaproxyWord> past_hash, unknown;  // A line that makes an import impossible.
  std::vector<Note> notes;
  bool redis = false, disabled = false;
};

// One line that is no server. What decides nothing becomes a note; what makes an import impossible is kept
// for when the section turns out to be wanted.
[[nodiscard]] Status read_haproxy_rule(const HaproxyLine& words, HaproxyRules& rules, std::string_view place);

// The words with spaces between them.
[[nodiscard]] std::string joined(const HaproxyLine& words);
// Whether `word` is one of `list`, which has a space after each.
[[nodiscard]] bool listed(std::string_view list, std::string_view word);

}  // namespace ringshift::importing
