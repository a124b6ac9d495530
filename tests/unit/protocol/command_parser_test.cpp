#include "protocol/resp/command_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parse_all.h"

namespace ringshift::protocol::resp {
namespace {

using testing::ElementsAre;

struct Case {
  std::string_view name;
  std::string input;
  std::string expected;  // As Transcript prints it.
};

// What a real redis-server 7.0 does with the same bytes (tests/unit/proxy/garbage_test.cpp asks one).
const std::vector<Case> kCases = {
    {"one command", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "[GET][k];"},
    {"two commands", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", "[PING];[PING];"},
    {"empty arguments", "*2\r\n$0\r\n\r\n$0\r\n\r\n", "[][];"},
    {"binary arguments", std::string("*2\r\n$3\r\nGET\r\n$4\r\n\r\n\0*\r\n", 23),
     std::string("[GET][\r\n\0*];", 12)},
    {"empty arrays are skipped", "*0\r\n*-5\r\n*-1\r\n*1\r\n$4\r\nPING\r\n", "[PING];"},
    {"the line end's second byte is not looked at", "*1\rX$4\rXPINGXX", "[PING];"},
    {"inline", "SET k  v\r\n", "[SET][k][v];"},
    {"inline, line feed alone", "PING\nPING\n", "[PING];[PING];"},
    {"blank lines are skipped", "\r\n\n  \r\nPING\r\n", "[PING];"},
    {"double quotes", "SET \"a b\" \"\\x41\\n\\\"\\q\"\r\n", "[SET][a b][A\n\"q];"},
    {"single quotes", "SET 'a \\' b\\n' ''\r\n", "[SET][a ' b\\n][];"},
    {"quotes inside a word", "a\"b c\"\r\n", "[ab c];"},
    {"unbalanced", "SET \"a\r\n", "!-ERR Protocol error: unbalanced quotes in request"},
    {"text behind a closing quote", "SET \"a\"b\r\n", "!-ERR Protocol error: unbalanced quotes in request"},
    {"no number", "*x\r\n", "!-ERR Protocol error: invalid multibulk length"},
    {"plus sign", "*+1\r\n", "!-ERR Protocol error: invalid multibulk length"},
    {"leading zero", "*01\r\n", "!-ERR Protocol error: invalid multibulk length"},
    {"too many arguments", "*2147483648\r\n", "!-ERR Protocol error: invalid multibulk length"},
    {"no dollar", "*1\r\n4\r\nPING\r\n", "!-ERR Protocol error: expected '$', got '4'"},
    {"negative bulk", "*1\r\n$-1\r\n", "!-ERR Protocol error: invalid bulk length"},
    {"600 MB bulk", "*1\r\n$629145600\r\n", "!-ERR Protocol error: invalid bulk length"},
    {"bulk length out of range", "*1\r\n$99999999999999999999\r\n",
     "!-ERR Protocol error: invalid bulk length"},
    {"a good command before a bad one", "PING\r\n*1\r\n$x\r\n",
     "[PING];!-ERR Protocol error: invalid bulk length"},
    {"long inline", std::string(70000, 'a'), "!-ERR Protocol error: too big inline request"},
    {"long count", "*" + std::string(70000, '1'), "!-ERR Protocol error: too big mbulk count string"},
    {"long bulk count", "*1\r\n$" + std::string(70000, '1'),
     "!-ERR Protocol error: too big bulk count string"},
    {"incomplete", "*2\r\n$3\r\nGET\r\n$1\r\n", ""},
};

TEST(CommandParser, UnderstandsWholeInput) {
  for (const Case& c : kCases) EXPECT_EQ(transcript(c.input, {}), c.expected) << c.name;
}

TEST(CommandParser, SplitsChangeNothing) {
  for (const Case& c : kCases) {
    if (c.input.size() > 1000) {
      EXPECT_EQ(transcript(c.input, {1, 2, 5, 65536}), c.expected) << c.name;
      continue;
    }
    for (std::size_t i = 0; i <= c.input.size(); ++i) {
      for (std::size_t j = i; j <= c.input.size(); ++j) {
        ASSERT_EQ(transcript(c.input, {i, j}), c.expected) << c.name << " split at " << i << ", " << j;
      }
    }
  }
}

TEST(CommandParser, RawIsTheWholeCommandFitForAServer) {
  CommandParser parser;
  const std::string array = "*0\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
  ASSERT_EQ(parser.parse(array), CommandParser::State::command);
  EXPECT_EQ(parser.raw(), array.substr(4));
  EXPECT_EQ(parser.consumed(), array.size());
  ASSERT_EQ(parser.parse("GET 'k'\r\n"), CommandParser::State::command);
  EXPECT_EQ(parser.raw(), array.substr(4));
}

TEST(CommandParser, SaysHowMuchItWants) {
  CommandParser parser;
  ASSERT_EQ(parser.parse("*1\r\n$1000\r\nabc"), CommandParser::State::need_more);
  EXPECT_EQ(parser.wanted(), 4U + 7U + 1002U);
}

TEST(CommandParser, DropsEmptyCommandsFromTheFront) {
  CommandParser parser;
  std::string buffer = "*0\r\n*1\r\n$4\r\nPI";
  ASSERT_EQ(parser.parse(buffer), CommandParser::State::need_more);
  ASSERT_EQ(parser.consumed(), 4U);
  buffer.erase(0, parser.consumed());
  parser.drop_front();
  buffer += "NG\r\n";
  ASSERT_EQ(parser.parse(buffer), CommandParser::State::command);
  EXPECT_EQ(parser.argument(0), "PING");
}

}  // namespace
}  // namespace ringshift::protocol::resp
