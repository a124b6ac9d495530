// Tokens, their ends and their ids, by a clock that the test moves.
#include "registry/token_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

namespace ringshift::registry {
namespace {

using testing::HasSubstr;

class TokenBookTest : public testing::Test {
 protected:
  TokenBookTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "ringshift-tokens-XXXXXX";
    directory = mkdtemp(pattern.data());
    store = store::Store::open({directory + "/registry.db", 0, nullptr}).value();
    book = TokenBook::open(*store, [this] { return now; }).value();
  }
  ~TokenBookTest() override {
    store.reset();
    std::filesystem::remove_all(directory);
  }
  Result<std::string> create(const std::string& name, std::int64_t expires = 0) {
    return book->create({name, Role::register_own, "default", {}, {}}, expires, by);
  }
  std::string directory;
  std::int64_t now = 1'000'000;
  const TokenBook::Change by{"test", "127.0.0.1"};
  std::unique_ptr<store::Store> store;
  std::unique_ptr<TokenBook> book;
};

TEST_F(TokenBookTest, WhatHasExpiredIsNotRotatedIntoASecretThatHasExpired) {
  const std::string first = create("agent", now + 10).value();
  EXPECT_NE(book->find(first), nullptr);
  const std::string second = book->rotate("agent", 5, by).value();
  EXPECT_NE(book->find(second), nullptr) << "while it lives, its new secret lives as long";
  now += 10;
  EXPECT_EQ(book->find(second), nullptr);
  EXPECT_THAT(book->rotate("agent", 0, by).error().message, HasSubstr("token revoke agent"));
  EXPECT_THAT(create("agent").error().message, HasSubstr("expired: revoke it first"));
  ASSERT_TRUE(book->revoke("agent", by).has_value());
  EXPECT_NE(book->find(create("agent").value()), nullptr);
}

TEST_F(TokenBookTest, AnIdBelongsToTheLongestNameThatHasIt) {
  for (const char* name : {"cache", "cache.2", "cache.2.b"}) ASSERT_TRUE(create(name).has_value());
  const auto who = [](const std::string& name, std::vector<std::string> ids = {}) {
    return Identity{name, Role::register_own, "default", std::move(ids), {}};
  };
  for (const char* own : {"cache", "cache.1", "cache.20", "cache.1.2", "cache.1a2b3c4d"})
    EXPECT_FALSE(book->of_another(who("cache"), own)) << own;
  for (const char* another : {"cache.2", "cache.2.1a2b3c4d", "cache.2.b.c"})
    EXPECT_TRUE(book->of_another(who("cache"), another)) << another;
  EXPECT_FALSE(book->of_another(who("cache.2"), "cache.2.1"));
  EXPECT_TRUE(book->of_another(who("cache.2"), "cache.2.b"));
  EXPECT_FALSE(book->of_another(who("cache", {"cache.*"}), "cache.2")) << "that was said by whoever made it";
  ASSERT_TRUE(book->revoke("cache.2", by).has_value());
  EXPECT_FALSE(book->of_another(who("cache"), "cache.2"));
}

TEST(RateLimit, LessThanOneASecondIsOneInAWhile) {
  RateLimit limit(0.5);
  RateLimit::TimePoint now{};
  EXPECT_TRUE(limit.take("a", now));
  EXPECT_FALSE(limit.take("a", now));
  EXPECT_TRUE(limit.take("b", now));
  EXPECT_FALSE(limit.take("a", now += std::chrono::seconds(1)));
  EXPECT_TRUE(limit.take("a", now += std::chrono::seconds(1)));
}

}  // namespace
}  // namespace ringshift::registry
