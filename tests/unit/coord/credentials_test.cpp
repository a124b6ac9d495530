#include "coord/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coord/coordinator.h"

namespace ringshift::coord {
namespace {

using Kind = Credentials::Kind;

TEST(Credentials, ThreeKinds) {
  const auto digest = parse_credentials("digest:me:pass:word\r", "f").value();
  EXPECT_EQ(digest.kind, Kind::digest);
  EXPECT_EQ(digest.name, "me");
  EXPECT_EQ(digest.secret, "pass:word");
  const auto user = parse_credentials("user:me:", "f").value();
  EXPECT_EQ(user.kind, Kind::user);
  EXPECT_EQ(user.secret, "");
  const auto token = parse_credentials("token:a:b", "f").value();
  EXPECT_EQ(token.kind, Kind::token);
  EXPECT_EQ(token.secret, "a:b");
}

TEST(Credentials, WhatIsNoneIsRefusedAndNotShown) {
  for (const std::string line :
       {"", "hunter2", "me:hunter2", "digest:hunter2", "user:hunter2", "user::hunter2",
        "token:", "Token:hunter2", "token:hunter2\nX-Other: 1", "token:hunter2\x7f"}) {
    const auto refused = parse_credentials(line, "--registry-auth-file /etc/x");
    ASSERT_FALSE(refused.has_value()) << line;
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("/etc/x"));
    EXPECT_THAT(refused.error().message, testing::Not(testing::HasSubstr("hunter2")));
  }
  EXPECT_FALSE(parse_credentials("token:" + std::string(5000, 'x'), "f").has_value());
}

TEST(Credentials, GoToTheRegistryThatKnowsThem) {
  const Credentials digest{Kind::digest, "me", "hunter2"}, user{Kind::user, "me", "hunter2"};
  EXPECT_FALSE(connect({{"http://127.0.0.1:1"}, std::chrono::milliseconds(100), digest}).has_value());
  EXPECT_TRUE(connect({{"http://127.0.0.1:1"}, std::chrono::milliseconds(100), user}).has_value());
  EXPECT_FALSE(connect({{"zk://127.0.0.1:1"}, std::chrono::milliseconds(100), user}).has_value());
  EXPECT_TRUE(connect({{"zk://127.0.0.1:1"}, std::chrono::milliseconds(100), digest}).has_value());
  for (const char* url : {"http://me:hunter2@127.0.0.1:1", "zk://me:hunter2@127.0.0.1:1"}) {
    const auto refused = connect({{url}});
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message, testing::Not(testing::HasSubstr("hunter2")));
  }
}

}  // namespace
}  // namespace ringshift::coord
