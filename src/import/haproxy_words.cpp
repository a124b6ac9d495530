#include "import/haproxy_words.h"

#include "import/draft.h"

namespace ringshift::importing {

Result<std::vector<HaproxyWord>> haproxy_words(std::string_view line, std::uint32_t number,
                                               std::string_view place) {
  std::vector<HaproxyWord> words;
  bool in_word = false;
  char quote = 0;
  Mark opened;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    const Mark mark{number, static_cast<std::uint32_t>(at) + 1};
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (quote == 0 && c == '#') break;
    if (quote == 0 && blank) {
      in_word = false;
      continue;
    }
    if (!in_word) words.push_back({"", mark});
    in_word = true;
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      opened = mark;
    } else if (c == '\\' && quote != '\'' && at + 1 < line.size()) {
      words.back().text += line[++at];
    } else {
      words.back().text += c;
    }
  }
  if (quote != 0) return refuse(place, opened, "this quote is not closed");
  return words;
}

}  // namespace ringshift::importing
