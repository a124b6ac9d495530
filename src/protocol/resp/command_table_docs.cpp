// What COMMAND DOCS and HELP say, kept as generated text and written as replies when asked for.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#include "protocol/resp/command_table.h"

namespace ringshift::protocol::resp {
namespace {

// In the order of all_commands().
constexpr std::string_view kDocs[] = {
#define RS_DOCS(name, text) text,
#define RS_HELP(container, text)
#include "protocol/resp/command_table_docs.inc"
#undef RS_DOCS
#undef RS_HELP
};
constexpr std::string_view kDocNames[] = {
#define RS_DOCS(name, text) name,
#define RS_HELP(container, text)
#include "protocol/resp/command_table_docs.inc"
#undef RS_DOCS
#undef RS_HELP
};

struct Help {
  std::string_view container, text;
};
constexpr Help kHelp[] = {
#define RS_DOCS(name, text)
#define RS_HELP(container, text) {container, text},
#include "protocol/resp/command_table_docs.inc"
#undef RS_DOCS
#undef RS_HELP
};

// Reads the notation of scripts/generate-command-table and writes RESP. The text is our own and well formed.
class Writer {
 public:
  Writer(std::string_view text, bool resp3, std::string& out) : text_(text), resp3_(resp3), out_(out) {}

  // One value; a map announces `extra_pairs` more.
  void value(std::size_t extra_pairs = 0) {
    switch (text_[at_]) {
      case '{':
        return list('}', extra_pairs);
      case '[':
        return list(']', 0);
      case '<':
        return list('>', 0);
      case ':':
      case '+':
        fmt::format_to(std::back_inserter(out_), "{}\r\n", word());
        return;
      case '\'':
      case '~':
      case '"':
        return bulk(quoted());
      default:
        return bulk(word());
    }
  }

 private:
  void list(char close, std::size_t extra_pairs) {
    ++at_;
    const std::size_t header_at = out_.size();
    std::size_t items = 0;
    while (text_[at_] != close) {
      value();
      ++items;
      if (text_[at_] == ' ') ++at_;
    }
    ++at_;
    items += 2 * extra_pairs;
    std::string header = fmt::format("*{}\r\n", items);
    if (resp3_ && close == '}') header = fmt::format("%{}\r\n", items / 2);
    if (resp3_ && close == '>') header[0] = '~';
    out_.insert(header_at, header);
  }
  std::string_view word() {
    const std::size_t from = at_;
    at_ = std::min(text_.find_first_of(" }]>", at_), text_.size());
    return text_.substr(from, at_ - from);
  }
  std::string_view quoted() {
    const std::size_t from = at_ + 1;
    at_ = text_.find(text_[at_], from) + 1;
    return text_.substr(from, at_ - 1 - from);
  }
  void bulk(std::string_view text) {
    fmt::format_to(std::back_inserter(out_), "${}\r\n{}\r\n", text.size(), text);
  }

  std::string_view text_;
  bool resp3_;
  std::string& out_;
  std::size_t at_ = 0;
};

}  // namespace

void append_docs(std::string& out, const Command& command, bool resp3, std::size_t extra_pairs) {
  const auto index = static_cast<std::size_t>(&command - all_commands().data());
  if (index >= std::size(kDocs) || kDocNames[index] != command.name) std::abort();  // See the test.
  std::string text;
  Writer(kDocs[index], resp3, text).value(extra_pairs);
  out += text;
}

std::string_view help_lines(std::string_view container) noexcept {
  for (const Help& help : kHelp) {
    if (help.container == container) return help.text;
  }
  return {};
}

}  // namespace ringshift::protocol::resp
