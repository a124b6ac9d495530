#include "base/encoding.h"

#include <gtest/gtest.h>

namespace ringshift::base {
namespace {

struct Case {
  std::string_view bytes, hex, base64;
};
// RFC 4648 section 10, and the bytes that sign extension would spoil.
constexpr Case kCases[] = {
    {"", "", ""},
    {"f", "66", "Zg=="},
    {"fo", "666f", "Zm8="},
    {"foo", "666f6f", "Zm9v"},
    {"foob", "666f6f62", "Zm9vYg=="},
    {"\xff\xfe", "fffe", "//4="},
};

TEST(Encoding, BothWays) {
  for (const Case& c : kCases) {
    EXPECT_EQ(to_hex(c.bytes), c.hex);
    EXPECT_EQ(from_hex(c.hex), c.bytes);
    EXPECT_EQ(to_base64(c.bytes), c.base64);
    EXPECT_EQ(from_base64(c.base64), c.bytes);
  }
  EXPECT_EQ(from_hex("FFfe"), "\xff\xfe");
}

TEST(Encoding, RefusesWhatIsNotWhole) {
  for (const std::string_view text : {"6", "6g", " 66"}) EXPECT_EQ(from_hex(text), std::nullopt) << text;
  for (const std::string_view text : {"Zg=", "Zg==Zg==", "Zg\n=", "=AAA", "Z===", "Z*=="}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

TEST(Encoding, NumbersWholeOrNotAtAll) {
  EXPECT_EQ(parse_u64("18446744073709551615"), 18446744073709551615ULL);
  for (const std::string_view text : {"", "-1", "+1", "1 ", "18446744073709551616", "0x1"}) {
    EXPECT_EQ(parse_u64(text), std::nullopt) << text;
  }
}

}  // namespace
TEST(Printable, IsAsciiWhateverTheBytes) {
  EXPECT_EQ(printable("user:42", 100), "user:42");
  EXPECT_EQ(printable(std::string_view("\xff\x00\n\\", 4), 100), "\\xff\\x00\\x0a\\x5c");
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef... (7 bytes)");
}

}  // namespace ringshift::base
