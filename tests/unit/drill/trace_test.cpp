#include "drill/trace.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ringshift::drill {
namespace {

Result<Trace> read(const std::string& text) {
  std::istringstream in(text);
  return read_trace(in, "t.txt");
}

TEST(Trace, ReadsKeysGetsAndSets) {
  const auto trace = read("user:1\n# a remark\n\nGET user:2\r\nset user:1 512\nget user:1\nSET user:3 7");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->keys, (std::vector<std::string>{"user:1", "user:2", "user:3"}));
  EXPECT_EQ(trace->bytes, (std::vector<std::uint32_t>{512, 0, 7}));
  ASSERT_EQ(trace->size(), 5U);
  const std::vector<std::pair<std::uint64_t, bool>> expected = {
      {0, false}, {1, false}, {0, true}, {0, false}, {2, true}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(trace->key(i), expected[i].first) << i;
    EXPECT_EQ(trace->update(i), expected[i].second) << i;
  }
  EXPECT_FALSE(trace->cut);
}

TEST(Trace, ErrorsNameTheLine) {
  const struct {
    std::string text, part;
  } cases[] = {{"a\nSET b\n", "t.txt:2"},
               {"SET b many\n", "size"},
               {"SET b 99999999999\n", "size"},
               {"SET b -1\n", "size"},
               {"DEL b\n", "not understood"},
               {"a b c d e\n", "not understood"},
               {"a\n" + std::string(kMaxTraceKey + 1, 'k') + "\n", "t.txt:2"},
               {"a\n" + std::string(kMaxTraceLine + 100, 'k') + "\n", "t.txt:2"},
               {"a\n" + std::string(kMaxTraceLine + 100, 'k'), "t.txt:2"},
               {"", "no request"},
               {"# nothing\n\n", "no request"}};
  for (const auto& c : cases) {
    const auto trace = read(c.text);
    ASSERT_FALSE(trace) << c.text.substr(0, 20);
    EXPECT_NE(trace.error().message.find(c.part), std::string::npos) << trace.error().message;
    EXPECT_LT(trace.error().message.size(), 300U);
  }
}

TEST(Trace, TheLongestLineIsRead) {
  const std::string key(kMaxTraceKey, 'k');
  const std::string line = key + std::string(kMaxTraceLine - key.size(), ' ');
  for (const char* end : {"", "\n"}) {
    const auto trace = read(line + end);
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->keys, std::vector<std::string>{key});
  }
}

TEST(Trace, BytesOfAnyKindAreNoHarm) {
  const std::string odd("GET \x01\xff\0\x7f\n\0\n", 11);
  const auto trace = read(odd);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->keys[0], std::string("\x01\xff\0\x7f", 4));
}

}  // namespace
}  // namespace ringshift::drill
