// Feeds input to a CommandParser in pieces, as a connection would, and writes down what came out.
#pragma once
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/resp/command_parser.h"

namespace ringshift::protocol::resp {

// Commands as "[arg][arg];", an error as "!message". Each piece is parsed in a heap block of exactly its
// size, so that AddressSanitizer sees a read past the end. `splits`: ascending offsets; those out of range
// are ignored.
inline std::string transcript(std::string_view input, std::vector<std::size_t> splits) {
  std::string out;
  CommandParser parser;
  std::string kept;
  splits.push_back(input.size());
  std::size_t fed = 0;
  for (const std::size_t split : splits) {
    if (split < fed || split > input.size()) continue;
    kept.append(input.substr(fed, split - fed));
    fed = split;
    const auto block = std::make_unique<char[]>(kept.size());
    kept.copy(block.get(), kept.size());
    std::string_view rest(block.get(), kept.size());
    while (true) {
      const auto state = parser.parse(rest);
      if (state == CommandParser::State::error) return out + "!" + parser.error();
      if (state == CommandParser::State::need_more) {
        if (parser.wanted() <= rest.size()) std::abort();  // It asks for bytes that it has.
        rest.remove_prefix(parser.consumed());
        parser.drop_front();
        break;
      }
      for (std::size_t i = 0; i < parser.argument_count(); ++i) {
        out.append("[").append(parser.argument(i)).append("]");
      }
      out += ";";
      rest.remove_prefix(parser.consumed());
    }
    kept.assign(rest);
  }
  return out;
}

}  // namespace ringshift::protocol::resp
