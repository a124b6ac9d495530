// What is sent to prove who we are, and what a refusal changes.
#include "coord/etcd_access.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace ringshift::coord {
namespace {

using namespace std::chrono_literals;
using Kind = Credentials::Kind;
using Headers = std::vector<std::string>;

class EtcdAccessFileTest : public testing::Test {
 protected:
  EtcdAccessFileTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "ringshift-credentials-XXXXXX";
    directory = mkdtemp(pattern.data());
    file = directory + "/auth";
    write("token:first");
  }
  ~EtcdAccessFileTest() override { std::filesystem::remove_all(directory); }
  void write(const std::string& line) { std::ofstream(file) << line << "\n"; }
  static Headers sent(EtcdAccess& access) {
    return access
        .headers("http://127.0.0.1:1", 1s,
                 [](const http::Call&) -> std::expected<http::Answer, http::TransportError> {
                   ADD_FAILURE() << "a token is not asked for";
                   return http::Answer{};
                 })
        .value();
  }

  std::string directory, file;
};

TEST_F(EtcdAccessFileTest, WhatIsRefusedIsLookedUpAgain) {
  EtcdAccess access(read_credentials(file).value(), file);
  const Headers first = sent(access);
  EXPECT_EQ(first, Headers{"Authorization: first"});
  EXPECT_FALSE(access.refused(first, 401, "")) << "the file has nothing else";
  write("token:second");
  EXPECT_EQ(sent(access), first) << "as long as nobody refuses it";
  for (const int other : {200, 403, 429, 500}) EXPECT_FALSE(access.refused(first, other, "")) << other;
  EXPECT_EQ(sent(access), first);
  EXPECT_TRUE(access.refused(first, 401, ""));
  EXPECT_EQ(sent(access), Headers{"Authorization: second"});
  write("token:third");
  EXPECT_TRUE(access.refused(first, 401, "")) << "another thread's, that sent what is old by now";
  EXPECT_EQ(sent(access), Headers{"Authorization: second"}) << "which nobody has refused";
}

TEST_F(EtcdAccessFileTest, AFileThatIsNoneChangesNothing) {
  EtcdAccess access(read_credentials(file).value(), file);
  const Headers first = sent(access);
  for (const char* line : {"", "tok", "digest:a:b", "token:first"}) {
    write(line);
    EXPECT_FALSE(access.refused(first, 401, "")) << line;
    EXPECT_EQ(sent(access), first) << line;
  }
  std::filesystem::remove(file);
  EXPECT_FALSE(access.refused(first, 401, ""));
  write("token:second");
  EXPECT_TRUE(access.refused(first, 401, ""));
  EtcdAccess fixed({Kind::token, "", "first"});
  EXPECT_FALSE(fixed.refused(first, 401, "")) << "they are from no file";
}

TEST_F(EtcdAccessFileTest, AWrongPasswordIsLookedUpOnceAndTheRightOneUsed) {
  write("user:me:old");
  EtcdAccess access(read_credentials(file).value(), file);
  int asked = 0;
  const EtcdAccess::Send send =
      [&](const http::Call& call) -> std::expected<http::Answer, http::TransportError> {
    ++asked;
    if (call.body.find("\"new\"") != std::string::npos) return http::Answer{200, R"({"token":"t1"})"};
    return http::Answer{
        400, R"({"error":"etcdserver: authentication failed, invalid user ID or password","code":3})"};
  };
  EXPECT_FALSE(access.headers("http://127.0.0.1:1", 1s, send).has_value());
  EXPECT_EQ(asked, 1) << "the file has nothing else";
  write("user:me:new");
  EXPECT_EQ(access.headers("http://127.0.0.1:1", 1s, send).value(), Headers{"Authorization: t1"});
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace ringshift::coord
