// The dashboard's files as a browser gets them, headers and all.
#include "admin/dashboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "http/server.h"

namespace ringshift::admin {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Called with what a browser sends, it keeps what the browser would get.
struct FakeExchange : http::Exchange {
  int status = 0;
  std::string type, body;
  std::map<std::string, std::string> headers;
  void reply(int code, std::string_view content_type, std::string_view bytes) override {
    status = code;
    type = content_type;
    body = bytes;
  }
  void add_header(const std::string& name, const std::string& value) override { headers[name] = value; }
  std::unique_ptr<http::Stream> stream(std::string_view) override { return nullptr; }
  std::unique_ptr<http::Deferred> defer() override { return nullptr; }
};

FakeExchange get(const std::string& path, std::map<std::string, std::string> headers = {}) {
  static const http::Handler handler = dashboard();
  FakeExchange exchange;
  http::Request request;
  request.method = "GET";
  request.path = path;
  request.header = [headers = std::move(headers)](const std::string& name) -> std::optional<std::string> {
    const auto found = headers.find(name);
    if (found == headers.end()) return std::nullopt;
    return found->second;
  };
  handler(request, exchange);
  return exchange;
}

TEST(Dashboard, ThePageMayLoadFromThisServerAlone) {
  const FakeExchange page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_THAT(page.body, StartsWith("<!doctype html>"));
  EXPECT_THAT(page.headers.at("Content-Security-Policy"), StartsWith("default-src 'self';"));
  EXPECT_EQ(page.headers.at("X-Content-Type-Options"), "nosniff");
  for (const char* outside : {"http://", "https://", "src=\"//"})
    EXPECT_THAT(page.body, Not(HasSubstr(outside)));
  EXPECT_EQ(get("/index.html").body, page.body);
}

TEST(Dashboard, WhatThePageNamesIsThere) {
  if (get("/app.js").status == 404) GTEST_SKIP() << "built without the dashboard";
  const std::string page = get("/").body;
  const std::map<std::string, std::string> types = {{"/app.js", "text/javascript; charset=utf-8"},
                                                    {"/app.css", "text/css; charset=utf-8"},
                                                    {"/boot.js", "text/javascript; charset=utf-8"},
                                                    {"/favicon.svg", "image/svg+xml"}};
  for (const auto& [path, type] : types) {
    EXPECT_THAT(page, HasSubstr("\"." + path + "\""));
    const FakeExchange file = get(path);
    EXPECT_EQ(file.status, 200) << path;
    EXPECT_EQ(file.type, type);
    EXPECT_FALSE(file.body.empty());
    EXPECT_EQ(file.headers.count("Content-Encoding"), 0U) << "who does not ask for gzip must not get it";
  }
}

TEST(Dashboard, CompressedForWhoTakesIt) {
  if (get("/app.js").status == 404) GTEST_SKIP() << "built without the dashboard";
  const FakeExchange plain = get("/app.js");
  for (const char* accepted : {"gzip", "br;q=1.0, gzip;q=0.8, *;q=0.1", "deflate, gzip"}) {
    const FakeExchange file = get("/app.js", {{"Accept-Encoding", accepted}});
    ASSERT_EQ(file.headers.at("Content-Encoding"), "gzip") << accepted;
    EXPECT_THAT(file.body, StartsWith("\x1f\x8b"));
    EXPECT_LT(file.body.size(), plain.body.size() / 2);
    EXPECT_NE(file.headers.at("ETag"), plain.headers.at("ETag"));
    EXPECT_EQ(file.headers.at("Vary"), "Accept-Encoding");
  }
  for (const char* accepted : {"identity", "gzip;q=0", "gzip;q=0.0, br"}) {
    EXPECT_EQ(get("/app.js", {{"Accept-Encoding", accepted}}).body, plain.body) << accepted;
  }
}

TEST(Dashboard, AskedForAgainItSaysThatNothingChanged) {
  const std::string etag = get("/").headers.at("ETag");
  EXPECT_THAT(etag, testing::MatchesRegex("\"[0-9a-f]+\""));
  const FakeExchange again = get("/", {{"If-None-Match", etag}});
  EXPECT_EQ(again.status, 304);
  EXPECT_TRUE(again.body.empty());
  EXPECT_EQ(again.headers.at("ETag"), etag);
  EXPECT_EQ(get("/", {{"If-None-Match", "\"other\""}}).status, 200);
}

TEST(Dashboard, WhatIsNotThereIsSaidInWords) {
  const FakeExchange none = get("/../etc/passwd");
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.body, HasSubstr("the dashboard is at /"));
  EXPECT_LT(get("/" + std::string(100'000, 'x')).body.size(), 400U);
}

}  // namespace
}  // namespace ringshift::admin
