// Golden vectors, taken from other programs. A failing row means that users' keys would move: fix the code.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/encoding.h"
#include "hashing/crc16.h"
#include "hashing/hash_tag.h"
#include "hashing/sha256.h"
#include "hashing/xxh3.h"

namespace ringshift::hashing {
namespace {

constexpr std::uint32_t kSlotMask = 16383;

std::ifstream vectors(const std::string& name) {
  std::ifstream file(RINGSHIFT_SOURCE_DIR "/tests/vectors/" + name);
  EXPECT_TRUE(file.good()) << name;
  return file;
}

std::string bytes(const std::string& hex) { return hex == "-" ? "" : base::from_hex(hex).value(); }

TEST(Vectors, Xxh3AtEveryLengthClass) {
  auto file = vectors("xxh3.txt");
  std::uint64_t seed = 0;
  std::string input, hash;
  int rows = 0;
  while (file >> seed >> input >> hash) {
    ++rows;
    EXPECT_EQ(xxh3(bytes(input), seed), std::stoull(hash, nullptr, 16)) << "seed " << seed << " of " << input;
    if (seed == 0) {
      EXPECT_EQ(xxh3(bytes(input)), std::stoull(hash, nullptr, 16)) << input;
    } else {
      EXPECT_EQ(slice_of(bytes(input)), std::stoull(hash, nullptr, 16) >> 54) << input;
    }
  }
  EXPECT_EQ(rows, 48);
}

TEST(Vectors, RedisSlots) {
  const auto file = nlohmann::json::parse(vectors("redis_keyslot.json"));
  const HashTag tag("{}");
  ASSERT_EQ(file["keys"].size(), 800U);
  for (std::size_t i = 0; i < file["keys"].size(); ++i) {
    const std::string hex = file["keys"][i];
    EXPECT_EQ(crc16(tag.apply(bytes(hex))) & kSlotMask, file["slots"][i].get<std::uint32_t>()) << hex;
  }
}

TEST(Vectors, RedisSlotsOfTags) {
  auto file = vectors("redis_keyslot_tags.txt");
  const HashTag tag("{}");
  std::uint32_t slot = 0;
  std::string hex;
  int rows = 0;
  while (file >> slot >> hex) {
    ++rows;
    EXPECT_EQ(crc16(tag.apply(bytes(hex))) & kSlotMask, slot) << bytes(hex);
  }
  EXPECT_EQ(rows, 18);
}

TEST(Crc16, CheckValueOfXmodem) { EXPECT_EQ(crc16("123456789"), 0x31C3); }

TEST(Sha256, FipsExamples) {  // FIPS 180-4, appendix B.1, and the empty message.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

struct TagCase {
  std::string_view rule, key, tagged, why;
};
constexpr TagCase kTags[] = {
    {"{}", "{a}b", "a", "the tag alone"},
    {"{}", "a{}b{c}", "a{}b{c}", "an empty first tag: the whole key"},
    {"{}", "a{b", "a{b", "never closed"},
    {"{}", "}a{b}", "b", "a close before the open does not count"},
    {"{}", "a{{b}}", "{b", "the first close after the first open"},
    {"", "{a}b", "{a}b", "no rule"},
    {"$$", "x$tag$y", "tag", "open and close may be the same"},
    {"$$", "x$$y", "x$$y", "and then nothing between them is empty too"},
};

// The quick look must never call a key whole that has an open character, wherever it stands and whatever is
// beside it; and must be of use for keys of usual lengths.
TEST(HashTag, AQuickLookNeverMissesTheOpenCharacter) {
  for (const char open : {'{', '\x80', '\0', '\xff'}) {
    const HashTag tag(std::string{open, '}'});
    for (const char other : {'a', static_cast<char>(open + 1), static_cast<char>(open - 1), '\x81', '\x7f'}) {
      if (other == open) continue;
      for (std::size_t length = 0; length <= 40; ++length) {
        std::string key(length, other);
        EXPECT_EQ(tag.surely_absent(key), length >= 4 && length <= 32) << "length " << length;
        for (std::size_t at = 0; at < length; ++at) {
          key[at] = open;
          EXPECT_FALSE(tag.surely_absent(key)) << "length " << length << " at " << at;
          key[at] = other;
        }
      }
    }
  }
  EXPECT_TRUE(HashTag().surely_absent("{a}")) << "no rule: the whole key";
}

TEST(HashTag, Rules) {
  for (const TagCase& c : kTags) EXPECT_EQ(HashTag(c.rule).apply(c.key), c.tagged) << c.why;
}

}  // namespace
}  // namespace ringshift::hashing
