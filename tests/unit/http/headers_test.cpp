// Headers of the caller's and of the answer.
#include <gtest/gtest.h>

#include "http/client.h"
#include "http/server.h"

namespace ringshift::http {
namespace {

TEST(Headers, AStreamCallKeepsThoseOfItsAnswer) {
  auto server =
      Server::start({}, [](const Request&, Exchange& exchange) { exchange.reply(200, "text/odd", "body"); });
  ASSERT_TRUE(server.has_value());
  StreamCall stream;
  Call call;
  call.method = "GET";
  call.url = "http://127.0.0.1:" + std::to_string((*server)->port()) + "/";
  EXPECT_EQ(stream.header("Content-Type"), "");
  ASSERT_TRUE(stream.run(call, [](std::string_view) { return true; }, true));
  EXPECT_EQ(stream.header("content-TYPE"), "text/odd");
  EXPECT_EQ(stream.header("Content-Typ"), "");
}

TEST(Headers, AContentTypeOfTheCallersIsTheOnlyOne) {
  auto server = Server::start({}, [](const Request& request, Exchange& exchange) {
    exchange.reply(200, "text/plain", request.header("Content-Type").value_or("-"));
  });
  ASSERT_TRUE(server.has_value());
  Client client;
  Call call;
  call.url = "http://127.0.0.1:" + std::to_string((*server)->port()) + "/";
  EXPECT_EQ(client.send(call)->body, "application/json");
  call.headers = {"Content-Type: application/x-www-form-urlencoded"};
  EXPECT_EQ(client.send(call)->body, "application/x-www-form-urlencoded");
}

}  // namespace
}  // namespace ringshift::http
