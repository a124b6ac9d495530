// Debian's etcd with authentication on: who we are is proven, proven again when it is forgotten, and told to
// nobody else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/encoding.h"
#include "coord/coordinator.h"
#include "http/client.h"
#include "tests/contract/registry_process.h"

namespace ringshift::test {
namespace {

using namespace std::chrono_literals;
using coord::Credentials;

constexpr const char* kPassword = "s3cret-word";

class Follower final : public coord::Watcher {
 public:
  void on_events(const std::vector<coord::Event>& events) override {
    const std::lock_guard lock(mutex_);
    for (const coord::Event& event : events) {
      if (event.kind == coord::Event::Kind::put) state_[event.kv.key] = event.kv.value;
      if (event.kind == coord::Event::Kind::remove) state_.erase(event.kv.key);
    }
  }
  void on_resync(const coord::Range& range) override {
    const std::lock_guard lock(mutex_);
    state_.clear();
    for (const coord::KeyValue& kv : range.kvs) state_[kv.key] = kv.value;
    ++resyncs;
  }
  void on_disconnected(const Error& why) override {
    const std::lock_guard lock(mutex_);
    reasons_ += why.message + "\n";
  }
  bool wait_for(const std::map<std::string, std::string>& state) {
    for (int i = 0; i < 1500; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (state_ == state && resyncs > 0) return true;
      }
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }
  std::string reasons() {
    const std::lock_guard lock(mutex_);
    return reasons_;
  }
  std::atomic<int> resyncs = 0;

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> state_;
  std::string reasons_;
};

class EtcdAccessTest : public testing::Test {
 protected:
  EtcdAccessTest() {
    // One user for everything, and ours, who may do all below /ringshift/ and nothing else.
    ask("/v3/auth/user/add", R"({"name":"root","password":"r00t"})");
    ask("/v3/auth/role/add", R"({"name":"root"})");
    ask("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
    ask("/v3/auth/user/add", std::string(R"({"name":"ringshift","password":")") + kPassword + "\"}");
    ask("/v3/auth/role/add", R"({"name":"ours"})");
    ask("/v3/auth/role/grant", R"({"name":"ours","perm":{"permType":"READWRITE","key":")" +
                                   base::to_base64("/ringshift/") + R"(","range_end":")" +
                                   base::to_base64("/ringshift0") + "\"}}");
    ask("/v3/auth/user/grant", R"({"user":"ringshift","role":"ours"})");
  }

  std::string ask(const std::string& path, const std::string& body, const std::string& token = "") {
    http::Client client;
    http::Call call;
    call.url = server.url() + path;
    call.body = body;
    if (!token.empty()) call.headers = {"Authorization: " + token};
    const auto answer = client.send(call);
    EXPECT_TRUE(answer && answer->status == 200) << path << ": " << (answer ? answer->body : "");
    return answer ? answer->body : "";
  }
  void enable() { ask("/v3/auth/enable", "{}"); }
  void disable() { ask("/v3/auth/disable", "{}", root_token()); }
  void set_password(const std::string& password) {
    ask("/v3/auth/user/changepw", R"({"name":"ringshift","password":")" + password + "\"}", root_token());
  }
  std::string root_token() {
    const std::string answer = ask("/v3/auth/authenticate", R"({"name":"root","password":"r00t"})");
    const std::size_t begin = answer.find("\"token\":\"") + 9;
    return answer.substr(begin, answer.find('"', begin) - begin);
  }
  [[nodiscard]] std::unique_ptr<coord::Coordinator> connect_as(const std::string& name,
                                                               const std::string& password) const {
    return coord::connect({{server.url()}, 3000ms, {Credentials::Kind::user, name, password}}).value();
  }

  RegistryProcess server{Kind::etcd};
};

TEST_F(EtcdAccessTest, WhoIsKnownDoesEverythingBelowItsPrefixAndNothingElse) {
  enable();
  const auto us = connect_as("ringshift", kPassword);
  Follower follower;
  const auto watch = us->watch("/ringshift/w/", follower);
  ASSERT_TRUE(follower.wait_for({}));
  const auto revision = us->put("/ringshift/w/a", "1");
  ASSERT_TRUE(revision.has_value()) << revision.error().message;
  EXPECT_EQ(us->get("/ringshift/w/a").value()->value, "1");
  EXPECT_EQ(us->list("/ringshift/").value().kvs.size(), 1U);
  EXPECT_TRUE(us->transact({{"/ringshift/w/a", coord::Compare::Target::mod_revision, *revision}},
                           {{coord::Op::Kind::put, "/ringshift/w/b", "2"}})
                  .value()
                  .has_value());
  const coord::LeaseId lease = us->grant(60s).value();
  ASSERT_TRUE(us->put("/ringshift/w/c", "3", lease).has_value());
  EXPECT_TRUE(us->keep_alive(lease).has_value());
  EXPECT_TRUE(follower.wait_for({{"/ringshift/w/a", "1"}, {"/ringshift/w/b", "2"}, {"/ringshift/w/c", "3"}}));
  EXPECT_TRUE(us->revoke(lease).has_value());
  EXPECT_TRUE(us->remove("/ringshift/w/b").value());
  EXPECT_TRUE(follower.wait_for({{"/ringshift/w/a", "1"}}));
  EXPECT_EQ(follower.reasons(), "");

  EXPECT_EQ(us->put("/other", "x").error().kind, ErrorKind::denied);
  EXPECT_EQ(us->get("/other").error().kind, ErrorKind::denied);
  EXPECT_EQ(us->list("/").error().kind, ErrorKind::denied);
}

TEST_F(EtcdAccessTest, AChangedPasswordIsTakenFromTheFile) {
  enable();
  const std::string file = testing::TempDir() + "/ringshift-etcd-auth-" + std::to_string(getpid());
  const auto write = [&](const std::string& password) {
    std::ofstream(file) << "user:ringshift:" << password << "\n";
  };
  write(kPassword);
  const auto us =
      coord::connect({{server.url()}, 3000ms, coord::read_credentials(file).value(), file}).value();
  ASSERT_TRUE(us->put("/ringshift/a", "1").has_value());
  set_password("an0ther");  // Which ends the tokens of this user.
  write("an0ther");
  const auto put = us->put("/ringshift/a", "2");
  EXPECT_TRUE(put.has_value()) << put.error().message;
  std::remove(file.c_str());
}

TEST_F(EtcdAccessTest, WhoIsNotKnownDoesNothing) {
  enable();
  const auto nobody = coord::connect({{server.url()}}).value();
  const auto refused = nobody->put("/ringshift/a", "x");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, ErrorKind::denied);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("--registry-auth-file"));
  const auto wrong = connect_as("ringshift", "wr0ng-word");
  for (const Error& error : {wrong->put("/ringshift/a", "x").error(), wrong->get("/ringshift/a").error(),
                             connect_as("stranger", kPassword)->get("/ringshift/a").error()}) {
    EXPECT_EQ(error.kind, ErrorKind::denied) << error.message;
    EXPECT_THAT(error.message, testing::HasSubstr("--registry-auth-file"));
    EXPECT_THAT(error.message, testing::Not(testing::AnyOf(testing::HasSubstr("wr0ng-word"),
                                                           testing::HasSubstr(kPassword))));
  }
  Follower follower;
  {
    const auto watch = wrong->watch("/ringshift/", follower);
    for (int i = 0; i < 1500 && follower.reasons().empty(); ++i) std::this_thread::sleep_for(20ms);
  }
  EXPECT_THAT(follower.reasons(), testing::HasSubstr("--registry-auth-file"));
  EXPECT_THAT(follower.reasons(), testing::Not(testing::HasSubstr("wr0ng-word")));
  EXPECT_EQ(follower.resyncs, 0);
}

// etcd forgets a token after five minutes, and at once when the user's password is written.
TEST_F(EtcdAccessTest, AForgottenTokenIsAskedForAgain) {
  enable();
  const auto us = connect_as("ringshift", kPassword);
  Follower follower;
  const auto watch = us->watch("/ringshift/w/", follower);
  ASSERT_TRUE(follower.wait_for({}));
  for (int round = 0; round < 3; ++round) {
    set_password(kPassword);
    const std::string value = std::to_string(round);
    const auto written = us->put("/ringshift/w/a", value);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    EXPECT_TRUE(follower.wait_for({{"/ringshift/w/a", value}})) << follower.reasons();
    if (round != 1) continue;
    server.kill9();  // And the watch has to begin anew, with a token that is none any more.
    server.start();
    set_password(kPassword);
  }
  EXPECT_EQ(follower.resyncs, 1) << "what had happened meanwhile was followed, not read anew";
  set_password("another");
  EXPECT_EQ(us->put("/ringshift/w/a", "x").error().kind, ErrorKind::denied);
  EXPECT_TRUE(connect_as("ringshift", "another")->put("/ringshift/w/a", "y").has_value());
}

// The file is rolled out first; turning authentication on, or off, is noticed by nobody.
TEST_F(EtcdAccessTest, AuthenticationIsTurnedOnAndOffUnderUs) {
  const auto us = connect_as("ringshift", kPassword);
  Follower follower;
  const auto watch = us->watch("/ringshift/w/", follower);
  ASSERT_TRUE(follower.wait_for({}));
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(us->put("/ringshift/w/a", "off" + std::to_string(round)).has_value());
    EXPECT_TRUE(follower.wait_for({{"/ringshift/w/a", "off" + std::to_string(round)}}));
    enable();
    const auto written = us->put("/ringshift/w/a", "on" + std::to_string(round));
    ASSERT_TRUE(written.has_value()) << written.error().message;
    EXPECT_TRUE(follower.wait_for({{"/ringshift/w/a", "on" + std::to_string(round)}}));
    disable();
  }
}

}  // namespace
}  // namespace ringshift::test
