// nginx's configuration as words: bare or quoted, with ; { } as words of their own; # comments to the line's
// end.
#pragma once
#include <string>
#include <string_view>

#include "import/mark.h"
#include "ringshift/error.h"

namespace ringshift::importing {

struct NginxWord {
  enum class Kind : std::uint8_t { word, semicolon, open, close, end };
  Kind kind = Kind::end;
  std::string text;
  Mark mark;
};

class NginxWords {
 public:
  explicit NginxWords(std::string_view text) : text_(text) {}

  [[nodiscard]] Result<NginxWord> next(std::string_view place);
  // Over the rest of a block of another language, whose { was read, by counting its braces.
  void skip_block();

 private:
  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  void step();
  [[nodiscard]] Result<NginxWord> quoted(std::string_view place);

  std::string_view text_;
  std::size_t at_ = 0;
  Mark mark_;
};

}  // namespace ringshift::importing
