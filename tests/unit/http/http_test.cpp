// Server and client against each other, over loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "http/client.h"
#include "http/server.h"

namespace ringshift::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string url(const Server& server, const std::string& path) {
  return "http://127.0.0.1:" + std::to_string(server.port()) + path;
}

TEST(Http, RequestAndAnswer) {
  auto server = Server::start({}, [](const Request& request, Exchange& exchange) {
    exchange.reply(request.path == "/none" ? 404 : 200, "text/plain",
                   request.method + " " + request.path + "?" + request.query + " " +
                       request.header("X-Is").value_or("-") + " " + request.body);
  });
  ASSERT_TRUE(server.has_value());
  Client client;
  Call call;
  call.url = url(**server, "/a%20b?q=1");
  call.headers = {"X-Is: here"};
  call.body = std::string("\0body", 5);
  EXPECT_EQ(client.send(call)->body, std::string("POST /a b?q=1 here \0body", 24));
  call.method = "GET";
  call.body.clear();
  call.url = url(**server, "/none");
  EXPECT_EQ(client.send(call)->status, 404);
}

TEST(Http, BodiesAndHeadersHaveABound) {
  ServerOptions options;
  options.body_bytes_max = 1000;
  options.header_bytes_max = 1000;
  std::atomic<int> handled{0};
  auto server = Server::start(options, [&](const Request&, Exchange& exchange) {
    ++handled;
    exchange.reply(200, "text/plain", "");
  });
  Client client;
  Call call;
  call.url = url(**server, "/");
  call.body.assign(2000, 'x');
  const auto large = client.send(call);
  EXPECT_TRUE(!large || large->status >= 400);
  call.body.clear();
  call.headers = {"X: " + std::string(5000, 'x')};
  const auto wide = client.send(call);
  EXPECT_TRUE(!wide || wide->status >= 400);
  EXPECT_EQ(handled, 0);
  call.headers.clear();
  EXPECT_EQ(client.send(call)->status, 200) << "the server lives on";
}

TEST(Http, AStreamComesAsItIsWrittenAndCanBeCancelled) {
  std::unique_ptr<Stream> stream;  // The server's thread alone.
  std::atomic<bool> gone{false};
  auto server = Server::start({}, [&](const Request&, Exchange& exchange) {
    stream = exchange.stream("text/plain");
    stream->on_closed([&] { gone = true; });
    stream->write("one\n");
  });
  StreamCall call;
  std::atomic<int> pieces{0};
  std::thread reader([&] {
    Call request;
    request.url = url(**server, "/");
    const auto status = call.run(request, [&](std::string_view) {
      ++pieces;
      return true;
    });
    EXPECT_EQ(status.value_or(-1), 0);
  });
  while (pieces < 1) std::this_thread::sleep_for(1ms);
  (*server)->post([&] { stream->write("two\n"); });
  while (pieces < 2) std::this_thread::sleep_for(1ms);
  const auto begin = std::chrono::steady_clock::now();
  call.cancel();
  reader.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 200ms);
  for (int i = 0; i < 2000 && !gone; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(gone) << "the server learns that the client left";
  server->reset();
  EXPECT_TRUE(stream->closed());
}

TEST(Http, EndingTheServerEndsItsStreams) {
  std::unique_ptr<Stream> stream;
  auto server = Server::start({}, [&](const Request&, Exchange& exchange) {
    stream = exchange.stream("text/plain");
    stream->write("x");
  });
  StreamCall call;
  Call request;
  request.url = url(**server, "/");
  std::thread ender;
  const auto status = call.run(request, [&](std::string_view) {
    if (!ender.joinable()) ender = std::thread([&] { server->reset(); });
    return true;
  });
  ender.join();
  EXPECT_FALSE(status.has_value()) << "cut in the middle of an answer";
  EXPECT_EQ(status.error().error.kind, ErrorKind::retryable);
}

TEST(Http, FailuresNameTheUrl) {
  Client client;
  Call call;
  call.url = "http://127.0.0.1:1/x";
  const auto refused = client.send(call);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().unsent);
  EXPECT_THAT(refused.error().error.message, HasSubstr("http://127.0.0.1:1/x"));
  auto server = Server::start({}, [](const Request&, Exchange& exchange) {
    std::this_thread::sleep_for(300ms);
    exchange.reply(200, "text/plain", "");
  });
  call.url = url(**server, "/slow");
  call.timeout = 50ms;
  const auto late = client.send(call);
  ASSERT_FALSE(late.has_value());
  EXPECT_FALSE(late.error().unsent) << "it may have been carried out";
  EXPECT_THAT(late.error().error.message, HasSubstr("within 50 ms"));
}

TEST(Http, APortInUseNamesTheFix) {
  const auto answer = [](const Request&, Exchange& exchange) { exchange.reply(200, "text/plain", ""); };
  auto first = Server::start({}, answer);
  ServerOptions options;
  options.port = (*first)->port();
  const auto second = Server::start(options, answer);
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message,
              testing::AllOf(HasSubstr(std::to_string(options.port)), HasSubstr("--listen")));
}

TEST(Address, HostPortAndLoopback) {
  EXPECT_EQ(parse_host_port("127.0.0.1:80")->port, 80);
  EXPECT_EQ(parse_host_port("[::1]:80")->host, "::1");
  for (const char* bad : {"", "x", ":80", "::1:80", "h:", "h:x", "h:65536", "h:-1"}) {
    EXPECT_FALSE(parse_host_port(bad).has_value()) << bad;
  }
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "10.0.0.1", "::", "127.evil.org", "localhost.evil.org", ""}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

}  // namespace
}  // namespace ringshift::http
