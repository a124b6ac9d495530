// Check values of the 64-bit hashes, published with them or computed by other programs.
#include "hashing/hash64.h"

#include <gtest/gtest.h>

#include <string>

namespace ringshift::hashing {
namespace {

TEST(Hash64, Murmur3PublishedValues) {
  EXPECT_EQ(murmur3_64(""), 0U);
  EXPECT_EQ(murmur3_64("hello"), 0xcbd8a7b341bd9b02ULL);
  EXPECT_EQ(murmur3_64("The quick brown fox jumps over the lazy dog"), 0xe34bbc7bbc071b6cULL);
}

TEST(Hash64, Fnv1aPublishedValuesUnderTheFinaliser) {
  EXPECT_EQ(fnv1a_64_mixed(""), mix(0xcbf29ce484222325ULL));
  EXPECT_EQ(fnv1a_64_mixed("a"), mix(0xaf63dc4c8601ec8cULL));
  EXPECT_EQ(fnv1a_64_mixed("foobar"), mix(0x85944171f73967e8ULL));
}

TEST(Hash64, NamesGoBothWays) {
  for (const Hash64 hash : {Hash64::xxh3, Hash64::murmur3, Hash64::fnv1a_64})
    EXPECT_EQ(hash64_named(to_string(hash)), hash);
  EXPECT_FALSE(hash64_named("md5"));
  EXPECT_EQ(hash64(Hash64::xxh3, "k"), xxh3("k"));
}

}  // namespace
}  // namespace ringshift::hashing
