// What the importers' tests share.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "import/import.h"

namespace ringshift::importing {

[[nodiscard]] inline Result<std::vector<Imported>> import_as(Format format, std::string_view text,
                                                             std::string pool = "",
                                                             std::string cluster = "") {
  return import_text(text, {format, "F", std::move(pool), std::move(cluster)});
}

// The words of the notes, in order.
[[nodiscard]] inline std::vector<std::string> note_words(const Imported& imported) {
  std::vector<std::string> words;
  for (const Note& note : imported.notes) words.push_back(note.words);
  return words;
}

}  // namespace ringshift::importing
