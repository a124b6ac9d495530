// Whatever the split, the tail of a command ends where the parser says that the command ends.
#include "protocol/resp/command_tail.h"

#include <gtest/gtest.h>

#include <string>

namespace ringshift::protocol::resp {
namespace {

using State = CommandTail::State;

const std::string kCommand =
    "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$20\r\n0123456789\r\n$5\r\n1234\r\n$2\r\nEX\r\n$3\r\n100\r\n";

// The tail of `bytes` from where the parser stands after its first `seen` bytes.
CommandTail tail_after(CommandParser& parser, std::string_view bytes, std::size_t seen) {
  EXPECT_EQ(parser.parse(bytes.substr(0, seen)), CommandParser::State::need_more);
  const CommandParser::UnderWay so_far = parser.under_way();
  EXPECT_LE(so_far.head, seen);
  return CommandTail(so_far);
}

TEST(CommandTail, EndsWhereTheCommandEndsForAnySplit) {
  const std::string bytes = kCommand + "*1\r\n$4\r\nPING\r\n";
  for (std::size_t seen = 5; seen < kCommand.size(); ++seen) {
    for (std::size_t step = 1; step < kCommand.size(); ++step) {
      CommandParser parser;
      CommandTail tail = tail_after(parser, bytes, seen);
      std::size_t at = parser.under_way().head;
      CommandTail::Step result{State::more, 0};
      while (result.state == State::more && at < bytes.size()) {
        result = tail.take(std::string_view(bytes).substr(at, step));
        at += result.taken;
      }
      ASSERT_EQ(result.state, State::whole) << seen << " " << step;
      ASSERT_EQ(at, kCommand.size()) << seen << " " << step;
      parser.leave();
      ASSERT_EQ(parser.parse(std::string_view(bytes).substr(at)), CommandParser::State::command);
      ASSERT_EQ(parser.argument(0), "PING");
    }
  }
}

TEST(CommandTail, WhatIsShownOfTheArgumentUnderWay) {
  CommandParser parser;
  const std::string_view part = std::string_view(kCommand).substr(0, 34);
  ASSERT_EQ(parser.parse(part), CommandParser::State::need_more);
  EXPECT_EQ(parser.under_way().arguments, 5U);
  EXPECT_EQ(parser.under_way().complete, 2U);
  EXPECT_EQ(parser.under_way().body_left, 22U);
  parser.show(part);
  ASSERT_EQ(parser.argument_count(), 3U);
  EXPECT_EQ(parser.argument(1), "k");
  EXPECT_EQ(parser.argument(2), part.substr(parser.under_way().head));
  parser.hide();
  ASSERT_EQ(parser.parse(kCommand), CommandParser::State::command) << "and it goes on as if nothing had been";
  EXPECT_EQ(parser.argument_count(), 5U);
}

TEST(CommandTail, RefusesWhatTheParserRefuses) {
  for (const std::string_view header :
       {"$x\r\n", "$-1\r\n", "$01\r\n", "$536870913\r\n", ":5\r\n", "\r\n", "$\r\n",
        "$99999999999999999999999999\r\n", "$ 5\r\n", "$5 \r\n", "$+5\r\n"}) {
    const std::string bytes = "*3\r\n$1\r\na\r\n$5\r\n12345\r\n" + std::string(header);
    CommandParser whole;
    CommandParser parser;
    CommandTail tail = tail_after(parser, bytes, 20);
    ASSERT_EQ(whole.parse(bytes), CommandParser::State::error) << header;
    const CommandTail::Step step = tail.take(std::string_view(bytes).substr(parser.under_way().head));
    EXPECT_EQ(step.state, State::broken) << header;
    EXPECT_EQ(tail.error(), whole.error()) << header;
  }
}

TEST(CommandTail, TheWholeCommandHasItsBound) {
  CommandLimits limits;
  limits.max_command_bytes = 100;
  CommandParser parser(limits);
  ASSERT_EQ(parser.parse("*3\r\n$1\r\na\r\n$50\r\n"), CommandParser::State::need_more);
  CommandTail tail(parser.under_way(), limits);
  EXPECT_EQ(tail.take(std::string(50, 'x') + "\r\n$50\r\n").state, State::broken);
  EXPECT_EQ(tail.error(), "-ERR Protocol error: too big command");
}

}  // namespace
}  // namespace ringshift::protocol::resp
