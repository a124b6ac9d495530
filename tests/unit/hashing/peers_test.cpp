// Check values of the peers' hashes, and every value that a real libmemcached gave.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/encoding.h"
#include "hashing/peers/crc32.h"
#include "hashing/peers/digests.h"
#include "hashing/peers/haproxy_hashes.h"
#include "hashing/peers/java_hashes.h"
#include "hashing/peers/lookup3.h"
#include "hashing/peers/md5.h"
#include "hashing/peers/memcached_hashes.h"
#include "hashing/peers/murmur.h"

namespace ringshift::hashing::peers {
namespace {

nlohmann::json vectors(const std::string& name) {
  std::ifstream file(RINGSHIFT_SOURCE_DIR "/tests/vectors/" + name);
  EXPECT_TRUE(file.good()) << name;
  return nlohmann::json::parse(file);
}

TEST(PeerHashes, PublishedCheckValues) {
  EXPECT_EQ(crc32("123456789"), 0xcbf43926U) << "CRC-32's check value";
  EXPECT_EQ(crc32_more(crc32("1234"), "56789"), crc32("123456789"));
  EXPECT_EQ(md5("abc"), (Md5Words{0x98500190, 0xb04fd23c, 0x7d3f96d6, 0x727fe128})) << "RFC 1321";
  EXPECT_EQ(sha1_be("abc"), 0xa9993e36U) << "FIPS 180";
  EXPECT_EQ(xxh64(""), 0xef46db3751d8e999U) << "xxHash's specification";
  EXPECT_EQ(lookup3("Four score and seven years ago", 0), 0x17770551U) << "lookup3.c";
  EXPECT_EQ(lookup3("", 0), 0xdeadbeefU) << "lookup3.c";
  EXPECT_EQ(murmur3_x86_32("", 1), 0x514e28b7U);
  EXPECT_EQ(murmur3_x86_32("test", 0x9747b28c), 0x704b81dcU);
  EXPECT_EQ(murmur3_x86_32("Hello, world!", 0x9747b28c), 0x24884cbaU);
  EXPECT_EQ(java_native("hello"), 99162322U) << "\"hello\".hashCode()";
  EXPECT_EQ(fnv1a_32("a"), 0xe40c292cU) << "Noll's table";
  EXPECT_EQ(fnv1_32("a"), 0x050c5d7eU) << "Noll's table";
  EXPECT_EQ(one_at_a_time("a"), 0xca2e9442U) << "Jenkins";
  EXPECT_EQ(djb2("a"), 177670U);
  EXPECT_EQ(sdbm("a"), 97U);
}

// Against OpenSSL's, at every length around the block's borders.
TEST(PeerHashes, Md5IsOpenSslsAtEveryLength) {
  const auto openssl = Digest::find("md5");
  ASSERT_TRUE(openssl);
  std::string text;
  for (int length = 0; length < 300; ++length) {
    std::array<unsigned char, Digest::kMaxBytes> out{};
    openssl->compute(text, out.data());
    const Md5Words words = md5(text);
    EXPECT_EQ(std::memcmp(words.data(), out.data(), sizeof words), 0) << "length " << length;
    text.push_back(static_cast<char>(length * 7 + 1));
  }
}

TEST(PeerHashes, ABatchOfMd5sIsOneByOne) {
  std::string text;
  for (int i = 0; i < 200; ++i) text.push_back(static_cast<char>(i * 11 + 3));
  for (std::size_t count = 0; count <= 40; ++count) {  // Full groups of eight and what is left over.
    std::vector<std::string_view> messages;
    for (std::size_t i = 0; i < count; ++i)  // Of every length around the block's borders, in no order.
      messages.push_back(std::string_view(text).substr(i, (i * 29 + count) % 130));
    std::vector<std::uint64_t> words(count, 7);
    md5_first_words(messages, words);
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(words[i], md5(messages[i])[0]) << "message " << i << " of " << count;
  }
}

TEST(PeerHashes, SignedBytes) {
  EXPECT_NE(fnv1a_32("\x80"), (2166136261U ^ 0x80) * 16777619U) << "a high byte is negative to the peers";
  EXPECT_EQ(fnv1a_32("\x80"), (2166136261U ^ 0xffffff80U) * 16777619U);
}

TEST(PeerHashes, JavaCountsUtf16Units) {
  EXPECT_EQ(java_native("\xe9\x94\xae"), 0x952eU) << "one unit of U+952E";
  EXPECT_EQ(java_native("\xf0\x9f\x98\x80"), 0xd83dU * 31 + 0xde00U) << "the surrogates of U+1F600";
  EXPECT_EQ(java_native("\xff"), 0xfffdU) << "no UTF-8: the replacement character";
}

TEST(PeerHashes, AllOfLibmemcacheds) {
  const auto keys = vectors("keys.json")["keys"];
  int checked = 0;
  const auto recordings = vectors("libmemcached.json");
  for (const auto& [name, recorded] : recordings["hash_values"].items()) {
    if (!recorded["supported"].get<bool>()) continue;  // Debian's build answers 1 for every key.
    const NamedHash* hash =
        find_hash(libmemcached_hashes(), name.starts_with("default") ? "default" : std::string_view(name));
    ASSERT_NE(hash, nullptr) << name;
    for (std::size_t i = 0; i < keys.size(); ++i, ++checked) {
      const std::string key = base::from_hex(keys[i].get<std::string>()).value();
      EXPECT_EQ(hash->hash(key), recorded["values"][i].get<std::uint32_t>()) << name << " of " << keys[i];
    }
  }
  EXPECT_EQ(checked, 9300);
}

}  // namespace
}  // namespace ringshift::hashing::peers
