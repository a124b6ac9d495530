// HTTP over TLS between our server and our client: who is let in, who is not and in which words, and that
// files read anew count for the next connection.
#include "net/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "http/client.h"
#include "http/server.h"
#include "tests/support/test_ca.h"

namespace ringshift::http {
namespace {

using namespace std::chrono_literals;
using test::TestCa;
using testing::AnyOf;
using testing::HasSubstr;
using Certificates = net::TlsContext::ClientCertificates;

class HttpTlsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ca = new TestCa;
    other_ca = new TestCa;
    for (TestCa* one : {ca, other_ca}) {
      one->issue("server", "IP:127.0.0.1");
      one->issue("client", "DNS:client");
    }
    ca->issue("elsewhere", "DNS:elsewhere.example");
    ca->issue("expired", "IP:127.0.0.1", 0);
    ca->issue("late", "DNS:client", 0);
  }
  static void TearDownTestSuite() {
    delete ca;
    delete other_ca;
  }

  // Answers with as many bytes as it got.
  void serve(const std::string& name, Certificates clients = Certificates::none) {
    net::TlsContext::Server files{ca->file(name + ".pem"), ca->file(name + ".key"), "", clients};
    if (clients != Certificates::none) files.ca = ca->file("ca.pem");
    context = net::TlsContext::server(files).value();
    ServerOptions options;
    options.tls = context;
    auto started = Server::start(options, [this](const Request& request, Exchange& exchange) {
      if (request.path == "/stream") {
        stream = exchange.stream("text/plain");
        stream->write("one\n");
        return;
      }
      exchange.reply(200, "text/plain", request.peer + " " + std::to_string(request.body.size()));
    });
    ASSERT_TRUE(started.has_value());
    server = *std::move(started);
  }
  Call call(const std::string& scheme = "https", const std::string& path = "/") const {
    Call made;
    made.url = scheme + "://127.0.0.1:" + std::to_string(server->port()) + path;
    made.timeout = 20s;
    made.tls.ca = ca->file("ca.pem");
    return made;
  }
  Call call_as(const std::string& name, const TestCa& from) const {
    Call made = call();
    made.tls.certificate = from.file(name + ".pem");
    made.tls.key = from.file(name + ".key");
    return made;
  }
  static Error refusal(const Call& made) {
    Client client;
    const auto answer = client.send(made);
    if (answer) return {ErrorKind::internal, "was let in: " + answer->body};
    return answer.error().error;
  }

  static TestCa *ca, *other_ca;
  std::shared_ptr<net::TlsContext> context;
  std::unique_ptr<Stream> stream;  // The server's thread alone.
  std::unique_ptr<Server> server;
};
const auto kOurs = AnyOf(HasSubstr("refuses our certificate"), HasSubstr("does it take our certificate"));
TestCa* HttpTlsTest::ca = nullptr;
TestCa* HttpTlsTest::other_ca = nullptr;

TEST_F(HttpTlsTest, LongBodiesGoThroughAndConnectionsAreKept) {
  serve("server");
  Client client;
  Call made = call();
  for (const std::size_t size : {0U, 1U, 16'384U, 16'385U, 1'000'000U}) {
    made.body.assign(size, 'x');
    const auto answer = client.send(made);
    ASSERT_TRUE(answer.has_value()) << size << ": " << answer.error().error.message;
    EXPECT_EQ(answer->body, "127.0.0.1 " + std::to_string(size));
  }
}

TEST_F(HttpTlsTest, StreamsComeAsTheyAreWritten) {
  serve("server");
  StreamCall streaming;
  std::string got;
  std::atomic<std::size_t> size{0};
  std::thread reader([&] {
    const auto status = streaming.run(call("https", "/stream"), [&](std::string_view bytes) {
      got.append(bytes);
      size = got.size();
      return true;
    });
    EXPECT_EQ(status.value_or(-1), 0);
  });
  while (size < 4) std::this_thread::sleep_for(1ms);
  server->post([this] { stream->write(std::string(100'000, 'y')); });
  while (size < 100'004) std::this_thread::sleep_for(1ms);
  streaming.cancel();
  reader.join();
}

TEST_F(HttpTlsTest, AServerThatIsNotWhoItShouldBeIsRefused) {
  serve("server");
  Call made = call();
  made.tls.ca = other_ca->file("ca.pem");
  Error refused = refusal(made);
  EXPECT_EQ(refused.kind, ErrorKind::denied);
  EXPECT_THAT(refused.message, HasSubstr(other_ca->file("ca.pem")));
  made.tls.ca.clear();
  EXPECT_EQ(refusal(made).kind, ErrorKind::denied) << "the system's CAs do not know it";
  made.tls.ca = ca->file("none.pem");
  refused = refusal(made);
  EXPECT_EQ(refused.kind, ErrorKind::denied);
  EXPECT_THAT(refused.message, HasSubstr("none.pem"));
  serve("elsewhere");
  EXPECT_EQ(refusal(call()).kind, ErrorKind::denied) << "another name";
  serve("expired");
  refused = refusal(call());
  EXPECT_EQ(refused.kind, ErrorKind::denied);
  EXPECT_THAT(refused.message, HasSubstr("expired"));
}

TEST_F(HttpTlsTest, PlainAndTlsDoNotMix) {
  serve("server");
  EXPECT_EQ(refusal(call("http")).kind, ErrorKind::retryable);
  auto plain = Server::start({}, [](const Request&, Exchange& exchange) { exchange.reply(200, "t", ""); });
  server = *std::move(plain);
  const Error refused = refusal(call());
  EXPECT_EQ(refused.kind, ErrorKind::denied);
  EXPECT_THAT(refused.message, HasSubstr("no TLS"));
}

TEST_F(HttpTlsTest, RequiredClientCertificatesAreChecked) {
  serve("server", Certificates::required);
  Client client;
  EXPECT_TRUE(client.send(call_as("client", *ca)).has_value());
  // Whether the server's alert is read before the connection is cut is a race that TLS 1.3 has by design.
  EXPECT_THAT(refusal(call()).message, AnyOf(HasSubstr("wants a certificate of ours"),
                                             HasSubstr("does it want a certificate of ours")));
  EXPECT_THAT(refusal(call_as("client", *other_ca)).message, kOurs);
  EXPECT_THAT(refusal(call_as("late", *ca)).message, kOurs);
}

TEST_F(HttpTlsTest, VerifiedClientCertificatesMayBeMissingButNotWrong) {
  serve("server", Certificates::optional);
  Client client;
  EXPECT_TRUE(client.send(call()).has_value());
  EXPECT_TRUE(client.send(call_as("client", *ca)).has_value());
  EXPECT_THAT(refusal(call_as("client", *other_ca)).message, kOurs);
}

TEST_F(HttpTlsTest, FilesReadAnewCountForTheNextConnection) {
  TestCa own;
  own.issue("server", "IP:127.0.0.1");
  std::filesystem::copy_file(own.file("server.pem"), own.file("now.pem"));
  std::filesystem::copy_file(own.file("server.key"), own.file("now.key"));
  serve("server");
  context =
      net::TlsContext::server({own.file("now.pem"), own.file("now.key"), "", Certificates::none}).value();
  ServerOptions options;
  options.tls = context;
  auto started = Server::start(options, [](const Request&, Exchange& e) { e.reply(200, "t", "here"); });
  server = *std::move(started);
  Call made = call();
  made.tls.ca = own.file("ca.pem");
  Client kept;
  ASSERT_TRUE(kept.send(made).has_value());
  std::filesystem::copy_file(ca->file("server.pem"), own.file("now.pem"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(context->reload().has_value()) << "the key is not this certificate's";
  EXPECT_TRUE(Client().send(made).has_value());
  std::filesystem::copy_file(ca->file("server.key"), own.file("now.key"),
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_TRUE(context->reload().has_value());
  EXPECT_TRUE(kept.send(made).has_value()) << "an open connection goes on";
  EXPECT_FALSE(Client().send(made).has_value()) << "a new one sees the new certificate";
  EXPECT_TRUE(Client().send(call()).has_value());
}

}  // namespace
}  // namespace ringshift::http
