// Where replies end: a table, every split of each row, and decode() as the second opinion.
#include "protocol/resp/reply_framer.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/resp/value.h"

namespace ringshift::protocol::resp {
namespace {

using State = ReplyFramer::State;

// An exactly sized heap block, so that a sanitizer sees any read past the end.
struct Block {
  explicit Block(std::string_view from) : data(new char[from.size()]), size(from.size()) {
    std::copy(from.begin(), from.end(), data.get());
  }
  [[nodiscard]] std::string_view view() const { return {data.get(), size}; }
  std::unique_ptr<char[]> data;
  std::size_t size;
};

ReplyFramer::Frame feed(ReplyFramer& framer, std::string_view bytes) {
  return framer.next(Block(bytes).view());
}

struct Case {
  std::string_view bytes;
  std::string_view why;
  bool push = false;
};

constexpr Case kWhole[] = {
    {"+OK\r\n", "simple string"},
    {"+\r\n", "an empty one"},
    {"+a longer status than fits the short way\r\n", "simple string"},
    {"-ERR unknown command\r\n", "error"},
    {":0\r\n", "integer"},
    {":-9223372036854775808\r\n", "the smallest integer"},
    {"$1\r\nv\r\n", "bulk"},
    {"$0\r\n\r\n", "empty bulk"},
    {"$-1\r\n", "RESP2 null"},
    {"$4\r\n\r\n\r\n\r\n", "a bulk of line ends"},
    {"$0000000012\r\nabcdefghijkl\r\n", "more digits than the inline way takes"},
    {"*-1\r\n", "null array"},
    {"*0\r\n", "empty array"},
    {"*3\r\n$1\r\na\r\n$-1\r\n:5\r\n", "array with a null"},
    {"*2\r\n*2\r\n+a\r\n*0\r\n*1\r\n$2\r\nxy\r\n", "nested arrays"},
    {"_\r\n", "RESP3 null"},
    {"#t\r\n", "boolean"},
    {",3.25\r\n", "double"},
    {"(3492890328409238509324850943850943825024385\r\n", "big number"},
    {"!21\r\nSYNTAX invalid syntax\r\n", "bulk error"},
    {"=15\r\ntxt:Some string\r\n", "verbatim"},
    {"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", "map"},
    {"%0\r\n", "empty map"},
    {"~2\r\n:1\r\n:2\r\n", "set"},
    {"|1\r\n+ttl\r\n:3\r\n$1\r\nv\r\n", "an attribute belongs to what follows"},
    {"*2\r\n:1\r\n|1\r\n+a\r\n+b\r\n:2\r\n", "an attribute inside an array is no item"},
    {">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n", "push", true},
    {"|1\r\n+a\r\n+b\r\n>1\r\n+x\r\n", "a push behind an attribute", true},
};

TEST(ReplyFramer, FindsTheEndOfEachKind) {
  for (const Case& c : kWhole) {
    ReplyFramer framer;
    const auto frame = feed(framer, c.bytes);
    EXPECT_EQ(frame.state, State::complete) << c.why;
    EXPECT_EQ(frame.size, c.bytes.size()) << c.why;
    EXPECT_EQ(frame.push, c.push) << c.why;
    const auto decoded = decode(c.bytes);
    ASSERT_TRUE(decoded && *decoded) << c.why;
    EXPECT_EQ((*decoded)->size, c.bytes.size()) << c.why;
  }
}

TEST(ReplyFramer, NeedsTheLastByteAndTakesNoneOfTheNextReply) {
  for (const Case& c : kWhole) {
    for (std::size_t size = 0; size < c.bytes.size(); ++size) {
      ReplyFramer framer;
      EXPECT_EQ(feed(framer, c.bytes.substr(0, size)).state, State::more)
          << c.why << ", " << size << " bytes";
    }
    for (const Case& next : kWhole) {
      ReplyFramer framer;
      EXPECT_EQ(feed(framer, std::string(c.bytes) + std::string(next.bytes)).size, c.bytes.size()) << c.why;
    }
  }
}

TEST(ReplyFramer, AnySplitGivesTheSameFrame) {
  for (const Case& c : kWhole) {
    for (std::size_t first = 0; first <= c.bytes.size(); ++first) {
      for (std::size_t second = first; second <= c.bytes.size(); ++second) {
        ReplyFramer framer;
        auto frame = feed(framer, c.bytes.substr(0, first));
        if (frame.state == State::more) frame = feed(framer, c.bytes.substr(0, second));
        if (frame.state == State::more) frame = feed(framer, c.bytes);
        ASSERT_EQ(frame.state, State::complete) << c.why << " " << first << " " << second;
        ASSERT_EQ(frame.size, c.bytes.size()) << c.why;
        ASSERT_EQ(frame.push, c.push) << c.why;
        // And it is ready for the next one.
        ASSERT_EQ(feed(framer, "$2\r\nok\r\n").size, 8U) << c.why << " " << first << " " << second;
      }
    }
  }
}

TEST(ReplyFramer, RefusesWhatIsNoReply) {
  const std::string too_long = "*" + std::string(40, '1') + "\r\n";
  const Case cases[] = {
      {"GET k\r\n", "unknown first byte"}, {"\r\n", "an empty line"},
      {"$?\r\n", "a streamed string"},     {"*?\r\n", "a streamed array"},
      {"$abc\r\n", "no number"},           {"$\r\n", "no number at all"},
      {"$-2\r\n", "a negative length"},    {"$536870913\r\n", "over 512 MiB"},
      {"*67108865\r\n", "too many items"}, {"$1\r\nvxx", "no CR LF behind a bulk"},
      {"*1\r\nx\r\n", "broken inside"},    {too_long, "a header without end"},
  };
  for (const Case& c : cases) {
    ReplyFramer framer;
    EXPECT_EQ(feed(framer, c.bytes).state, State::broken) << c.why;
    EXPECT_STRNE(framer.problem(), "") << c.why;
    EXPECT_EQ(feed(framer, c.bytes).state, State::broken) << "stays broken: " << c.why;
    framer.reset();
    EXPECT_EQ(feed(framer, "+OK\r\n").state, State::complete) << c.why;
  }
}

// A random reply, at most `depth` deep.
void grow(std::string& out, std::mt19937& random, int depth) {
  const auto number = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  switch (number(depth > 0 ? 13 : 8)) {
    case 0:
      out += "+" + std::string(static_cast<std::size_t>(number(40)), 's') + "\r\n";
      return;
    case 1:
      out += ":" + std::to_string(number(1000000)) + "\r\n";
      return;
    case 2:
      out += number(2) == 0 ? "$-1\r\n" : "*-1\r\n";
      return;
    case 3:
      out += "_\r\n";
      return;
    case 4:
      out += number(2) == 0 ? "#t\r\n" : ",1e9\r\n";
      return;
    case 5:
    case 6:
    case 7: {
      std::string body;
      for (int i = number(60); i > 0; --i) body += "\r\n$*+x"[number(6)];
      out += "$!=$$$"[number(3)] + std::to_string(body.size()) + "\r\n" + body + "\r\n";
      return;
    }
    case 8:
    case 9:
    case 10: {
      const int count = number(5);
      out += "*~>"[number(3)] + std::to_string(count) + "\r\n";
      for (int i = 0; i < count; ++i) grow(out, random, depth - 1);
      return;
    }
    default: {
      const int count = number(3);
      const bool attribute = number(2) == 0;
      out += (attribute ? "|" : "%") + std::to_string(count) + "\r\n";
      for (int i = 0; i < 2 * count + (attribute ? 1 : 0); ++i) grow(out, random, depth - 1);
    }
  }
}

TEST(ReplyFramer, AgreesWithDecodeOnRandomStreamsInRandomPieces) {
  std::mt19937 random(20250101);
  for (int round = 0; round < 3000; ++round) {
    std::string stream;
    std::vector<std::size_t> ends;
    for (int i = 0; i < 5; ++i) {
      grow(stream, random, 4);
      ends.push_back(stream.size());
    }
    ReplyFramer framer;
    std::size_t begin = 0, seen = 0;
    std::vector<std::size_t> found;
    while (seen < stream.size()) {
      seen = std::min<std::size_t>(stream.size(), seen + 1 + random() % 30);
      for (;;) {
        const auto frame = feed(framer, std::string_view(stream).substr(begin, seen - begin));
        ASSERT_NE(frame.state, State::broken) << framer.problem() << "\n" << stream;
        if (frame.state == State::more) break;
        const auto decoded = decode(std::string_view(stream).substr(begin));
        ASSERT_TRUE(decoded && *decoded);
        ASSERT_EQ((*decoded)->size, frame.size);
        begin += frame.size;
        found.push_back(begin);
        if (begin == seen) break;
      }
    }
    ASSERT_EQ(found, ends) << stream;
  }
}

TEST(ReplyFramer, GoesOnWhereItStopped) {
  // A million items, a byte at a time with a view that never grows by much: rescanning would take minutes.
  std::string stream = "*300000\r\n";
  for (int i = 0; i < 300000; ++i) stream += ":1\r\n";
  ReplyFramer framer;
  for (std::size_t size = 1; size < stream.size(); size += 3) {
    ASSERT_EQ(framer.next(std::string_view(stream).substr(0, size)).state, State::more);
  }
  EXPECT_EQ(framer.next(stream).size, stream.size());
}

TEST(ReplyFramer, NestingCostsNoStack) {
  std::string stream;
  for (int i = 0; i < 1000000; ++i) stream += "*1\r\n";
  stream += ":1\r\n";
  ReplyFramer framer;
  EXPECT_EQ(framer.next(stream).size, stream.size());
}

}  // namespace
}  // namespace ringshift::protocol::resp
