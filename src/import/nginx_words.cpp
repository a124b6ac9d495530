#include "import/nginx_words.h"

#include "import/draft.h"

namespace ringshift::importing {
namespace {

constexpr std::size_t kMaxWordBytes = 4096;  // nginx's own bound.

bool space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

void NginxWords::step() {
  mark_ = text_[at_] == '\n' ? Mark{mark_.line + 1, 1} : Mark{mark_.line, mark_.column + 1};
  ++at_;
}

Result<NginxWord> NginxWords::next(std::string_view place) {
  while (!done() && (space(text_[at_]) || text_[at_] == '#')) {
    if (text_[at_] == '#') {
      while (!done() && text_[at_] != '\n') step();
    } else {
      step();
    }
  }
  NginxWord word;
  word.mark = mark_;
  if (done()) return word;
  const char c = text_[at_];
  if (c == '"' || c == '\'') return quoted(place);
  if (c == ';' || c == '{' || c == '}') {
    word.kind = c == ';'   ? NginxWord::Kind::semicolon
                : c == '{' ? NginxWord::Kind::open
                           : NginxWord::Kind::close;
    step();
    return word;
  }
  word.kind = NginxWord::Kind::word;
  while (!done() && !space(text_[at_]) && text_[at_] != ';') {
    // ${name} belongs to the word; any other { begins a block.
    if (text_[at_] == '{' && !word.text.ends_with('$')) break;
    if (text_[at_] == '}' && word.text.find("${") == std::string::npos) break;
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) step();
    word.text += text_[at_];
    step();
    if (word.text.size() > kMaxWordBytes)
      return refuse(place, word.mark, "this word is longer than nginx allows");
  }
  return word;
}

Result<NginxWord> NginxWords::quoted(std::string_view place) {
  NginxWord word;
  word.kind = NginxWord::Kind::word;
  word.mark = mark_;
  const char quote = text_[at_];
  step();
  while (!done() && text_[at_] != quote) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) step();
    word.text += text_[at_];
    step();
  }
  if (done()) return refuse(place, word.mark, "this quote is not closed");
  step();
  return word;
}

void NginxWords::skip_block() {
  for (std::size_t depth = 1; !done() && depth != 0; step()) {
    const char c = text_[at_];
    if (c == '{') ++depth;
    if (c == '}') --depth;
    if (c == '-' && text_.substr(at_).starts_with("--")) {  // Lua's comments and strings may hold braces.
      while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') step();
    } else if (c == '"' || c == '\'') {
      const std::string_view rest = text_.substr(at_ + 1, kMaxWordBytes);
      const auto end = rest.find_first_of(c == '"' ? "\"\n" : "'\n");
      if (end == std::string_view::npos || rest[end] == '\n') continue;
      for (std::size_t i = 0; i <= end; ++i) step();
    }
  }
}

}  // namespace ringshift::importing
