// Who gets in, endpoint by endpoint. The table of what is sent to each is checked against the server's own
// table of routes: an endpoint that is added there fails here until it is said who may use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/encoding.h"
#include "http/client.h"
#include "registry/server.h"

namespace ringshift::registry {
namespace {

using namespace std::chrono_literals;
using base::to_base64;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

std::string key_body(const std::string& key, const std::string& end = "") {
  return R"({"key":")" + to_base64(key) + (end.empty() ? "" : R"(","range_end":")" + to_base64(end)) + "\"}";
}
std::string put_of(const std::string& key, const std::string& value, const std::string& lease = "0") {
  return R"({"key":")" + to_base64(key) + R"(","value":")" + to_base64(value) + R"(","lease":")" + lease +
         "\"}";
}

class RegistryAccessTest : public testing::Test {
 protected:
  RegistryAccessTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "ringshift-access-XXXXXX";
    directory = mkdtemp(pattern.data());
    options.port = 0;
    options.database = directory + "/registry.db";
    options.auth = true;
    options.requests_per_second = 0;
  }
  ~RegistryAccessTest() override {
    server.reset();
    std::filesystem::remove_all(directory);
  }
  void start() {
    server.reset();
    auto started = Server::start(options);
    ASSERT_TRUE(started.has_value()) << started.error().message;
    server = *std::move(started);
    if (!server->admin_token_file().empty()) admin = secret_in(server->admin_token_file());
  }
  static std::string secret_in(const std::string& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    EXPECT_TRUE(line.starts_with("token:rs_"));
    return line.substr(line.find(':') + 1);
  }
  struct Got {
    int status = 0;
    std::string body;
    Json json() const { return Json::parse(body, nullptr, false); }
  };
  Got ask(const std::string& path, const std::string& body, const std::string& token,
          const std::string& method = "POST") {
    http::StreamCall call;
    http::Call request;
    request.method = method;
    request.url = server->url() + path;
    request.body = body;
    request.timeout = 20s;
    if (!token.empty()) request.headers = {"Authorization: Bearer " + token};
    Got got;
    // A watch answers for ever: its first line is enough.
    const auto status = call.run(request, [&](std::string_view bytes) {
      got.body.append(bytes);
      return path != "/v3/watch" || got.body.find('\n') == std::string::npos;
    });
    EXPECT_TRUE(status.has_value()) << path;
    got.status = status && *status != 0 ? *status : 200;
    return got;
  }
  std::string make(const Json& token) {
    const Got got = ask("/ringshift/v1/token/create", token.dump(), admin);
    EXPECT_EQ(got.status, 200) << got.body;
    return got.json().value("token", "");
  }
  std::string lease_of(const std::string& token) {
    const Got got = ask("/v3/lease/grant", R"({"TTL":"60"})", token);
    EXPECT_EQ(got.status, 200) << got.body;
    return got.json().value("ID", "");
  }

  std::string directory, admin;
  Options options;
  std::unique_ptr<Server> server;
};

TEST_F(RegistryAccessTest, EveryEndpointAsksWhoCalls) {
  start();
  const std::string reader = make({{"name", "reader"}, {"role", "read"}, {"namespace", "a"}});
  const std::string operates = make({{"name", "operates"}, {"role", "operate"}, {"namespace", "a"}});
  const std::string elsewhere = make({{"name", "elsewhere"}, {"role", "operate"}, {"namespace", "b"}});
  const std::string revoked = make({{"name", "revoked"}, {"role", "operate"}, {"namespace", "a"}});
  const std::string expired =
      make({{"name", "expired"}, {"role", "operate"}, {"namespace", "a"}, {"expires_in_seconds", 1}});
  ASSERT_EQ(ask("/ringshift/v1/token/revoke", R"({"name":"revoked"})", admin).status, 200);
  std::this_thread::sleep_for(2100ms);

  const std::string key = "/ringshift/a/c/spec";
  const std::string mine = lease_of(operates), mine_too = lease_of(operates), last = lease_of(operates);
  const auto id = [](const std::string& lease) { return R"({"ID":")" + lease + "\"}"; };
  // What is sent, who may, and who may not though the token is good.
  struct Row {
    std::string body, right, wrong;
    int right_status = 200;
  };
  const std::string txn = R"({"compare":[{"key":")" + to_base64(key) +
                          R"(","target":"VERSION"}],"success":[{"request_put":)" + put_of(key, "x") + "}]}";
  const std::map<std::string, Row> rows = {
      {"/v3/kv/range", {key_body(key), reader, elsewhere}},
      {"/v3/kv/put", {put_of(key, "x"), operates, reader}},
      {"/v3/kv/deleterange", {key_body(key), operates, reader}},
      {"/v3/kv/txn", {txn, operates, reader}},
      {"/v3/kv/compaction", {R"({"revision":"1"})", admin, operates}},
      {"/v3/lease/grant", {R"({"TTL":"60"})", operates, reader}},
      {"/v3/lease/keepalive", {id(mine), operates, elsewhere}},
      {"/v3/lease/timetolive", {id(mine), operates, elsewhere}},
      {"/v3/kv/lease/timetolive", {id(mine), operates, elsewhere}},
      {"/v3/lease/leases", {"{}", operates, reader}},
      {"/v3/kv/lease/leases", {"{}", operates, reader}},
      {"/v3/lease/revoke", {id(mine_too), operates, elsewhere}},
      {"/v3/kv/lease/revoke", {id(last), operates, elsewhere}},
      {"/v3/maintenance/status", {"{}", reader, ""}},  // Whoever has a token may ask how large it is.
      {"/v3/watch", {R"({"create_request":)" + key_body(key) + "}", reader, elsewhere}},
      {"/ringshift/v1/token/create", {R"({"name":"new","role":"read"})", admin, operates}},
      {"/ringshift/v1/token/list", {"{}", admin, operates}},
      {"/ringshift/v1/token/rotate", {R"({"name":"reader","grace_seconds":600})", admin, operates}},
      {"/ringshift/v1/token/revoke", {R"({"name":"elsewhere"})", admin, reader}},
      {"/ringshift/v1/audit", {"{}", admin, operates}},
      {"/ringshift/v1/backup", {"{}", admin, operates}},
  };
  std::vector<std::string> in_order;
  for (const RouteInfo& route : Server::routes()) {
    const std::string path(route.path);
    if (route.need == Need::nothing) {
      EXPECT_THAT((std::vector<std::string>{"/health", "/version", "/v3/auth/authenticate"}),
                  testing::Contains(path));
      continue;
    }
    ASSERT_TRUE(rows.contains(path)) << path << " is new: say here who may use it";
    const Row& row = rows.at(path);
    for (const std::string& token : {std::string(), std::string("rs_short"), "rs_" + std::string(43, 'A'),
                                     revoked, expired, std::string("Bearer"), std::string(2000, 'x')}) {
      const Got got = ask(path, row.body, token);
      EXPECT_EQ(got.status, 401) << path << " with '" << token << "': " << got.body;
      EXPECT_EQ(got.json().value("code", 0), 16) << got.body;
      if (!token.empty() && token != "Bearer") {
        EXPECT_THAT(got.body, Not(HasSubstr(token))) << "no secret in an error";
      }
    }
    if (!row.wrong.empty()) {
      const Got got = ask(path, row.body, row.wrong);
      EXPECT_EQ(got.status, 403) << path << ": " << got.body;
      EXPECT_EQ(got.json().value("code", 0), 7) << got.body;
      EXPECT_THAT(got.body, Not(HasSubstr("rs_")));
    }
  }
  for (const RouteInfo& route : Server::routes()) {
    if (route.need == Need::nothing) continue;
    const Row& row = rows.at(std::string(route.path));
    EXPECT_EQ(ask(std::string(route.path), row.body, row.right).status, row.right_status) << route.path;
  }
}

TEST_F(RegistryAccessTest, TheOpenEndpointsTellNothing) {
  start();
  EXPECT_EQ(ask("/health", "", "", "GET").status, 200);
  EXPECT_EQ(ask("/version", "", "", "GET").status, 200);
  const std::string reader = make({{"name", "reader"}, {"role", "read"}});
  Got got = ask("/v3/auth/authenticate", R"({"name":"reader","password":")" + reader + "\"}", "");
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.json().value("token", ""), reader);
  got = ask("/v3/auth/authenticate", R"({"name":"admin","password":")" + reader + "\"}", "");
  EXPECT_EQ(got.status, 400) << "another's name";
  EXPECT_THAT(got.body, Not(HasSubstr(reader)));
  options.auth = false;
  start();
  got = ask("/v3/auth/authenticate", R"({"name":"reader","password":"x"})", "");
  EXPECT_THAT(got.body, HasSubstr("etcdserver: authentication is not enabled"));
  EXPECT_EQ(ask("/v3/kv/put", put_of("/any", "x"), "").status, 200) << "without --auth everything is allowed";
}

TEST_F(RegistryAccessTest, NothingOutsideTheNamespaceIsSeen) {
  start();
  const std::string reader = make({{"name", "reader"}, {"role", "read"}, {"namespace", "a"}});
  const std::string zero(1, '\0');
  const std::vector<std::pair<std::string, std::string>> denied = {
      {"/ringshift/", "/ringshift0"},    {"/ringshift/a", ""},         {"/ringshift/a/", zero},
      {"/ringshift/a/", "/ringshift/b"}, {"/ringshift/b/c/spec", ""},  {zero, zero},
      {"/ringshift/a", "/ringshift/a0"}, {"/ringshift/ab/c/spec", ""}, {"/ringshift/a/", "\xff"}};
  for (const auto& [key, end] : denied) {
    EXPECT_EQ(ask("/v3/kv/range", key_body(key, end), reader).status, 403) << key << " to " << end;
    EXPECT_EQ(ask("/v3/watch", R"({"create_request":)" + key_body(key, end) + "}", reader).status, 403)
        << key;
    const std::string compare = R"({"compare":[)" + key_body(key, end) + "]}";
    EXPECT_EQ(ask("/v3/kv/txn", compare, reader).status, 403) << key;
    const std::string failure = R"({"failure":[{"request_range":)" + key_body(key, end) + "}]}";
    EXPECT_EQ(ask("/v3/kv/txn", failure, reader).status, 403) << key;
  }
  EXPECT_EQ(ask("/v3/watch", "{\"create_request\":{}}", reader).status, 403) << "no key: everything";
  EXPECT_EQ(ask("/v3/kv/range", key_body("/ringshift/a/", "/ringshift/a0"), reader).status, 200);
  const std::string two = R"({"create_request":)" + key_body("/ringshift/a/c/spec") +
                          R"(}{"create_request":)" + key_body("/ringshift/b/c/spec") + "}";
  EXPECT_EQ(ask("/v3/watch", two, reader).status, 403) << "one of two is enough";
}

TEST_F(RegistryAccessTest, AnInstanceRegistersItselfAlone) {
  start();
  const std::string agent = make({{"name", "agent-1"},
                                  {"role", "register-own"},
                                  {"ids", {"cache-1"}},
                                  {"addresses", {"10.1.0.0/16", "fd00::/8"}}});
  const std::string twin = make({{"name", "twin"}, {"role", "register-own"}, {"ids", {"cache-*"}}});
  const std::string lease = lease_of(agent);
  const std::string at = "/ringshift/default/c/instances/";
  const auto record = [](const std::string& id, const std::string& address,
                         const Json& more = Json::object()) {
    Json json = {{"id", id}, {"address", address}, {"state", "up"}};
    json.update(more);
    return json.dump();
  };
  const auto put = [&](const std::string& token, const std::string& key, const std::string& value,
                       const std::string& with) {
    return ask("/v3/kv/put", put_of(key, value, with), token).status;
  };

  EXPECT_EQ(put(agent, at + "cache-1", record("cache-1", "10.1.2.3:6379"), lease), 200);
  EXPECT_EQ(put(agent, at + "cache-1", record("cache-1", "[fd00::1]:6379"), lease), 200);
  EXPECT_EQ(
      put(agent, at + "cache-1", record("cache-1", "10.1.2.3:6379", {{"labels", {{"zone", "a"}}}}), lease),
      200)
      << "labels are its own";
  EXPECT_EQ(put(agent, "/ringshift/default/c/routers/cache-1.0a1b2c3d", "{}", lease), 200)
      << "a router's suffix";
  for (const char* address :
       {"10.2.0.1:6379", "cache.example:6379", "10.1.2.3", "unix:/tmp/s", "[::1]:6379", ""}) {
    EXPECT_EQ(put(agent, at + "cache-1", record("cache-1", address), lease), 403) << address;
  }
  EXPECT_EQ(put(agent, at + "cache-1", record("cache-2", "10.1.2.3:6379"), lease), 403) << "another id in it";
  EXPECT_EQ(put(agent, at + "cache-1", record("cache-1", "10.1.2.3:6379", {{"weight", 9}}), lease), 403);
  EXPECT_EQ(put(agent, at + "cache-1", record("cache-1", "10.1.2.3:6379", {{"zone", "a"}}), lease), 403);
  EXPECT_EQ(put(agent, at + "cache-1", "no json", lease), 403);
  EXPECT_EQ(put(agent, at + "cache-1", record("cache-1", "10.1.2.3:6379"), "0"), 403) << "without a lease";
  EXPECT_EQ(put(agent, at + "cache-2", record("cache-2", "10.1.2.3:6379"), lease), 403);
  EXPECT_EQ(put(agent, at + "cache-1/x", record("cache-1/x", "10.1.2.3:6379"), lease), 403);
  EXPECT_EQ(put(agent, at + "cache-1", record("cache-1", "10.1.2.3:6379"), lease_of(twin)), 403)
      << "another's lease";
  EXPECT_EQ(put(agent, "/ringshift/other/c/instances/cache-1", record("cache-1", "10.1.2.3:6379"), lease),
            403);
  EXPECT_EQ(put(agent, "/ringshift/default/instances/cache-1", record("cache-1", "10.1.2.3:6379"), lease),
            403);
  for (const char* name : {"spec", "topology", "request", "controller", "status", "history/1"}) {
    EXPECT_EQ(put(agent, std::string("/ringshift/default/c/") + name, "{}", lease), 403) << name;
  }
  // Its id fits the twin's pattern, but agent-1's lease holds the record.
  EXPECT_EQ(put(twin, at + "cache-1", record("cache-1", "10.9.9.9:1"), lease_of(twin)), 403);
  EXPECT_EQ(ask("/v3/kv/deleterange", key_body(at + "cache-1"), twin).status, 403);
  EXPECT_EQ(ask("/v3/kv/deleterange", key_body(at + "cache-1", at + "cache-2"), agent).status, 403)
      << "a range";
  EXPECT_EQ(ask("/v3/kv/deleterange", key_body(at + "cache-1"), agent).status, 200);

  EXPECT_EQ(
      ask("/v3/kv/range", key_body("/ringshift/default/c/topology", "/ringshift/default/c/topologz"), agent)
          .status,
      200);
  EXPECT_EQ(ask("/v3/kv/range", key_body(at, "/ringshift/default/c/instances0"), agent).status, 200);
  EXPECT_EQ(ask("/v3/kv/range", key_body("/ringshift/default/c/drained/cache-1"), agent).status, 200);
  const std::string routers = "/ringshift/default/c/routers/";
  EXPECT_EQ(ask("/v3/kv/range", key_body(routers + "cache-1.0a1b2c3d"), agent).status, 200) << "its own";
  EXPECT_EQ(ask("/v3/kv/range", key_body(routers, "/ringshift/default/c/routers0"), agent).status, 403)
      << "all of them, with the keys that are hot";
  for (const char* name : {"request", "log/", "history/", "controller", "routers/cache-2", ""}) {
    EXPECT_EQ(ask("/v3/kv/range", key_body(std::string("/ringshift/default/c/") + name), agent).status, 403)
        << name;
  }
  EXPECT_EQ(
      ask("/v3/kv/range", key_body("/ringshift/default/c/spec", "/ringshift/default/c/z"), agent).status,
      403);
}

TEST_F(RegistryAccessTest, RotationLeavesTwoUntilItsGraceEnds) {
  start();
  const std::string key = key_body("/ringshift/default/c/spec");
  const std::string first = make({{"name", "ops"}, {"role", "operate"}});
  const auto rotate = [&](int grace) {
    return ask("/ringshift/v1/token/rotate", Json({{"name", "ops"}, {"grace_seconds", grace}}).dump(), admin)
        .json()
        .value("token", "");
  };
  const std::string second = rotate(600);
  EXPECT_EQ(ask("/v3/kv/range", key, first).status, 200);
  EXPECT_EQ(ask("/v3/kv/range", key, second).status, 200);
  const std::string third = rotate(1);
  EXPECT_EQ(ask("/v3/kv/range", key, first).status, 401) << "the oldest of three ends at once";
  EXPECT_EQ(ask("/v3/kv/range", key, third).status, 200);
  for (int i = 0; i < 100 && ask("/v3/kv/range", key, second).status != 401; ++i)
    std::this_thread::sleep_for(100ms);
  EXPECT_EQ(ask("/v3/kv/range", key, second).status, 401);
  const std::string fourth = rotate(0);
  EXPECT_EQ(ask("/v3/kv/range", key, third).status, 401);
  start();  // What is kept is what counts.
  EXPECT_TRUE(server->admin_token_file().empty()) << "there is one";
  EXPECT_EQ(ask("/v3/kv/range", key, fourth).status, 200);
  EXPECT_EQ(ask("/ringshift/v1/token/revoke", R"({"name":"admin"})", admin).status, 400) << "the last admin";
  options.new_admin_token = true;
  const std::string lost = admin;
  start();
  EXPECT_NE(admin, lost);
  EXPECT_EQ(ask("/ringshift/v1/token/revoke", R"({"name":"admin"})", admin).status, 200);
  EXPECT_EQ(ask("/ringshift/v1/token/list", "{}", lost).status, 401);
}

TEST_F(RegistryAccessTest, AWatchEndsWithItsToken) {
  start();
  const std::string reader = make({{"name", "reader"}, {"role", "read"}});
  http::StreamCall call;
  http::Call request;
  request.url = server->url() + "/v3/watch";
  request.body = R"({"create_request":)" + key_body("/ringshift/default/", "/ringshift/default0") + "}";
  request.headers = {"Authorization: " + reader};  // As etcd's clients send it.
  std::atomic<bool> open{false}, ended{false};
  std::thread watcher([&] {
    const auto status = call.run(request, [&](std::string_view) {
      open = true;
      return true;
    });
    EXPECT_EQ(status.value_or(-1), 200);
    ended = true;
  });
  for (int i = 0; i < 3000 && !open; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(ask("/ringshift/v1/token/revoke", R"({"name":"reader"})", admin).status, 200);
  for (int i = 0; i < 3000 && !ended; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(ended);
  if (!ended) call.cancel();
  watcher.join();
}

TEST_F(RegistryAccessTest, TheAuditSaysWhoDidWhatAndHidesValues) {
  start();
  const std::string ops = make({{"name", "ops"}, {"role", "operate"}});
  const std::string key = "/ringshift/default/c/spec";
  ask("/v3/kv/put", put_of(key, "first"), ops);
  ask("/v3/kv/put", put_of(key, "second-value"), ops);
  ask("/v3/kv/put", put_of("/ringshift/default/c/status", "noise"), ops);
  ask("/v3/kv/deleterange", key_body(key), ops);
  ask("/v3/kv/put", put_of("/ringshift/x/c/spec", "no"), ops);
  ask("/v3/kv/put", put_of(key, "no"), "rs_" + std::string(43, 'B'));
  const Got got = ask("/ringshift/v1/audit", "{}", admin);
  ASSERT_EQ(got.status, 200);
  std::vector<std::string> lines;
  const Json answer = got.json();
  for (const Json& row : answer.at("rows")) {
    lines.push_back(row.value("who", "") + " " + row.value("verb", "") + " " + row.value("key", "") + " " +
                    row.value("before", "-").substr(0, 3) + " " + row.value("after", "-").substr(0, 3) + " " +
                    row.value("outcome", "").substr(0, 10));
  }
  EXPECT_THAT(lines,
              testing::ElementsAre("the registry itself token create token/admin - - ok",
                                   "admin token create token/ops - - ok", "ops put " + key + " - 5:a ok",
                                   "ops put " + key + " 5:a 12: ok", "ops delete " + key + " 12: - ok",
                                   HasSubstr("ops /v3/kv/put  - - "), " /v3/kv/put  - - a token th"));
  for (const char* secret : {"second-value", "rs_"}) EXPECT_THAT(got.body, Not(HasSubstr(secret)));
  for (const char* suffix : {"", "-wal"}) {
    std::ifstream file(options.database + suffix, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    EXPECT_FALSE(bytes.empty()) << suffix;
    EXPECT_THAT(bytes.find(ops), std::string::npos) << "secrets are kept as digests alone";
  }
}

TEST_F(RegistryAccessTest, ATokenHasItsLimits) {
  options.requests_per_second = 20;
  options.watches_per_token = 1;
  start();
  const std::string reader = make({{"name", "reader"}, {"role", "read"}});
  const std::string key = key_body("/ringshift/default/c/spec");
  int limited = 0;
  for (int i = 0; i < 200; ++i) limited += ask("/v3/kv/range", key, reader).status == 429 ? 1 : 0;
  EXPECT_GT(limited, 0);
  EXPECT_EQ(ask("/v3/kv/range", key, admin).status, 200) << "each has its own";
  const std::string two = R"({"create_request":)" + key + R"(}{"create_request":)" + key + "}";
  EXPECT_EQ(ask("/v3/watch", two, admin).status, 429);
}

TEST_F(RegistryAccessTest, ALeaseHoldsSoManyRecordsAndNoOthersByName) {
  start();
  const std::string all = make({{"name", "all"}, {"role", "register-own"}, {"ids", {"*"}}});
  const std::string lease = lease_of(all), at = "/ringshift/default/c/routers/";
  const auto put = [&](const std::string& token, const std::string& id, const std::string& with) {
    return ask("/v3/kv/put", put_of(at + id, "{}", with), token).status;
  };
  for (int i = 0; i < 16; ++i) ASSERT_EQ(put(all, "r" + std::to_string(i), lease), 200) << i;
  EXPECT_EQ(put(all, "r16", lease), 403);
  EXPECT_EQ(put(all, "r3", lease), 200) << "it is there";
  EXPECT_EQ(put(all, "r16", lease_of(all)), 200) << "another lease";

  const std::string shorter = make({{"name", "cache"}, {"role", "register-own"}});
  const std::string longer = make({{"name", "cache.2"}, {"role", "register-own"}});
  EXPECT_EQ(put(shorter, "cache.1", lease_of(shorter)), 200);
  EXPECT_EQ(put(shorter, "cache.2", lease_of(shorter)), 403) << "it has a token of its own";
  EXPECT_EQ(put(shorter, "cache.2.0a1b2c3d", lease_of(shorter)), 403);
  EXPECT_EQ(ask("/v3/kv/deleterange", key_body(at + "cache.2"), shorter).status, 403);
  EXPECT_EQ(put(longer, "cache.2", lease_of(longer)), 200);
}

TEST_F(RegistryAccessTest, WhatIsNotSafeIsRefusedAtTheStart) {
  options.listen_host = "0.0.0.0";
  auto refused = Server::start(options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("without both authentication and TLS"));
  options.open_to_the_network = true;
  start();
  struct stat about {};
  ASSERT_EQ(stat(server->admin_token_file().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  EXPECT_EQ(server->admin_token_file(), options.database + ".admin-token");
}

TEST_F(RegistryAccessTest, TokensThatMeanNothingAreRefused) {
  start();
  for (const Json& token :
       {Json{{"name", "a/b"}, {"role", "read"}}, Json{{"name", ""}, {"role", "read"}},
        Json{{"name", "a"}, {"role", "root"}}, Json{{"name", "a"}, {"role", "read"}, {"namespace", "a/b"}},
        Json{{"name", "a"}, {"role", "read"}, {"namespace", "*"}},
        Json{{"name", "a"}, {"role", "admin"}, {"namespace", "x"}},
        Json{{"name", "a"}, {"role", "read"}, {"ids", {"x"}}},
        Json{{"name", "a"}, {"role", "register-own"}, {"ids", {"x,y"}}},
        Json{{"name", "a"}, {"role", "register-own"}, {"addresses", {"10.0.0.0/33"}}},
        Json{{"name", "a"}, {"role", "register-own"}, {"addresses", {"host"}}},
        Json{{"name", "a"}, {"role", "read"}, {"expires_in_seconds", -1}},
        Json{{"name", 7}, {"role", "read"}}, Json{{"name", "admin"}, {"role", "read"}}}) {
    EXPECT_EQ(ask("/ringshift/v1/token/create", token.dump(), admin).status, 400) << token;
  }
}

}  // namespace
}  // namespace ringshift::registry
