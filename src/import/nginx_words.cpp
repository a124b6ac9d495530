#include "import/nginx_words.h"

#include "import/draft.h"

namespace ringshift::importing {
namespace {

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
    if (text_[at_] == '{') ++depth;
    if (text_[at_] == '}') --depth;
  }
}

}  // namespace ringshift::importing
