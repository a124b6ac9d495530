// The API over a real registry: what is there, who may do what, and the stream.
#include "admin/api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "admin/bodies.h"
#include "coord/keys.h"
#include "http/client.h"
#include "registry/server.h"

namespace ringshift::admin {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

// A client of the stream, on a thread of its own.
class Listening {
 public:
  explicit Listening(const std::string& url) {
    thread_ = std::thread([this, url] {
      http::Call call;
      call.method = "GET";
      call.url = url;
      call.timeout = 10s;
      const auto status = call_.run(call, [this](std::string_view bytes) {
        const std::lock_guard lock(mutex_);
        text_ += bytes;
        return true;
      });
      status_ = status.value_or(-1);
    });
  }
  ~Listening() {
    call_.cancel();
    thread_.join();
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  [[nodiscard]] bool wait_for(const std::string& part) const {
    for (int i = 0; i < 3000; ++i) {
      if (text().find(part) != std::string::npos) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  std::atomic<int> status_{0};

 private:
  http::StreamCall call_;
  mutable std::mutex mutex_;
  std::string text_;
  std::thread thread_;
};

class ApiTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/ringshift-admin-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    directory_ = pattern;
    registry_ = std::move(*registry::Server::start({"127.0.0.1", 0, directory_ + "/db"}));
    coordinator_ = std::move(*coord::connect({{registry_->url()}, 3000ms}));
    topology_.spec = *topology::parse_spec(
        "cluster: cache\nmembers:\n- {id: a, address: '127.0.0.1:1'}\n- {id: b, address: '127.0.0.1:2'}\n",
        "spec");
    put(keys_.spec(), topology::to_json(topology_.spec));
    publish();
  }
  void TearDown() override {
    if (api_) api_->stop();
    listener_.reset();
    api_.reset();
    coordinator_.reset();
    registry_.reset();
    std::filesystem::remove_all(directory_);
  }
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(coordinator_->put(key, value).has_value());
  }
  void publish() {
    const std::string text = topology::to_json(topology_);
    ASSERT_TRUE(coordinator_
                    ->transact({}, {{coord::Op::Kind::put, keys_.topology(), text, 0},
                                    {coord::Op::Kind::put,
                                     fmt::format("{}{:020}", keys_.history(), ++published_), text, 0}})
                    .has_value());
  }
  void start(bool with_token) {
    ApiOptions options{"serve", keys_, {registry_->url(), "default", "cache"}, nullptr, std::nullopt, false};
    if (with_token)
      options.tokens = *Tokens::parse(fmt::format("ann {}", kToken), directory_ + "/admin.token");
    listener_ = std::move(*Listener::start({}));
    api_ = std::make_unique<Api>(*coordinator_, std::move(options));
    api_->attach(*listener_);
    for (int i = 0; i < 3000 && get("/overview").value("version", "").empty(); ++i)
      std::this_thread::sleep_for(10ms);
  }
  http::Answer ask(const std::string& method, const std::string& path, const std::string& body = "",
                   std::vector<std::string> headers = {}) {
    http::Call call;
    call.method = method;
    call.url = listener_->url() + "/api/v1" + path;
    call.body = body;
    call.headers = std::move(headers);
    call.timeout = 30s;
    auto answer = client_.send(call);
    EXPECT_TRUE(answer.has_value()) << method << " " << path << (answer ? "" : answer.error().error.message);
    return answer ? *answer : http::Answer{};
  }
  json get(const std::string& path) { return json::parse(ask("GET", path).body, nullptr, false); }
  static std::string code(const http::Answer& answer) {
    const json body = json::parse(answer.body, nullptr, false);
    return body.is_object() && body.contains("error") ? body["error"].value("code", "") : "";
  }

  std::string directory_;
  std::unique_ptr<registry::Server> registry_;
  std::unique_ptr<coord::Coordinator> coordinator_;
  const coord::ClusterKeys keys_{"default", "cache"};
  topology::Topology topology_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Api> api_;
  http::Client client_;
  int published_ = 0;
};

// A path with its braces filled in.
std::string concrete(std::string path) {
  for (const auto& [name, value] : {std::pair{"{id}", "a"}, {"{revision}", "current"}}) {
    if (const std::size_t at = path.find(name); at != std::string::npos)
      path.replace(at, std::string(name).size(), value);
  }
  return path;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

// Each path and method of the server is in the contract, with the token where it needs one, and the other way
// round.
TEST(ApiContract, NamesEveryRoute) {
  const std::string text = file_text(RINGSHIFT_SOURCE_DIR "/docs/openapi.yaml");
  const std::size_t begin = text.find("\npaths:\n"), end = text.find("\ncomponents:\n");
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos);
  std::set<std::string> in_file, with_token, in_server, server_with_token;
  std::string path, method, line;
  for (std::istringstream lines(text.substr(begin + 1, end - begin)); std::getline(lines, line);) {
    if (line.starts_with("  /")) path = line.substr(2, line.size() - 3);
    if (line == "    get:" || line == "    post:") {
      method = line == "    get:" ? "GET" : "POST";
      in_file.insert(method + " " + path);
    }
    if (line == "      security: [{token: []}]") with_token.insert(method + " " + path);
  }
  for (const Api::RouteName& route : Api::routes()) {
    in_server.insert(fmt::format("{} {}", route.method, route.path));
    if (route.action) server_with_token.insert(fmt::format("{} {}", route.method, route.path));
  }
  EXPECT_EQ(in_file, in_server);
  EXPECT_EQ(with_token, server_with_token);
}

TEST_F(ApiTest, WhoMayDoWhat) {
  start(true);
  api_->stop();  // Nobody answers for a controller here: do not wait for one.
  const std::string right = fmt::format("Authorization: Bearer {}", kToken);
  for (const Api::RouteName& route : Api::routes()) {
    if (std::string_view(route.path) == "/events") continue;
    const std::string path = concrete(route.path);
    SCOPED_TRACE(std::string(route.method) + " " + path);
    const auto status = [&](std::vector<std::string> headers) {
      return ask(route.method, path, "{}", std::move(headers)).status;
    };
    const int without = status({}), wrong = status({"Authorization: Bearer wrongwrongwrongwrong"}),
              good = status({right});
    if (route.action) {
      EXPECT_EQ(without, 401);
      EXPECT_EQ(wrong, 401);
      EXPECT_NE(good, 401);
      EXPECT_NE(good, 403);
    } else {
      EXPECT_EQ(without, good) << "reads are open";
      EXPECT_EQ(wrong, good);
      EXPECT_NE(without, 401);
    }
    // Another site's page, by whatever name it reaches us, gets nothing, with the token or without.
    EXPECT_EQ(status({right, "Origin: http://evil.example"}), 403);
    EXPECT_EQ(status({right, "Host: evil.example"}), 403);
    EXPECT_EQ(status({right, "Origin: null"}), 403);
    for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS"}) {
      const http::Answer answer = ask(method, path, "", {right});
      EXPECT_EQ(answer.status, 405) << method;
    }
  }
  const http::Answer unauthorized = ask("POST", "/resize/pause");
  EXPECT_THAT(unauthorized.body, HasSubstr(directory_ + "/admin.token")) << "how to get it";
  EXPECT_THAT(unauthorized.body, Not(HasSubstr(kToken)));
  EXPECT_FALSE(coordinator_->get(keys_.request())->has_value()) << "no request stays behind";
}

TEST_F(ApiTest, WithoutATokenFileActionsAreOff) {
  start(false);
  for (const Api::RouteName& route : Api::routes()) {
    if (!route.action) continue;
    const http::Answer answer =
        ask(route.method, concrete(route.path), "{}", {fmt::format("Authorization: Bearer {}", kToken)});
    EXPECT_EQ(answer.status, 403) << route.path;
    EXPECT_THAT(answer.body, HasSubstr("--admin-token-file"));
  }
  EXPECT_EQ(get("/session")["actions"], false);
}

TEST_F(ApiTest, BadRequestsAreToldApart) {
  start(true);
  const std::vector<std::string> right = {fmt::format("Authorization: Bearer {}", kToken)};
  EXPECT_EQ(code(ask("GET", "/nothing")), "not_found");
  EXPECT_EQ(code(ask("GET", "/resize/start")), "method_not_allowed");
  EXPECT_EQ(code(ask("GET", "/members/zzz")), "not_found");
  EXPECT_EQ(code(ask("GET", "/members/..%2f..%2fetc")), "not_found");
  EXPECT_EQ(code(ask("GET", "/ring?arcs=1")), "invalid");
  EXPECT_EQ(code(ask("GET", "/ring?arcs=x")), "invalid");
  EXPECT_EQ(code(ask("GET", "/ring?of=target")), "not_found");
  EXPECT_EQ(code(ask("GET", "/topologies/diff?from=current")), "invalid");
  EXPECT_EQ(code(ask("GET", "/topologies/99999999")), "not_found");
  EXPECT_EQ(code(ask("GET", "/events?topics=nonsense")), "invalid");
  EXPECT_EQ(code(ask("GET", "/resizes/last/log")), "not_found");
  EXPECT_EQ(code(ask("POST", "/route", std::string(kBodyBytesMax + 1, ' '))), "too_large");
  for (const char* body : {"", "[]", "{", "null", "{\"keys\":[]}", "{\"keys\":\"a\"}", "{\"keys\":[1]}",
                           "{\"keys\":[\"a\"],\"more\":1}", "{\"keys\":[\"a\"],\"replicas\":0}",
                           "{\"keys\":[\"xyz\"],\"hex\":true}"}) {
    const http::Answer answer = ask("POST", "/route", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(code(answer), "invalid") << body;
  }
  EXPECT_EQ(ask("POST", "/route", std::string(900'000, '[')).status, 400) << "deep, and no crash";
  for (const char* body :
       {"{}", "{\"change\":{}}", "{\"change\":{\"edit\":{},\"topology\":1}}",
        "{\"change\":{\"edit\":{\"remove\":[\"a\"]}},\"options\":{\"steps\":[50]}}",
        "{\"change\":{\"edit\":{\"remove\":[\"a\"]}},\"options\":{\"soak\":\"5\"}}",
        "{\"change\":{\"edit\":{\"add\":[{\"id\":\"x\"}]}}}",
        "{\"change\":{\"edit\":{\"weights\":{\"a\":-1}}}}", "{\"change\":{\"spec\":\"cluster: [\"}}",
        "{\"change\":{\"edit\":{\"remove\":[\"a\"]}},\"options\":{\"abort_if\":\"nonsense\"}}"}) {
    EXPECT_EQ(ask("POST", "/resize/start", body, right).status, 400) << body;
  }
  const json field = json::parse(
      ask("POST", "/resize/start", "{\"change\":{\"edit\":{\"add\":[{\"id\":\"x\"}]}}}", right).body);
  EXPECT_EQ(field["error"]["field"], "change.edit.add[0].address") << field.dump();
  EXPECT_EQ(code(ask("POST", "/members/zzz/drain", "{}", right)), "not_found");
  EXPECT_EQ(code(ask("POST", "/members/a/drain", R"({"if_version":"1.1"})", right)), "stale");
}

TEST_F(ApiTest, ASpecIsCheckedWithItsLine) {
  start(true);
  const json bad = json::parse(
      ask("POST", "/spec/validate", "cluster: cache\nmembers:\n- {id: a, address: 'x:1', weight: -1}\n")
          .body);
  EXPECT_EQ(bad["valid"], false);
  EXPECT_EQ(bad["problems"][0]["line"], 3) << bad.dump();
  EXPECT_THAT(bad["problems"][0]["message"].get<std::string>(), HasSubstr("weight"));
  const json good =
      json::parse(ask("POST", "/spec/validate",
                      "cluster: cache\nmembers:\n- {id: a, address: '127.0.0.1:1'}\n- {id: b, address: "
                      "'127.0.0.1:2'}\n- {id: c, address: '127.0.0.1:3'}\n")
                      .body);
  EXPECT_EQ(good["valid"], true) << good.dump();
  EXPECT_GT(good["diff"]["moved_share"].get<double>(), 0.2);
  const json other = json::parse(
      ask("POST", "/spec/validate", "cluster: other\nmembers:\n- {id: a, address: '127.0.0.1:1'}\n").body);
  EXPECT_EQ(other["valid"], false);
}

TEST_F(ApiTest, RingRouteAndHistory) {
  start(true);
  const json ring = get("/ring");
  EXPECT_EQ(ring["exact_arcs"], true);
  EXPECT_EQ(ring["points_total"], 512);
  EXPECT_EQ(ring["starts"].size(), ring["owners"].size());
  // The arcs are the shares.
  std::map<int, double> shares;
  for (std::size_t i = 0; i < ring["starts"].size(); ++i) {
    const double end = i + 1 < ring["starts"].size() ? ring["starts"][i + 1].get<double>() : 1.0;
    shares[ring["owners"][i]] += end - ring["starts"][i].get<double>();
  }
  for (int m = 0; m < 2; ++m) EXPECT_NEAR(shares[m], ring["members"][m]["share"].get<double>(), 1e-6);
  EXPECT_EQ(get("/ring?arcs=16")["exact_arcs"], false);
  const json member = get("/ring/members/a");
  EXPECT_EQ(member["heirs"][0]["id"], "b");
  EXPECT_NEAR(member["heirs"][0]["share"].get<double>(), member["share"].get<double>(), 1e-9);
  // Each key is on an arc of its member.
  json question = {{"keys", json::array()}};
  for (int i = 0; i < 50; ++i) question["keys"].push_back(fmt::format("key-{}", i));
  const json routes = json::parse(ask("POST", "/route", question.dump()).body);
  for (const json& key : routes["keys"]) {
    const double at = key["position"];
    std::size_t arc = ring["starts"].size() - 1;
    while (arc > 0 && ring["starts"][arc].get<double>() > at) --arc;
    EXPECT_EQ(ring["members"][ring["owners"][arc].get<std::size_t>()]["id"], key["member"]) << key.dump();
    EXPECT_EQ(key["replicas"][0], key["member"]);
    EXPECT_EQ(key["replicas"].size(), 2U);
  }
  topology_.spec.members[1].weight = 3;
  publish();
  for (int i = 0; i < 3000 && get("/topologies")["topologies"].size() < 2; ++i)
    std::this_thread::sleep_for(10ms);
  const json history = get("/topologies");
  ASSERT_EQ(history["topologies"].size(), 2U);
  EXPECT_EQ(history["topologies"][0]["in_force"], true);
  EXPECT_THAT(history["topologies"][0]["changes"].dump(), HasSubstr("weight"));
  const std::string old = std::to_string(history["topologies"][1]["revision"].get<int>());
  const json diff = get("/topologies/diff?from=" + old + "&to=current");
  EXPECT_NEAR(diff["moved_share"].get<double>(), 0.25, 0.05);
  EXPECT_EQ(get("/topologies/" + old)["topology"]["spec"]["members"][1].value("weight", 1.0), 1.0);
}

TEST_F(ApiTest, TheStreamBeginsWithASnapshotAndGoesOnWithNews) {
  start(true);
  Listening all(listener_->url() + "/api/v1/events");
  Listening some(listener_->url() + "/api/v1/events?topics=resize,topology");
  ASSERT_TRUE(all.wait_for("event: snapshot"));
  ASSERT_TRUE(some.wait_for("event: snapshot"));
  EXPECT_THAT(all.text(), HasSubstr("\nid: "));
  EXPECT_THAT(all.text(), HasSubstr("\"overview\":{\"cluster\":\"cache\""));
  EXPECT_THAT(some.text(), Not(HasSubstr("\"overview\":")));
  resize::ResizeStatus status;
  status.state = "running";
  status.id = "1-7";
  put(keys_.status(), resize::to_json(status));
  ASSERT_TRUE(some.wait_for("event: resize\ndata: {"));
  ASSERT_TRUE(all.wait_for("event: mark\ndata: {"));
  topology_.spec.members[0].weight = 2;
  publish();
  ASSERT_TRUE(some.wait_for("event: topology\ndata: {"));
  ASSERT_TRUE(all.wait_for("event: series\ndata: {"));
  EXPECT_THAT(some.text(), Not(HasSubstr("event: series")));
  // Every line is one of the protocol's.
  std::string line;
  for (std::istringstream lines(all.text()); std::getline(lines, line);) {
    EXPECT_TRUE(line.empty() || line.starts_with("id: ") || line.starts_with("event: ") ||
                line.starts_with("data: ") || line.starts_with("retry: ") || line.starts_with(": "))
        << line;
  }
  // Whoever comes back gets a snapshot anew.
  http::StreamCall again;
  http::Call call;
  call.method = "GET";
  call.url = listener_->url() + "/api/v1/events";
  call.headers = {"Last-Event-ID: 00000000-3"};
  std::string text;
  static_cast<void>(again.run(call, [&](std::string_view bytes) {
    text += bytes;
    return text.find("event: snapshot") == std::string::npos;
  }));
  EXPECT_THAT(text, HasSubstr("event: snapshot"));
}

TEST_F(ApiTest, StreamsHaveABound) {
  start(true);
  std::vector<std::unique_ptr<Listening>> many;
  for (std::size_t i = 0; i < Events::kStreamsMax; ++i) {
    many.push_back(std::make_unique<Listening>(listener_->url() + "/api/v1/events?topics=resize"));
    ASSERT_TRUE(many.back()->wait_for("event: snapshot")) << i;
  }
  EXPECT_EQ(ask("GET", "/events").status, 429);
  many.pop_back();
  bool again = false;
  for (int i = 0; i < 500 && !again; ++i) {
    Listening one(listener_->url() + "/api/v1/events?topics=resize");
    for (int k = 0; k < 20 && one.status_ == 0 && !again; ++k) {
      again = one.text().find("event: snapshot") != std::string::npos;
      std::this_thread::sleep_for(10ms);
    }
  }
  EXPECT_TRUE(again) << "a place that became free is given away";
}

TEST_F(ApiTest, AnOutageOfTheRegistryIsToldAndReadsGoOn) {
  start(true);
  const std::uint16_t port = http::parse_host_port(registry_->url().substr(7))->port;
  registry_.reset();
  bool told = false;
  for (int i = 0; i < 3000 && !told; ++i) {
    told = get("/registry")["connected"] == false;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(told);
  EXPECT_EQ(get("/members")["members"].size(), 2U);
  const http::Answer action =
      ask("POST", "/resize/pause", "", {fmt::format("Authorization: Bearer {}", kToken)});
  EXPECT_EQ(action.status, 503) << action.body;
  auto back = registry::Server::start({"127.0.0.1", port, directory_ + "/db"});
  if (!back) GTEST_SKIP() << "another program took port " << port;
  registry_ = std::move(*back);
  for (int i = 0; i < 3000 && get("/registry")["connected"] == false; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(get("/registry")["connected"], true) << "also when nothing is written";
}

}  // namespace
}  // namespace ringshift::admin
