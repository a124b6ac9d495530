// Tokens: what counts as one, whose file it may be in, and that a wrong one never passes.
#include "admin/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ringshift::admin {
namespace {

using testing::HasSubstr;
using testing::Not;

class TokensTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/ringshift-tokens-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string write(const std::string& text, mode_t mode = 0600) {
    const std::string path = directory_ + "/tokens";
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string directory_;
};

TEST_F(TokensTest, OneOrSeveralWithNames) {
  const auto tokens = Tokens::parse("# ours\n\nann 0123456789abcdef\r\n  fedcba9876543210-bob\n", "here");
  ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
  EXPECT_EQ(tokens->who("Bearer 0123456789abcdef"), "ann");
  EXPECT_EQ(tokens->who("bearer fedcba9876543210-bob"), "admin");
}

TEST_F(TokensTest, NothingElsePasses) {
  const auto tokens = Tokens::parse("ann 0123456789abcdef", "here");
  for (const std::string wrong :
       {"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0",
        "Bearer 0123456789abcdeF", "Bearer 0123456789abcdef ", "Bearer  0123456789abcdef",
        "Basic 0123456789abcdef", "0123456789abcdef", "Bearer ann", "Bearer 0123456789abcdef0123456789abcdef",
        "Bearer ann 0123456789abcdef"}) {
    EXPECT_EQ(tokens->who(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(tokens->who("Bearer " + std::string(100'000, '0')), std::nullopt);
  EXPECT_EQ(tokens->who(std::string("Bearer 0123456789abcdef\0", 24)), std::nullopt);
}

TEST_F(TokensTest, WhatIsNoTokenIsSaidWithItsLineAndWithoutIt) {
  const auto tell = [](const std::string& text) { return Tokens::parse(text, "/etc/t").error().message; };
  EXPECT_THAT(tell("\nann short\n"), HasSubstr("/etc/t:2"));
  EXPECT_THAT(tell("\nann short\n"), Not(HasSubstr("short")));
  EXPECT_THAT(tell("ann secretsecretsecret again\n"), HasSubstr("NAME TOKEN"));
  EXPECT_THAT(tell("ann secretsecretsecret again\n"), Not(HasSubstr("secret")));
  EXPECT_THAT(tell("# nothing\n"), HasSubstr("no token"));
  std::string many;
  for (std::size_t i = 0; i <= Tokens::kTokensMax; ++i) many += "0123456789abcdef\n";
  EXPECT_THAT(tell(many), HasSubstr("more than"));
}

TEST_F(TokensTest, AFileThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0644, 0640, 0602}) {
    const auto tokens = Tokens::read(write("0123456789abcdef", mode));
    ASSERT_FALSE(tokens.has_value());
    EXPECT_THAT(tokens.error().message, HasSubstr("chmod 600"));
  }
  EXPECT_TRUE(Tokens::read(write("0123456789abcdef", 0600)).has_value());
  EXPECT_TRUE(Tokens::read(write("0123456789abcdef", 0400)).has_value());
  EXPECT_FALSE(Tokens::read(directory_).has_value());
  EXPECT_FALSE(Tokens::read(write(std::string(Tokens::kFileBytesMax + 1, 'x'))).has_value());
}

TEST_F(TokensTest, IsMadeOnceAndStays) {
  const std::string path = directory_ + "/admin.token";
  EXPECT_EQ(Tokens::read(path).error().kind, ErrorKind::not_found);
  ASSERT_TRUE(Tokens::read_or_make(path).has_value());
  struct stat about{};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600U);
  std::string token;
  std::ifstream(path) >> token;
  EXPECT_EQ(token.size(), 64U) << "256 bits in hex";
  EXPECT_EQ(Tokens::read_or_make(path)->who("Bearer " + token), "admin");
  std::string again;
  std::ifstream(path) >> again;
  EXPECT_EQ(again, token);
  std::filesystem::remove(path);
  ASSERT_TRUE(Tokens::read_or_make(path).has_value());
  std::ifstream(path) >> again;
  EXPECT_NE(again, token);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_)) ++files;
  EXPECT_EQ(files, 1U) << "the draft is gone";
}

}  // namespace
}  // namespace ringshift::admin
