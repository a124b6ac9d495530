// TLS streams over real sockets, with certificates that the openssl command made: what is let in, what is
// refused and in which words, and that bytes arrive whatever pieces they come in.
#include "net/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "net/address.h"
#include "net/listener.h"
#include "net/stream.h"
#include "net/tls_session.h"
#include "tests/support/test_ca.h"

#ifdef __SANITIZE_THREAD__
// libcrypto parses the extensions of a shared CA certificate once, and then reads an atomic flag to know that
// it did. It was built without the sanitizer, which therefore sees the bytes but not the flag.
extern "C" const char* __tsan_default_suppressions() { return "race:^ASN1_STRING_cmp$\n"; }
#endif

namespace ringshift::net {
namespace {

using std::chrono::milliseconds;
using test::TestCa;
using testing::HasSubstr;

struct Recorder final : StreamHandler {
  std::string data, closed;
  int connected = 0, drained = 0, ended = 0;
  std::size_t most_at_once = SIZE_MAX;  // Consumes no more than this of what is offered.
  std::function<void()> on_bytes;

  std::size_t on_data(std::string_view bytes) override {
    const std::size_t used = std::min(bytes.size(), most_at_once);
    data.append(bytes.substr(0, used));
    if (on_bytes) on_bytes();
    return used;
  }
  void on_end() override { ++ended; }
  void on_closed(std::string_view reason) override { closed = reason; }
  void on_connected() override { ++connected; }
  void on_drained() override { ++drained; }
};

std::string noise(std::size_t size) {
  std::string out(size, '\0');
  std::uint32_t state = 7;
  for (char& c : out) c = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
  return out;
}

class TlsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ca = new TestCa;
    other_ca = new TestCa;
    ca->issue("good", "DNS:localhost,IP:127.0.0.1");
    ca->issue("second", "DNS:localhost,IP:127.0.0.1");
    ca->issue("elsewhere", "DNS:elsewhere.example");
    ca->issue("expired", "IP:127.0.0.1", 0);
    ca->issue("client", "DNS:client");
    other_ca->issue("good", "IP:127.0.0.1");
    other_ca->issue("client", "DNS:client");
  }
  static void TearDownTestSuite() {
    delete ca;
    delete other_ca;
  }

  static TlsContext::Server server_files(const std::string& name = "good", const TestCa& from = *ca) {
    TlsContext::Server files;
    files.certificate = from.file(name + ".pem");
    files.key = from.file(name + ".key");
    return files;
  }
  static TlsContext::Client client_files() {
    TlsContext::Client files;
    files.ca = ca->file("ca.pem");
    return files;
  }
  static std::shared_ptr<TlsContext> make(TlsContext::Server files) {
    auto made = TlsContext::server(std::move(files));
    if (!made) throw std::runtime_error(made.error().message);
    return *made;
  }
  static std::shared_ptr<TlsContext> make(TlsContext::Client files) {
    auto made = TlsContext::client(std::move(files));
    if (!made) throw std::runtime_error(made.error().message);
    return *made;
  }

  void run_until(const std::function<bool()>& done) {
    if (done()) return;
    bool late = false, stopped = false;
    auto guard = loop.timer([&] { late = true, loop.stop(); });
    guard->arm(std::chrono::seconds(20));
    loop.set_after_wakeup([&] {
      if (after_wakeup) after_wakeup();
      if (!stopped && !late && done()) loop.stop(), stopped = true;
    });
    loop.run();
    loop.set_after_wakeup({});
    ASSERT_FALSE(late) << "timed out; client: " << at_client.closed << "; server: " << at_server.closed;
  }
  void listen(std::shared_ptr<TlsContext> context, milliseconds limit = Stream::kHandshakeTimeout) {
    server_context = std::move(context);
    auto opened = Listener::open(loop, "127.0.0.1:0", [this, limit](int fd) {
      server = Stream::adopt(loop, fd, at_server, server_context.get(), limit);
    });
    ASSERT_TRUE(opened) << opened.error().message;
    listener = std::move(*opened);
  }
  void dial(std::shared_ptr<TlsContext> context, const std::string& host = "127.0.0.1") {
    client_context = std::move(context);
    const std::string address = listener->address();
    client = Stream::connect(loop, host + address.substr(address.rfind(':')), milliseconds(5000), at_client,
                             client_context.get());
  }
  // Says why the client was refused, and why the server thinks it was.
  void expect_refused(const std::string& client_says, const std::string& server_says = "") {
    run_until([&] { return !at_client.closed.empty() && !at_server.closed.empty(); });
    EXPECT_THAT(at_client.closed, HasSubstr(client_says));
    EXPECT_THAT(at_server.closed, HasSubstr(server_says));
    EXPECT_EQ(at_server.data, "");
  }
  void connect_pair(std::shared_ptr<TlsContext> server_side, std::shared_ptr<TlsContext> client_side,
                    const std::string& host = "127.0.0.1") {
    listen(std::move(server_side));
    dial(std::move(client_side), host);
    run_until([&] { return at_client.connected == 1; });
  }
  int raw_socket() {
    const auto address = literal(*parse_endpoint(listener->address()));
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(fd, address->get(), address->size), 0);
    return fd;
  }
  // The whole of `command | openssl s_client ARGUMENTS`; empty arguments do not happen.
  std::string s_client(const std::string& arguments) {
    const std::string out = ca->file("s_client.out");
    std::thread openssl([&] {
      const std::string command = "(echo hello; sleep 0.5) | timeout 10 openssl s_client -connect " +
                                  listener->address() + " -CAfile " + ca->file("ca.pem") + " " + arguments +
                                  " > " + out + " 2>&1";
      static_cast<void>(std::system(command.c_str()));
      loop.post([this] { finished = true; });
    });
    finished = false;
    run_until([&] { return finished; });
    openssl.join();
    std::ifstream in(out);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static TestCa* ca;
  static TestCa* other_ca;
  Loop loop;
  std::function<void()> after_wakeup;
  std::shared_ptr<TlsContext> server_context, client_context;
  Recorder at_client, at_server;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Stream> client, server;
  bool finished = false;
};
TestCa* TlsTest::ca = nullptr;
TestCa* TlsTest::other_ca = nullptr;

TEST_F(TlsTest, CarriesBytesBothWays) {
  connect_pair(make(server_files()), make(client_files()));
  client->append("PING");
  client->flush();
  run_until([&] { return at_server.data == "PING"; });
  server->append("PONG");
  server->flush();
  run_until([&] { return at_client.data == "PONG"; });
  EXPECT_EQ(client->queued_bytes(), 0U);
  EXPECT_EQ(client->written_bytes(), 4U) << "counts what the peer reads, not what TLS makes of it";
}

TEST_F(TlsTest, WhatIsAppendedBeforeTheHandshakeLeavesAfterIt) {
  listen(make(server_files()));
  dial(make(client_files()));
  client->append("early");
  client->flush();
  EXPECT_EQ(client->written_bytes(), 0U);
  run_until([&] { return at_client.connected == 1; });
  client->flush();
  run_until([&] { return at_server.data == "early"; });
}

TEST_F(TlsTest, ChecksTheHostByName) {
  connect_pair(make(server_files()), make(client_files()), "localhost");
  EXPECT_EQ(at_client.connected, 1);
}

TEST_F(TlsTest, ANameOfTheContextCountsInsteadOfTheAddress) {
  TlsContext::Client files = client_files();
  files.name = "elsewhere.example";
  connect_pair(make(server_files("elsewhere")), make(files));
  EXPECT_EQ(at_client.connected, 1);
}

TEST_F(TlsTest, RefusesTheWrongHost) {
  listen(make(server_files("elsewhere")));
  dial(make(client_files()));
  expect_refused("IP address mismatch; it is not for 127.0.0.1", "handshake failed");
  EXPECT_EQ(at_client.connected, 0);
}

TEST_F(TlsTest, RefusesTheWrongHostByName) {
  listen(make(server_files("elsewhere")));
  dial(make(client_files()), "localhost");
  expect_refused("hostname mismatch; it is not for localhost");
}

TEST_F(TlsTest, RefusesAnExpiredCertificate) {
  std::this_thread::sleep_for(std::chrono::seconds(1));  // It was valid for no time at all.
  listen(make(server_files("expired")));
  dial(make(client_files()));
  expect_refused("certificate has expired", "certificate expired");
}

TEST_F(TlsTest, RefusesAnUnknownCa) {
  listen(make(server_files("good", *other_ca)));
  dial(make(client_files()));
  expect_refused("unable to get local issuer certificate", "unknown ca");
}

TEST_F(TlsTest, InsecureAcceptsAnythingButOnlyWhenAsked) {
  TlsContext::Client files;
  files.insecure = true;
  connect_pair(make(server_files("elsewhere", *ca)), make(files));
  EXPECT_EQ(at_client.connected, 1);
}

TEST_F(TlsTest, TheSystemsStoreDoesNotKnowOurCa) {
  listen(make(server_files()));
  dial(make(TlsContext::Client{}));
  expect_refused("unable to get local issuer certificate");
}

TEST_F(TlsTest, AsksForClientCertificates) {
  TlsContext::Server wants = server_files();
  wants.ca = ca->file("ca.pem");
  wants.clients = TlsContext::ClientCertificates::required;
  TlsContext::Client has = client_files();
  has.certificate = ca->file("client.pem");
  has.key = ca->file("client.key");
  connect_pair(make(wants), make(has));
  client->append("let me in");
  client->flush();
  run_until([&] { return at_server.data == "let me in"; });
}

TEST_F(TlsTest, RefusesAClientWithoutACertificate) {
  TlsContext::Server wants = server_files();
  wants.ca = ca->file("ca.pem");
  wants.clients = TlsContext::ClientCertificates::required;
  listen(make(wants));
  dial(make(client_files()));
  expect_refused("certificate required", "peer did not return a certificate");
}

TEST_F(TlsTest, RefusesAClientOfAnotherCaEvenWhereNoneIsNeeded) {
  TlsContext::Server wants = server_files();
  wants.ca = ca->file("ca.pem");
  wants.clients = TlsContext::ClientCertificates::optional;
  TlsContext::Client has = client_files();
  has.certificate = other_ca->file("client.pem");
  has.key = other_ca->file("client.key");
  listen(make(wants));
  dial(make(has));
  expect_refused("unknown ca", "the peer's certificate is refused");
}

TEST_F(TlsTest, OptionalLetsAClientWithoutACertificateIn) {
  TlsContext::Server wants = server_files();
  wants.ca = ca->file("ca.pem");
  wants.clients = TlsContext::ClientCertificates::optional;
  connect_pair(make(wants), make(client_files()));
  client->append("hello");
  client->flush();
  run_until([&] { return at_server.data == "hello"; });
}

TEST_F(TlsTest, RefusesTls11AndTakes12And13) {
  listen(make(server_files()));
  EXPECT_THAT(s_client("-tls1_1 -cipher ALL:@SECLEVEL=0"), HasSubstr("alert protocol version"));
  EXPECT_EQ(at_server.data, "");
  EXPECT_THAT(at_server.closed, HasSubstr("unsupported protocol"));
  server.reset();
  EXPECT_THAT(s_client("-tls1_2"), HasSubstr("Verify return code: 0 (ok)"));
  EXPECT_EQ(at_server.data, "hello\n");
  server.reset();
  s_client("-tls1_3");
  EXPECT_EQ(at_server.data, "hello\nhello\n");
}

TEST_F(TlsTest, TicketsMakeTheSecondHandshakeShort) {
  listen(make(server_files()));
  const std::string session = ca->file("session");
  EXPECT_THAT(s_client("-tls1_2 -sess_out " + session), HasSubstr("New, TLSv1.2"));
  server.reset();
  EXPECT_THAT(s_client("-tls1_2 -sess_in " + session), HasSubstr("Reused, TLSv1.2"));
}

TEST_F(TlsTest, RenegotiationIsRefused) {
  listen(make(server_files()));
  const std::string out = ca->file("reneg.out");
  std::thread openssl([&] {
    const std::string command =
        "(sleep 0.3; echo R; sleep 0.5) | timeout 10 openssl s_client -tls1_2 -connect " +
        listener->address() + " > " + out + " 2>&1";
    static_cast<void>(std::system(command.c_str()));
    loop.post([this] { finished = true; });
  });
  run_until([&] { return finished; });
  openssl.join();
  std::ifstream in(out);
  const std::string said{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(said, HasSubstr("RENEGOTIATING"));
  EXPECT_THAT(said, HasSubstr("no renegotiation"));
}

TEST_F(TlsTest, ABigValueBothWaysInWhateverPieces) {
  const std::string value = noise(16U << 20);
  connect_pair(make(server_files()), make(client_files()));
  at_server.on_bytes = [&] {
    if (at_server.data.size() == value.size()) server->append(at_server.data);
  };
  after_wakeup = [&] {
    if (server) server->flush();
  };
  client->append(value);
  client->flush();
  EXPECT_GT(client->queued_bytes(), 0U) << "the socket cannot take it all, or this shows nothing";
  run_until([&] { return at_client.data.size() == value.size(); });
  EXPECT_TRUE(at_server.data == value);
  EXPECT_TRUE(at_client.data == value);
  EXPECT_EQ(at_client.drained, 1);
}

// OpenSSL holds bytes that the socket is not readable for: a wakeup must come all the same.
TEST_F(TlsTest, WhatOpenSslHoldsDoesNotWaitForTheNextBytes) {
  connect_pair(make(server_files()), make(client_files()));
  run_until([&] { return server != nullptr; });
  std::string sent;
  // One wakeup reads 64 KB: four whole records. The rest is so short that it came with the fourth. All of it
  // is in the socket before the loop turns.
  for (const std::size_t rest : {1U, 50U, 200U}) {
    const std::string value = noise((64U << 10) + rest);
    sent += value;
    client->append(value);
    client->flush();
    ASSERT_EQ(client->queued_bytes(), 0U);
    run_until([&] { return at_server.data.size() == sent.size(); });
  }
  EXPECT_TRUE(at_server.data == sent);
}

TEST_F(TlsTest, PausesInTheMiddleOfWhatOpenSslHolds) {
  const std::string value = noise(500000);
  connect_pair(make(server_files()), make(client_files()));
  at_server.on_bytes = [&] { server->pause_reading(); };
  after_wakeup = [&] {
    if (server && !server->reading()) server->resume_reading();
  };
  client->append(value);
  client->flush();
  run_until([&] { return at_server.data.size() == value.size(); });
  EXPECT_TRUE(at_server.data == value);
}

TEST_F(TlsTest, KeepsWhatTheHandlerDidNotConsume) {
  connect_pair(make(server_files()), make(client_files()));
  at_server.most_at_once = 3;
  client->append("abcdef");
  client->flush();
  run_until([&] { return at_server.data == "abc"; });
  client->append("g");
  client->flush();
  run_until([&] { return at_server.data == "abcdef"; });
}

TEST_F(TlsTest, HalfCloseLetsTheAnswerThrough) {
  connect_pair(make(server_files()), make(client_files()));
  client->append("last words");
  client->finish_writing();
  client->flush();
  run_until([&] { return at_server.ended == 1; });
  EXPECT_EQ(at_server.data, "last words");
  server->append("answer");
  server->finish_writing();
  server->flush();
  run_until([&] { return at_client.ended == 1; });
  EXPECT_EQ(at_client.data, "answer");
  EXPECT_EQ(at_client.closed, "");
}

TEST_F(TlsTest, APeerThatGoesIsAnEnd) {
  connect_pair(make(server_files()), make(client_files()));
  client.reset();
  run_until([&] { return at_server.ended == 1; });
}

TEST_F(TlsTest, ByteByByte) {
  listen(make(server_files()));
  // A relay that lets one byte pass at a time, both ways.
  std::unique_ptr<Stream> relay_in, relay_out;
  struct Relay final : StreamHandler {
    Stream* to = nullptr;
    std::string early;
    int bytes = 0;
    std::size_t on_data(std::string_view data) override {
      if (to == nullptr) return 0;
      to->append(data.substr(0, 1));
      to->flush();
      ++bytes;
      return 1;
    }
    void on_end() override {}
    void on_closed(std::string_view) override {}
  } from_client, from_server;
  auto front = Listener::open(loop, "127.0.0.1:0", [&](int fd) {
    relay_in = Stream::adopt(loop, fd, from_client);
    relay_out = Stream::connect(loop, listener->address(), milliseconds(1000), from_server);
    from_client.to = relay_out.get();
    from_server.to = relay_in.get();
  });
  ASSERT_TRUE(front);
  client_context = make(client_files());
  client = Stream::connect(loop, (*front)->address(), milliseconds(10000), at_client, client_context.get());
  after_wakeup = [&] {
    for (Stream* side : {relay_in.get(), relay_out.get()}) {
      if (side == nullptr) continue;
      side->pause_reading();
      side->resume_reading();  // Delivers the next byte of the tail.
      side->flush();
    }
  };
  run_until([&] { return at_client.connected == 1; });
  client->append("drop by drop");
  client->flush();
  run_until([&] { return at_server.data == "drop by drop"; });
  EXPECT_GT(from_client.bytes, 200);
  EXPECT_GT(from_server.bytes, 500) << "the handshake came byte by byte, too";
  relay_in.reset();
  relay_out.reset();
}

TEST_F(TlsTest, ASlowHandshakeIsCutAtTheDeadline) {
  listen(make(server_files()), milliseconds(100));
  const int fd = raw_socket();
  ASSERT_EQ(::send(fd, "\x16\x03\x01", 3, 0), 3);  // The beginning of a ClientHello.
  const auto begin = std::chrono::steady_clock::now();
  run_until([&] { return !at_server.closed.empty(); });
  EXPECT_EQ(at_server.closed, "TLS handshake timed out after 100 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
  ::close(fd);
}

TEST_F(TlsTest, AClientsHandshakeHasTheConnectTimeout) {
  auto silent =
      Listener::open(loop, "127.0.0.1:0", [&](int fd) { server = Stream::adopt(loop, fd, at_server); });
  ASSERT_TRUE(silent);
  client_context = make(client_files());
  client = Stream::connect(loop, (*silent)->address(), milliseconds(100), at_client, client_context.get());
  run_until([&] { return !at_client.closed.empty(); });
  EXPECT_THAT(at_client.closed, HasSubstr("timed out after 100 ms"));
}

TEST_F(TlsTest, GarbageInsteadOfAClientHello) {
  listen(make(server_files()));
  for (const std::string& garbage :
       {std::string("*1\r\n$4\r\nPING\r\n"), std::string("GET / HTTP/1.1\r\n\r\n"), noise(5000),
        std::string(300, '\0')}) {
    at_server.closed.clear();
    const int fd = raw_socket();
    static_cast<void>(::send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL));
    ::shutdown(fd, SHUT_WR);
    run_until([&] { return !at_server.closed.empty(); });
    EXPECT_THAT(at_server.closed, HasSubstr("TLS handshake failed: "));
    ::close(fd);
  }
  EXPECT_EQ(at_server.data, "");
}

TEST_F(TlsTest, APlainServerIsNoTlsServer) {
  auto plain = Listener::open(loop, "127.0.0.1:0", [&](int fd) {
    server = Stream::adopt(loop, fd, at_server);
    server->append("-ERR Protocol error\r\n");
    server->flush();
  });
  ASSERT_TRUE(plain);
  client_context = make(client_files());
  client = Stream::connect(loop, (*plain)->address(), milliseconds(1000), at_client, client_context.get());
  run_until([&] { return !at_client.closed.empty(); });
  EXPECT_THAT(at_client.closed, HasSubstr("wrong version number"));
}

TEST_F(TlsTest, AUnixSocketsCertificateNeedsAName) {
  const std::string path = ca->file("socket");
  auto opened = Listener::open(loop, "unix:" + path, [&](int fd) {
    server = Stream::adopt(loop, fd, at_server, server_context.get());
  });
  ASSERT_TRUE(opened);
  server_context = make(server_files());
  client_context = make(client_files());
  client = Stream::connect(loop, "unix:" + path, milliseconds(1000), at_client, client_context.get());
  run_until([&] { return !at_client.closed.empty(); });
  EXPECT_THAT(at_client.closed, HasSubstr("must be given"));
  TlsContext::Client named = client_files();
  named.name = "localhost";
  client_context = make(named);
  client = Stream::connect(loop, "unix:" + path, milliseconds(1000), at_client, client_context.get());
  run_until([&] { return at_client.connected == 1; });
}

// --- reload -----------------------------------------------------------------------------------------------

TEST_F(TlsTest, ReloadTouchesNewConnectionsAlone) {
  const auto copy = [&](const std::string& from) {
    const auto replace = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(ca->file(from + ".pem"), ca->file("live.pem"), replace);
    std::filesystem::copy_file(ca->file(from + ".key"), ca->file("live.key"), replace);
  };
  copy("good");
  const auto context = make(server_files("live"));
  connect_pair(context, make(client_files()));
  copy("elsewhere");
  ASSERT_TRUE(context->reload());
  client->append("old one");
  client->flush();
  run_until([&] { return at_server.data == "old one"; });
  auto old_server = std::move(server);
  auto old_client = std::move(client);
  dial(client_context);
  run_until([&] { return !at_client.closed.empty(); });
  EXPECT_THAT(at_client.closed, HasSubstr("it is not for 127.0.0.1")) << "the new certificate was shown";
}

TEST_F(TlsTest, ABadFileKeepsTheOldAndSaysWhy) {
  const auto replace = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(ca->file("good.pem"), ca->file("live.pem"), replace);
  std::filesystem::copy_file(ca->file("good.key"), ca->file("live.key"), replace);
  const auto context = make(server_files("live"));
  std::ofstream(ca->file("live.pem")) << "no certificate";
  const Status broken = context->reload();
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("certificate " + ca->file("live.pem")));
  std::filesystem::copy_file(ca->file("second.pem"), ca->file("live.pem"), replace);
  const Status mismatch = context->reload();
  ASSERT_FALSE(mismatch);
  EXPECT_THAT(mismatch.error().message, HasSubstr("live.key"));
  std::filesystem::remove(ca->file("live.pem"));
  EXPECT_FALSE(context->reload());
  connect_pair(context, make(client_files()));
  EXPECT_EQ(at_client.connected, 1);
}

TEST_F(TlsTest, BadSettingsAreErrors) {
  TlsContext::Server no_ca = server_files();
  no_ca.clients = TlsContext::ClientCertificates::required;
  EXPECT_THAT(TlsContext::server(no_ca).error().message, HasSubstr("no CA"));
  TlsContext::Client half = client_files();
  half.certificate = ca->file("client.pem");
  EXPECT_FALSE(TlsContext::client(half));
  TlsContext::Client absent;
  absent.ca = "/nonexistent/ca.pem";
  EXPECT_THAT(TlsContext::client(absent).error().message, HasSubstr("/nonexistent/ca.pem"));
}

// Handshakes, reloads and traffic in several threads: one context serves all workers.
TEST_F(TlsTest, ThreadsShareAContextWhileItIsReloaded) {
  const auto server_side = make(server_files());
  const auto client_side = make(client_files());
  std::atomic<bool> stop{false};
  std::atomic<int> done{0};
  const auto work = [&] {
    while (!stop) {
      int fds[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
      {
        TlsSession accepting(*server_side, fds[0], "");
        TlsSession dialing(*client_side, fds[1], "localhost");
        TlsSession::Step a{}, b{};
        for (int i = 0; i < 20; ++i) {
          b = dialing.handshake();
          a = accepting.handshake();
          if (a == TlsSession::Step::done && b == TlsSession::Step::done) break;
        }
        ASSERT_EQ(a, TlsSession::Step::done) << accepting.problem();
        ASSERT_EQ(b, TlsSession::Step::done) << dialing.problem();
        EXPECT_EQ(dialing.version(), "TLSv1.3");
        char buffer[16];
        EXPECT_EQ(dialing.write("hi", 2), 2);
        EXPECT_EQ(accepting.read(buffer, sizeof buffer), 2);
      }
      ::close(fds[0]);
      ::close(fds[1]);
      ++done;
    }
  };
  std::thread one(work), two(work);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(server_side->reload());
    ASSERT_TRUE(client_side->reload());
    std::this_thread::sleep_for(milliseconds(10));
  }
  stop = true;
  one.join();
  two.join();
  EXPECT_GT(done, 10);
}

// --- unix listeners ---------------------------------------------------------------------------------------

TEST_F(TlsTest, AUnixListenerSetsItsPermissionsAndReplacesOnlyDeadSockets) {
  const std::string path = ca->file("perm.sock");
  const auto ignore = [](int fd) { ::close(fd); };
  auto first = Listener::open(loop, "unix:" + path, ignore, 0770);
  ASSERT_TRUE(first);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0770));
  const auto second = Listener::open(loop, "unix:" + path, ignore);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("stop what listens there"));
  EXPECT_TRUE(std::filesystem::exists(path)) << "the live one's file stays";
  first->reset();
  // A process that was killed leaves its file.
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = literal(*parse_endpoint("unix:" + path));
  ASSERT_EQ(::bind(fd, address->get(), address->size), 0);
  ::close(fd);
  EXPECT_TRUE(Listener::open(loop, "unix:" + path, ignore, 0600));
  std::ofstream(path) << "data";
  EXPECT_FALSE(Listener::open(loop, "unix:" + path, ignore));
  EXPECT_EQ(std::filesystem::file_size(path), 4U) << "a file that is no socket is not ours to remove";
}

}  // namespace
}  // namespace ringshift::net
