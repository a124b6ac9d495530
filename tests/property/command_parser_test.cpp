// Commands of any bytes, encoded and cut anywhere, come out of the parser as they went in.
#include "protocol/resp/command_parser.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "protocol/resp/value.h"
#include "tests/unit/protocol/parse_all.h"

namespace ringshift::protocol::resp {
namespace {

RC_GTEST_PROP(CommandParserProperty, GivesBackWhatWasEncoded,
              (const std::vector<std::vector<std::string>>& commands, std::vector<std::size_t> cuts)) {
  std::string bytes;
  std::string expected;
  for (const std::vector<std::string>& command : commands) {
    append_command(bytes, std::vector<std::string_view>(command.begin(), command.end()));
    for (const std::string& argument : command) expected += "[" + argument + "]";
    if (!command.empty()) expected += ";";  // *0 is skipped.
  }
  for (std::size_t& cut : cuts) cut %= bytes.size() + 1;
  std::ranges::sort(cuts);
  RC_ASSERT(transcript(bytes, {}) == expected);
  RC_ASSERT(transcript(bytes, cuts) == expected);
}

RC_GTEST_PROP(CommandParserProperty, NoiseIsTheSameInAnyPieces,
              (const std::string& noise, std::vector<std::size_t> cuts)) {
  // Starting like an array, so that more than the inline path is met.
  const std::string bytes = "*2\r\n$3\r\nGET\r\n$" + noise;
  for (std::size_t& cut : cuts) cut %= bytes.size() + 1;
  std::ranges::sort(cuts);
  RC_ASSERT(transcript(bytes, cuts) == transcript(bytes, {}));
}

}  // namespace
}  // namespace ringshift::protocol::resp
