// The same requests to our registry and to etcd, in the same order, and the answers compared: status, JSON
// and revisions. What a server may choose for itself (ids, terms, the words for malformed JSON) is left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/encoding.h"
#include "http/client.h"
#include "tests/contract/registry_process.h"

namespace ringshift::test {
namespace {

using Json = nlohmann::json;

struct Case {
  std::string path, body;
  bool same_words = true;  // False: the error's text is the JSON parser's own; status and code must agree.
};

// Keys: YQ== a, Yg== b, Yw== c, enp6 zzz, bm8= no, bA== l.
const std::vector<Case> kCases = {
    {"/v3/kv/range", R"({"key":"YQ=="})"},
    {"/v3/kv/put", R"({"key":"YQ==","value":"MQ=="})"},
    {"/v3/kv/put", R"({"key":"YQ==","value":"Mg==","prev_kv":true})"},
    {"/v3/kv/put", R"({"key":"YQ==","value":"Mg==","prevKv":true})"},
    {"/v3/kv/put", R"({"key":"YQ==","ignore_value":true})"},
    {"/v3/kv/put", R"({"key":"YQ==","value":"Mg==","ignore_value":true})"},
    {"/v3/kv/put", R"({"key":"enp6","ignore_value":true})"},
    {"/v3/kv/put", R"({"key":"enp6","ignore_lease":true})"},
    {"/v3/kv/put", R"({"key":"YQ==","ignore_lease":true,"value":"Mw=="})"},
    {"/v3/kv/put", R"({"key":"YQ==","ignore_lease":true,"lease":"5"})"},
    {"/v3/kv/put", R"({"key":"YQ==","lease":"123"})"},
    {"/v3/kv/put", R"({"key":"YmluAP8=","value":"AP8="})"},
    {"/v3/kv/put", R"({"key":"YQ==","value":null})"},
    {"/v3/kv/put", R"({"value":"Mg=="})"},
    {"/v3/kv/put", R"({"key":"","value":"Mg=="})"},
    {"/v3/kv/put", R"({"kex":"YQ=="})"},
    {"/v3/kv/put", R"({"key":"!!"})", false},
    {"/v3/kv/put", R"({"key":"YQ"})", false},
    {"/v3/kv/put", R"({"key":5})", false},
    {"/v3/kv/put", "garbage", false},
    {"/v3/kv/put", "[]", false},
    {"/v3/kv/put", R"({"key":"YQ==")", false},
    {"/v3/kv/put", ""},
    {"/v3/kv/range", R"({"key":"YQ=="})"},
    {"/v3/kv/range", R"({"key":"YQ==","range_end":"Yg=="})"},
    {"/v3/kv/range", R"({"key":"YQ==","revision":"1"})"},
    {"/v3/kv/range", R"({"key":"YQ==","revision":"2"})"},
    {"/v3/kv/range", R"({"key":"YQ==","revision":3})"},
    {"/v3/kv/range", R"({"key":"YQ==","revision":"999"})"},
    {"/v3/kv/range", R"({"key":"YQ==","revision":"-1"})"},
    {"/v3/kv/range", R"({"key":"YQ==","revision":"x"})", false},
    {"/v3/kv/range", R"({"key":"YQ==","count_only":true})"},
    {"/v3/kv/put", R"({"key":"Yg==","value":"Mg=="})"},
    {"/v3/kv/put", R"({"key":"Yw==","value":"MQ=="})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","keys_only":true})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","limit":"2"})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","limit":"4"})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","sort_order":"DESCEND","sort_target":"MOD"})"},
    {"/v3/kv/range",
     R"({"key":"AA==","range_end":"AA==","sort_order":"ASCEND","sort_target":"VALUE","limit":2})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","sort_order":2,"sort_target":0})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","sort_target":"VERSION"})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","min_mod_revision":"8"})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","max_create_revision":"8"})"},
    {"/v3/kv/range", R"({"key":"YQ==","sort_order":"WRONG"})", false},
    {"/v3/kv/range", R"({"key":"Yg==","range_end":"YQ=="})"},
    {"/v3/kv/range", "{}"},
    {"/v3/kv/range", R"({"key":"YQ==","serializable":true})"},
    {"/v3/kv/deleterange", R"({"key":"bm8="})"},
    {"/v3/kv/deleterange", R"({"key":"YQ==","prev_kv":true})"},
    {"/v3/kv/deleterange", "{}"},
    {"/v3/kv/range", R"({"key":"YQ==","range_end":"AA==","revision":"4"})"},
    {"/v3/kv/txn", R"({"compare":[{"key":"YQ==","target":"CREATE","create_revision":"0"}],
       "success":[{"request_put":{"key":"YQ==","value":"MQ=="}}],"failure":[{"request_range":{"key":"YQ=="}}]})"},
    {"/v3/kv/txn", R"({"compare":[{"key":"YQ==","target":"CREATE","createRevision":"0"}],
       "success":[{"requestPut":{"key":"YQ==","value":"MQ=="}}],"failure":[{"requestRange":{"key":"YQ=="}}]})"},
    {"/v3/kv/txn", "{}"},
    {"/v3/kv/txn", R"({"success":[{"request_put":{"key":"YQ==","value":"MQ=="}},
       {"request_put":{"key":"YQ==","value":"MQ=="}}]})"},
    {"/v3/kv/txn", R"({"success":[{"request_put":{"key":"YQ=="}},
       {"request_delete_range":{"key":"YQ==","range_end":"Yw=="}}]})"},
    {"/v3/kv/txn", R"({"failure":[{"request_put":{"key":"YQ=="}},{"request_put":{"key":"YQ=="}}]})"},
    {"/v3/kv/txn", R"({"success":[{"request_put":{"key":"YQ==","lease":"77"}}]})"},
    {"/v3/kv/txn", R"({"success":[{"request_put":{"value":"MQ=="}}]})"},
    {"/v3/kv/txn", R"({"success":[{}]})"},
    {"/v3/kv/txn", R"({"compare":[{"target":"MOD","mod_revision":"0"}]})"},
    {"/v3/kv/txn", R"({"compare":[{"key":"YQ==","target":"MOD","result":"GREATER","mod_revision":"0"},
       {"key":"YQ==","target":"VALUE","value":"MQ=="},{"key":"YQ==","target":"VERSION","version":"1"},
       {"key":"YQ==","target":"LEASE","lease":"0"},{"key":"YQ==","result":"NOT_EQUAL","target":"VERSION","version":"7"},
       {"key":"YQ==","result":"LESS","target":"MOD","mod_revision":"1000"}]})"},
    {"/v3/kv/txn", R"({"compare":[{"key":"enp6","target":"VALUE","value":""}]})"},
    {"/v3/kv/txn", R"({"compare":[{"key":"enp6","target":"VALUE","result":"NOT_EQUAL"}]})"},
    {"/v3/kv/txn", R"({"compare":[{"key":"enp6","range_end":"e3p6","target":"VERSION","version":"9"}]})"},
    {"/v3/kv/txn", R"({"compare":[{"key":"YQ==","range_end":"Yw==","target":"VERSION","version":"1"}]})"},
    {"/v3/kv/txn",
     R"({"success":[{"request_range":{"key":"Yg=="}},{"request_put":{"key":"Yg==","value":"OQ==","prev_kv":true}},
       {"request_range":{"key":"Yg=="}},{"request_delete_range":{"key":"Yw==","prev_kv":true}},
       {"request_delete_range":{"key":"bm8="}}]})"},
    {"/v3/lease/grant", R"({"TTL":"60","ID":"7"})"},
    {"/v3/lease/grant", R"({"TTL":"60","ID":"7"})"},
    {"/v3/lease/grant", R"({"TTL":"0","ID":"8"})"},
    {"/v3/lease/grant", R"({"TTL":"-5","ID":"9"})"},
    {"/v3/lease/grant", R"({"TTL":"9000000001"})"},
    {"/v3/lease/grant", R"({"TTL":60,"ID":-8})"},
    {"/v3/kv/put", R"({"key":"bA==","value":"Mg==","lease":"7"})"},
    {"/v3/kv/put", R"({"key":"bGw=","value":"Mg==","lease":7})"},
    {"/v3/kv/put", R"({"key":"bGw=","value":"Mw=="})"},
    {"/v3/kv/put", R"({"key":"bGw=","ignore_value":true,"lease":"7"})"},
    {"/v3/kv/range", R"({"key":"bA=="})"},
    {"/v3/lease/keepalive", R"({"ID":"7"})"},
    {"/v3/lease/keepalive", R"({"ID":"99"})"},
    {"/v3/lease/keepalive", "{}"},
    {"/v3/lease/timetolive", R"({"ID":"7"})"},
    {"/v3/lease/timetolive", R"({"ID":"7","keys":true})"},
    {"/v3/lease/timetolive", R"({"ID":"99","keys":true})"},
    {"/v3/kv/lease/timetolive", R"({"ID":"7","keys":true})"},
    {"/v3/lease/leases", "{}"},
    {"/v3/kv/lease/leases", "{}"},
    {"/v3/kv/lease/revoke", R"({"ID":"99"})"},
    {"/v3/lease/revoke", R"({"ID":"7"})"},
    {"/v3/lease/revoke", R"({"ID":"7"})"},
    {"/v3/kv/range", R"({"key":"bA=="})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA=="})"},
    {"/v3/nonsense", "{}"},
};

const std::vector<std::string> kWatches = {
    R"({"create_request":{"key":"YQ==","start_revision":"1"}})",
    R"({"create_request":{"key":"AA==","range_end":"AA==","start_revision":"5","prev_kv":true,"watch_id":"5"}})",
    R"({"create_request":{"key":"YQ==","filters":["NOPUT"],"start_revision":"1"}})",
    R"({"create_request":{"key":"YQ==","filters":["NODELETE"],"start_revision":"2"}})",
    R"({"create_request":{}})",
    R"({"create_request":{"key":"Yg==","range_end":"YQ=="}})",
    "garbage",
    R"({"create_request":{"key":"YQ=="}}{"progress_request":{}})",
    R"({"create_request":{"key":"YQ=="}}{"cancel_request":{"watch_id":"0"}})",
    R"({"create_request":{"key":"YQ=="}} {"create_request":{"key":"Yg==","start_revision":"1"}})",
    R"({"create_request":{"key":"YQ==","start_revision":"9999"}})",
};

const std::vector<Case> kCompaction = {
    {"/v3/kv/compaction", R"({"revision":"5"})"},
    {"/v3/kv/compaction", R"({"revision":"5"})"},
    {"/v3/kv/compaction", R"({"revision":"4"})"},
    {"/v3/kv/compaction", R"({"revision":"999"})"},
    {"/v3/kv/compaction", "{}"},
    {"/v3/kv/range", R"({"key":"YQ==","revision":"4"})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","revision":"5"})"},
    {"/v3/kv/compaction", R"({"revision":"10","physical":true})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA==","revision":"10"})"},
    {"/v3/kv/range", R"({"key":"AA==","range_end":"AA=="})"},
};

const std::vector<std::string> kCompactedWatches = {
    R"({"create_request":{"key":"YQ==","start_revision":"2"}})",
    R"({"create_request":{"key":"YQ==","start_revision":"10"}})",
};

// Drops what each server chooses for itself.
void normalise(Json& json) {
  if (json.is_array()) {
    for (Json& element : json) normalise(element);
  }
  if (!json.is_object()) return;
  for (const char* own : {"cluster_id", "member_id", "raft_term"}) json.erase(own);
  if (json.contains("grantedTTL")) json.erase("TTL");  // The seconds that remain.
  for (const char* unordered : {"keys", "leases"}) {
    if (json.contains(unordered)) std::sort(json[unordered].begin(), json[unordered].end());
  }
  for (auto& [name, value] : json.items()) normalise(value);
}

std::string normalised(const std::string& body, bool same_words) {
  Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) return body;
  normalise(json);
  if (!same_words) {
    json.erase("error");
    json.erase("message");
  }
  return json.dump();
}

std::string ask(const RegistryProcess& server, const Case& c, const std::string& method = "POST") {
  http::Client client;
  http::Call call;
  call.method = method;
  call.url = server.url() + c.path;
  call.body = c.body;
  const auto answer = client.send(call);
  if (!answer) return answer.error().error.message;
  return std::to_string(answer->status) + " " + normalised(answer->body, c.same_words);
}

// What a watch says within its first moments: its messages, then its events. How events are spread over
// messages, and the revision in those messages' headers, is the server's business.
std::vector<std::string> watch(const RegistryProcess& server, const std::string& body) {
  http::StreamCall stream;
  http::Call call;
  call.url = server.url() + "/v3/watch";
  call.body = body;
  call.timeout = std::chrono::milliseconds(300);
  std::string text;
  (void)stream.run(
      call,
      [&](std::string_view bytes) {
        text.append(bytes);
        return true;
      },
      true);
  std::vector<std::string> messages, events;
  std::size_t begin = 0;
  for (std::size_t end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    Json json = Json::parse(text.substr(begin, end - begin), nullptr, false);
    if (!json.is_object()) continue;
    if (!json.contains("result")) {
      messages.push_back(normalised(json.dump(), false));
      continue;
    }
    normalise(json);
    for (const Json& event : json["result"].value("events", Json::array())) {
      events.push_back(json["result"].value("watch_id", "0") + " " + event.dump());
    }
    if (!json["result"].contains("events")) messages.push_back(json.dump());
  }
  messages.insert(messages.end(), events.begin(), events.end());
  return messages;
}

TEST(RegistryApi, AnswersAsEtcdDoes) {
  RegistryProcess ours(Kind::ours), etcd(Kind::etcd);
  for (const Case& c : kCases) EXPECT_EQ(ask(ours, c), ask(etcd, c)) << c.path << ' ' << c.body;
  for (const std::string& body : kWatches) EXPECT_EQ(watch(ours, body), watch(etcd, body)) << body;
  for (const Case& c : kCompaction) EXPECT_EQ(ask(ours, c), ask(etcd, c)) << c.path << ' ' << c.body;
  for (const std::string& body : kCompactedWatches) EXPECT_EQ(watch(ours, body), watch(etcd, body)) << body;
  for (const char* path : {"/health", "/v3/kv/range", "/v3/watch", "/v3/maintenance/status"}) {
    EXPECT_EQ(ask(ours, {path, ""}, "GET"), ask(etcd, {path, ""}, "GET")) << path;
  }
  EXPECT_EQ(ask(ours, {"/health", ""}), ask(etcd, {"/health", ""}));
}

TEST(RegistryApi, LargeValues) {
  RegistryProcess ours(Kind::ours), etcd(Kind::etcd);
  for (const std::size_t size : {std::size_t{1} << 20, std::size_t{1'572'000}, std::size_t{1'572'864}}) {
    const Case put{"/v3/kv/put",
                   Json{{"key", "YQ=="}, {"value", base::to_base64(std::string(size, 'x'))}}.dump()};
    EXPECT_EQ(ask(ours, put), ask(etcd, put)) << size;
    const Case get{"/v3/kv/range", R"({"key":"YQ=="})"};
    EXPECT_EQ(ask(ours, get), ask(etcd, get)) << size;
  }
}

TEST(RegistryApi, RefusesWebPagesAndForeignNames) {
  RegistryProcess ours(Kind::ours);
  http::Client client;
  for (const char* header : {"Origin: http://example.org", "Host: example.org"}) {
    http::Call call;
    call.url = ours.url() + "/v3/kv/range";
    call.body = R"({"key":"YQ=="})";
    call.headers = {header};
    const auto answer = client.send(call);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 403) << header;
  }
}

TEST(RegistryApi, StatusAndVersionHaveEtcdsFields) {
  RegistryProcess ours(Kind::ours), etcd(Kind::etcd);
  const auto fields = [](const RegistryProcess& server, const std::string& path, const std::string& method) {
    http::Client client;
    http::Call call;
    call.method = method;
    call.url = server.url() + path;
    std::vector<std::string> names;
    const Json json = Json::parse(client.send(call).value().body);
    for (const auto& [name, value] : json.items()) {
      if (name != "ringshift") names.push_back(name);
    }
    return names;
  };
  EXPECT_EQ(fields(ours, "/version", "GET"), fields(etcd, "/version", "GET"));
  EXPECT_EQ(fields(ours, "/v3/maintenance/status", "POST"), fields(etcd, "/v3/maintenance/status", "POST"));
}

}  // namespace
}  // namespace ringshift::test
