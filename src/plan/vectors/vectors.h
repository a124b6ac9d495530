// Checks recorded answers of other programs against our own computation of them: `ringshift vectors`.
//
// Reads every form of the recordings folder (see its README): cases with an `assign` of one base62 character
// a key, published tables, ring points, hash values, ties and the articles' figures. Blocks are told by what
// they hold, so a file may have them under other names. What a file claims is checked as far as it is given;
// a block, peer, server form or option that is not known is an error of its case, and fails it.
//
// Pure but for `Sibling`. Hostile input is bounded by topology's document reader and by kMaxServers.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::plan::vectors {

inline constexpr std::size_t kMaxServers = 4096;

struct Case {
  std::string name;
  std::uint64_t asked = 0;    // Recorded answers.
  std::uint64_t matched = 0;  // Those that we give too.
  // Recorded figures of a program whose computation is not known to us: neither asked nor matched, and said
  // so in `problem`.
  std::uint64_t not_computed = 0;
  std::string problem;  // "" when all match: the first mismatch, or why the case cannot be computed.
  // Our own answers, for a recording by us.
  struct Answer {
    std::string pointer;  // Where in the file it stands (RFC 6901).
    std::string json;
  };
  std::vector<Answer> answers;
};

struct File {
  std::string peer;
  bool recorded = true;  // False: holds no answers (a key set, say), and `note` says what it is.
  std::string note;
  std::vector<Case> cases;
};

// The text of another file of the same folder, such as the key set.
using Sibling = std::function<Result<std::string>(const std::string& name)>;

// An error when the text is no recording at all.
[[nodiscard]] Result<File> check(std::string_view text, std::string_view place, const Sibling& sibling);

}  // namespace ringshift::plan::vectors
