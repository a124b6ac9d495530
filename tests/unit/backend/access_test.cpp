// Members with TLS and with passwords: real redis-servers, through the pool and through the blocking client.
#include "backend/access.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "backend/sync_client.h"
#include "tests/support/test_ca.h"
#include "tests/unit/backend/pool_world.h"

namespace ringshift::backend {
namespace {

using testing::HasSubstr;

constexpr const char* kPassword = "s3cret-of-the-members";

class AccessTest : public PoolTest {
 protected:
  static void SetUpTestSuite() {
    ca = new test::TestCa;
    ca->issue("member", "DNS:localhost,IP:127.0.0.1");
    ca->issue("client", "DNS:client");
  }
  static void TearDownTestSuite() { delete ca; }

  // Its TLS port is `tls_port`; it asks for certificates of clients when `mutual`.
  static std::vector<std::string> tls_arguments(std::uint16_t tls_port, bool mutual = false) {
    return {"--tls-port",         std::to_string(tls_port), "--tls-cert-file",    ca->file("member.pem"),
            "--tls-key-file",     ca->file("member.key"),   "--tls-ca-cert-file", ca->file("ca.pem"),
            "--tls-auth-clients", mutual ? "yes" : "no"};
  }
  static std::string at(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }
  static net::TlsContext::Client our_ca() {
    net::TlsContext::Client tls;
    tls.ca = ca->file("ca.pem");
    return tls;
  }
  static std::shared_ptr<MemberAccess> make(MemberAccess::Options options) {
    auto made = MemberAccess::open(std::move(options));
    if (!made) throw std::runtime_error(made.error().message);
    return *made;
  }
  void open_at(const std::string& address, std::shared_ptr<const MemberAccess> access, Look* look = nullptr) {
    Options with = options();
    with.access = std::move(access);
    with.connect_timeout = with.request_timeout = milliseconds(2000);
    open_with(std::move(with), {{"m1", address}}, look);
  }
  static SyncOptions sync(std::shared_ptr<const MemberAccess> access) {
    SyncOptions out;
    out.name = "rs:test";
    out.access = std::move(access);
    return out;
  }

  static test::TestCa* ca;
};
test::TestCa* AccessTest::ca = nullptr;

TEST_F(AccessTest, ThePoolSpeaksTls) {
  const std::uint16_t port = test::free_port();
  RedisProcess redis(tls_arguments(port));
  open_at(at(port), make({.tls = our_ca()}));
  EXPECT_EQ(ask({"SET", "k", "v"}).raw, "+OK\r\n");
  EXPECT_EQ(ask({"GET", "k"}, "m1", Resp::v3).raw, "$1\r\nv\r\n");
  EXPECT_EQ(redis.command("GET k"), "$1\r\nv\r\n") << "it arrived";
  const std::string big(16U << 20, 'b');
  EXPECT_EQ(ask({"SET", "big", big}).raw, "+OK\r\n");
  EXPECT_EQ(ask({"GET", "big"}).raw, "$16777216\r\n" + big + "\r\n");
}

TEST_F(AccessTest, AMemberWithoutTlsIsNotTalkedToInPlain) {
  RedisProcess redis;
  open_at(redis.address(), make({.tls = our_ca(), .password = kPassword}));
  const Outcome outcome = ask({"GET", "k"});
  EXPECT_FALSE(outcome.answered);
  EXPECT_EQ(outcome.kind, Failure::Kind::unsent);
  EXPECT_THAT(outcome.raw, HasSubstr("TLS handshake with " + redis.address() + " timed out"));
}

TEST_F(AccessTest, ACertificateOfSomebodyElseIsRefused) {
  const std::uint16_t port = test::free_port();
  RedisProcess redis(tls_arguments(port));
  net::TlsContext::Client tls = our_ca();
  tls.name = "cache.example";
  open_at(at(port), make({.tls = tls}));
  const Outcome outcome = ask({"SET", "k", "v"});
  EXPECT_FALSE(outcome.answered);
  EXPECT_THAT(outcome.raw, HasSubstr("it is not for cache.example"));
  const auto client = SyncClient::connect(at(port), sync(make({.tls = tls})));
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, HasSubstr("it is not for cache.example"));
  EXPECT_EQ(redis.command("EXISTS k"), ":0\r\n");
}

TEST_F(AccessTest, ShowsOurCertificateToMembersThatAsk) {
  const std::uint16_t port = test::free_port();
  RedisProcess redis(tls_arguments(port, true));
  EXPECT_FALSE(SyncClient::connect(at(port), sync(make({.tls = our_ca()}))));
  net::TlsContext::Client tls = our_ca();
  tls.certificate = ca->file("client.pem");
  tls.key = ca->file("client.key");
  const auto client = SyncClient::connect(at(port), sync(make({.tls = tls})));
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ((*client)->call({"PING"})->text, "PONG");
}

TEST_F(AccessTest, TheBlockingClientPipelinesMoreThanTheSocketsHold) {
  const std::uint16_t port = test::free_port();
  RedisProcess redis(tls_arguments(port));
  auto client = SyncClient::connect(at(port), sync(make({.tls = our_ca()})));
  ASSERT_TRUE(client) << client.error().message;
  std::string commands;
  const std::string value(100000, 'v');
  for (int i = 0; i < 200; ++i) protocol::resp::append_command(commands, {"ECHO", value});
  const auto replies = (*client)->pipeline(commands, 200);
  ASSERT_TRUE(replies) << replies.error().message;
  ASSERT_EQ(replies->size(), 200U);
  for (const auto& reply : *replies) ASSERT_EQ(reply.text, value);
  EXPECT_NE((*client)->client_id(), 0U);
}

TEST_F(AccessTest, TheBlockingClientGivesUpOnASilentMember) {
  const std::uint16_t port = test::free_port();
  RedisProcess redis(tls_arguments(port));
  redis.pause();
  SyncOptions options = sync(make({.tls = our_ca()}));
  options.connect_timeout = milliseconds(200);
  const auto client = SyncClient::connect(at(port), options);
  redis.resume();
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, HasSubstr("no answer within 200 ms"));
}

TEST_F(AccessTest, SendsThePassword) {
  RedisProcess redis({"--requirepass", kPassword});
  const auto access = make({.password = kPassword});
  FakeRegistry look;  // With a Look every error of the handshake counts.
  look.matches = true;
  open_at(redis.address(), access, &look);
  EXPECT_EQ(ask({"SET", "k", "v"}).raw, "+OK\r\n");
  EXPECT_EQ(ask({"GET", "k"}, "m1", Resp::v3).raw, "$1\r\nv\r\n");
  const auto client = SyncClient::connect(redis.address(), sync(access));
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ((*client)->call({"GET", "k"})->text, "v");
}

TEST_F(AccessTest, SendsTheUser) {
  RedisProcess redis;
  const std::string user = std::string("ACL SETUSER rs on >") + kPassword + " ~* &* +@all";
  ASSERT_EQ(redis.command(user), "+OK\r\n");
  const auto access = make({.user = "rs", .password = kPassword});
  open_at(redis.address(), access);
  EXPECT_EQ(ask({"ACL", "WHOAMI"}).raw, "$2\r\nrs\r\n");
  EXPECT_TRUE(SyncClient::connect(redis.address(), sync(access)));
}

TEST_F(AccessTest, AWrongOrMissingPasswordIsNamedAsSuch) {
  RedisProcess redis({"--requirepass", kPassword});
  open_at(redis.address(), make({.password = "wrong-guess"}));
  const Outcome wrong = ask({"GET", "k"});
  EXPECT_FALSE(wrong.answered);
  EXPECT_THAT(wrong.raw, HasSubstr("refuses our password: WRONGPASS"));
  EXPECT_THAT(wrong.raw, testing::Not(HasSubstr("wrong-guess")));
  open_at(redis.address(), nullptr);
  EXPECT_THAT(ask({"GET", "k"}).raw, HasSubstr("wants a password"));
  const auto client = SyncClient::connect(redis.address(), sync(make({.password = "wrong-guess"})));
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, HasSubstr("WRONGPASS"));
}

TEST_F(AccessTest, AMemberWithoutAPasswordLetsUsInAllTheSame) {
  RedisProcess redis;
  const auto access = make({.password = kPassword});
  open_at(redis.address(), access);
  EXPECT_EQ(ask({"PING"}).raw, "+PONG\r\n");
  EXPECT_TRUE(SyncClient::connect(redis.address(), sync(access)));
}

TEST_F(AccessTest, APasswordFileIsReadAnew) {
  const std::string path = ca->file("password");
  std::ofstream(path) << "first\nsecond line\n";
  const auto access = make({.user = "u", .password_file = path});
  EXPECT_EQ(access->credentials().password, "first");
  std::ofstream(path) << "second";
  ASSERT_TRUE(access->reload());
  EXPECT_EQ(access->credentials().password, "second");
  std::ofstream(path) << "\n";
  EXPECT_THAT(access->reload().error().message, HasSubstr("empty"));
  EXPECT_EQ(access->credentials().password, "second");
  std::ofstream(path) << std::string(5000, 'x');
  EXPECT_THAT(access->reload().error().message, HasSubstr("too long"));
  std::filesystem::remove(path);
  EXPECT_THAT(access->reload().error().message, HasSubstr(path));
  EXPECT_EQ(access->credentials().password, "second");
  EXPECT_FALSE(MemberAccess::open({.password_file = path}));
  EXPECT_FALSE(MemberAccess::open({.user = "u"}));
}

}  // namespace
}  // namespace ringshift::backend
