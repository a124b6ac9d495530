// What the parsers make of other servers' answers, whole and odd.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "discovery/consul.h"
#include "discovery/dns.h"
#include "discovery/http_ask.h"
#include "discovery/kubernetes.h"
#include "discovery/nacos.h"
#include "discovery/registry.h"

namespace ringshift::discovery {
namespace {

Options options_for(const char* kind, Fields fields = {}) {
  fields.emplace("service", "cache");
  auto options = read_options(kind, fields);
  EXPECT_TRUE(options) << options.error().message;
  return *options;
}

// --- Consul ---

std::string consul_entry(const std::string& id, const std::string& address, const std::string& checks) {
  return fmt::format(
      R"({{"Node":{{"ID":"x","Node":"n-{0}","Address":"10.9.9.9","Datacenter":"dc1","Meta":null}},
          "Service":{{"ID":"{0}","Service":"cache","Tags":["a","b"],"Address":"{1}","Port":6379,"Meta":{{"zone":"z1"}},
                      "Weights":{{"Passing":1,"Warning":1}}}},
          "Checks":[{2}]}})",
      id, address, checks);
}
std::string consul_check(const std::string& id, const std::string& status) {
  return fmt::format(R"({{"CheckID":"{}","Status":"{}"}})", id, status);
}

TEST(ConsulAnswer, ChecksBecomeStates) {
  const struct {
    std::string checks;
    InstanceState state;
  } cases[] = {
      {"", InstanceState::ready},
      {consul_check("serfHealth", "passing"), InstanceState::ready},
      {consul_check("serfHealth", "passing") + "," + consul_check("service:a", "warning"),
       InstanceState::ready},
      {consul_check("serfHealth", "critical"), InstanceState::unhealthy},
      {consul_check("service:a", "critical") + "," + consul_check("_service_maintenance:a", "critical"),
       InstanceState::draining},
      {consul_check("_node_maintenance", "critical"), InstanceState::draining},
      {consul_check("service:a", "unknown"), InstanceState::unhealthy},
  };
  for (const auto& one : cases) {
    const auto seen =
        parse_consul_health("[" + consul_entry("a", "10.0.0.1", one.checks) + "]", options_for("consul"));
    ASSERT_TRUE(seen) << seen.error().message;
    ASSERT_EQ(seen->all.size(), 1U);
    EXPECT_EQ(seen->all[0].state, one.state) << one.checks;
  }
}

TEST(ConsulAnswer, IdsAddressesAndLabels) {
  const std::string json = "[" + consul_entry("a", "", "") + "," + consul_entry("b", "fd00::1", "") + "]";
  auto seen = parse_consul_health(json, options_for("consul"));
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->all[0].address, "10.9.9.9:6379");  // The node's.
  EXPECT_EQ(seen->all[1].address, "[fd00::1]:6379");
  EXPECT_EQ(
      seen->all[0].labels,
      (std::map<std::string, std::string>{
          {"consul.datacenter", "dc1"}, {"consul.node", "n-a"}, {"consul.tags", "a,b"}, {"zone", "z1"}}));
  EXPECT_EQ(parse_consul_health(json, options_for("consul", {{"id_from", "node"}}))->all[0].id, "n-a");
  EXPECT_EQ(parse_consul_health(json, options_for("consul", {{"id_from", "both"}}))->all[0].id, "n-a:a");
  EXPECT_EQ(parse_consul_health(json, options_for("consul", {{"id_label", "zone"}}))->all[0].id, "z1");
}

TEST(ConsulAnswer, WhatIsNoInstanceIsLeftOutAndWhatIsNoAnswerRefused) {
  std::string without_port = consul_entry("a", "10.0.0.1", "");
  without_port.replace(without_port.find("6379"), 4, "0");
  const auto seen = parse_consul_health("[" + without_port + "," + consul_entry("b", "10.0.0.2", "") + "]",
                                        options_for("consul"));
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->all.size(), 1U);
  EXPECT_EQ(seen->left_out.size(), 1U);
  EXPECT_TRUE(parse_consul_health("[]", options_for("consul"))->all.empty());
  for (const char* bad : {"", "{}", "null", "[1]", "[{}]", R"([{"Node":1,"Service":{}}])", R"([{"Node":{}}])",
                          "[", R"([{"Node":{},"Service":{"ID":"a","Port":"6379"}}])"})
    EXPECT_FALSE(parse_consul_health(bad, options_for("consul"))) << bad;
}

// --- Nacos ---

TEST(NacosAnswer, StatesAndBothVersionsOfTheApi) {
  const std::string hosts = R"([
    {"ip":"10.0.0.1","port":6379,"weight":1.0,"healthy":true,"enabled":true,"clusterName":"DEFAULT","metadata":{"id":"cache-1"}},
    {"ip":"10.0.0.2","port":6379,"weight":1.0,"healthy":false,"enabled":true,"metadata":{}},
    {"ip":"10.0.0.3","port":6379,"weight":1.0,"healthy":true,"enabled":false,"metadata":null},
    {"ip":"10.0.0.4","port":6379,"weight":0.0,"healthy":true,"enabled":true},
    {"ip":"","port":6379}])";
  const Options options = options_for("nacos", {{"id_label", "id"}});
  for (const std::string& json : {R"({"name":"DEFAULT_GROUP@@cache","lastRefTime":1,"hosts":)" + hosts + "}",
                                  R"({"code":0,"message":"success","data":{"hosts":)" + hosts + "}}"}) {
    const auto seen = parse_nacos_list(json, options);
    ASSERT_TRUE(seen) << seen.error().message;
    ASSERT_EQ(seen->all.size(), 4U);
    EXPECT_EQ(seen->all[0].id, "cache-1");
    EXPECT_EQ(seen->all[0].labels.at("nacos.cluster"), "DEFAULT");
    EXPECT_EQ(seen->all[1].id, "10.0.0.2:6379");
    EXPECT_EQ(seen->all[0].state, InstanceState::ready);
    EXPECT_EQ(seen->all[1].state, InstanceState::unhealthy);
    EXPECT_EQ(seen->all[2].state, InstanceState::draining);
    EXPECT_EQ(seen->all[3].state, InstanceState::draining);
    EXPECT_EQ(seen->left_out.size(), 1U);
  }
}

TEST(NacosAnswer, ProtectionAndOddAnswersAreRefused) {
  const Options options = options_for("nacos");
  const auto protects = parse_nacos_list(R"({"hosts":[],"reachProtectionThreshold":true})", options);
  ASSERT_FALSE(protects);
  EXPECT_EQ(protects.error().kind, ErrorKind::retryable);
  for (const char* bad : {"", "[]", "{}", R"({"hosts":{}})", R"({"hosts":[1]})",
                          R"({"code":10000,"message":"no","data":{"hosts":[]}})", R"({"code":0,"data":null})",
                          R"({"hosts":[{"ip":1,"port":2}]})", "caused: service not found"})
    EXPECT_FALSE(parse_nacos_list(bad, options)) << bad;
}

TEST(NacosAnswer, LoginGivesATokenAndErrorsDoNotQuoteIt) {
  const auto token = parse_nacos_login(R"({"accessToken":"abc.def","tokenTtl":18000,"globalAdmin":true})");
  ASSERT_TRUE(token);
  EXPECT_EQ(token->token, "abc.def");
  EXPECT_EQ(token->ttl, std::chrono::seconds(18000));
  for (const char* bad :
       {"", "{}", R"({"accessToken":"SECRET\r\nX: y"})", R"({"accessToken":7})", R"(["SECRET"])"}) {
    const auto none = parse_nacos_login(bad);
    ASSERT_FALSE(none) << bad;
    EXPECT_EQ(none.error().message.find("SECRET"), std::string::npos);
  }
}

// --- Kubernetes ---

std::string k8s_endpoint(const std::string& pod, const std::string& ip, const std::string& conditions) {
  return fmt::format(
      R"({{"addresses":["{1}"],"conditions":{{{2}}},"hostname":"{0}","nodeName":"n1","zone":"z1",
          "targetRef":{{"kind":"Pod","name":"{0}","namespace":"shop"}}}})",
      pod, ip, conditions);
}
std::string k8s_slice(const std::string& name, int version, const std::string& endpoints,
                      const std::string& service = "cache") {
  return fmt::format(
      R"({{"metadata":{{"name":"{}","namespace":"shop","resourceVersion":"{}","labels":{{"kubernetes.io/service-name":"{}"}}}},
          "addressType":"IPv4","ports":[{{"name":"redis","port":6379,"protocol":"TCP"}},{{"name":"metrics","port":9121}}],
          "endpoints":[{}]}})",
      name, version, service, endpoints);
}
std::string k8s_event(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object);
}
const Options& k8s() {
  static const Options kOptions =
      options_for("kubernetes", {{"url", "http://127.0.0.1:1"}, {"port", "redis"}});
  return kOptions;
}
KubernetesEvent event_of(const std::string& line) {
  auto event = parse_slice_event(line, k8s());
  EXPECT_TRUE(event) << event.error().message;
  return event ? *event : KubernetesEvent{};
}

TEST(KubernetesAnswer, ConditionsBecomeStates) {
  const struct {
    const char* conditions;
    InstanceState state;
  } cases[] = {
      {R"("ready":true,"serving":true,"terminating":false)", InstanceState::ready},
      {"", InstanceState::ready},
      {R"("ready":null)", InstanceState::ready},
      {R"("ready":false,"serving":false)", InstanceState::unhealthy},
      {R"("ready":false,"serving":true,"terminating":true)", InstanceState::draining},
      {R"("ready":true,"serving":true,"terminating":true)", InstanceState::draining},
      {R"("ready":false,"serving":false,"terminating":true)", InstanceState::unhealthy},
  };
  for (const auto& one : cases) {
    SliceSet set;
    set.apply(event_of(
        k8s_event("ADDED", k8s_slice("s1", 5, k8s_endpoint("cache-0", "10.0.0.1", one.conditions)))));
    const Seen seen = set.seen();
    ASSERT_EQ(seen.all.size(), 1U) << one.conditions;
    EXPECT_EQ(seen.all[0].state, one.state) << one.conditions;
    EXPECT_EQ(seen.all[0].id, "cache-0");
    EXPECT_EQ(seen.all[0].address, "10.0.0.1:6379");
    EXPECT_EQ(seen.all[0].labels.at("kubernetes.zone"), "z1");
  }
}

TEST(KubernetesAnswer, SlicesAreMergedAndAnEndpointInTwoIsOne) {
  const std::string down = R"("ready":false)";
  const auto page = parse_slice_list(
      fmt::format(
          R"({{"kind":"EndpointSliceList","metadata":{{"resourceVersion":"9","continue":"more"}},"items":[{},{},{}]}})",
          k8s_slice(
              "s1", 5,
              k8s_endpoint("cache-0", "10.0.0.1", down) + "," + k8s_endpoint("cache-1", "10.0.0.2", "")),
          k8s_slice("s2", 6, k8s_endpoint("cache-0", "10.0.0.3", "")),
          k8s_slice("s3", 7, k8s_endpoint("web-0", "10.0.0.4", ""), "web")),
      k8s());
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->version, "9");
  EXPECT_EQ(page->more, "more");
  SliceSet set;
  set.reset(page->slices);
  const Seen seen = set.seen();
  ASSERT_EQ(seen.all.size(), 2U);
  EXPECT_EQ(seen.all[0].address, "10.0.0.3:6379");  // The one that is ready.
}

TEST(KubernetesAnswer, OlderEventsAreDroppedAndRemovedSlicesTakeTheirEndpointsAlong) {
  SliceSet set;
  set.apply(event_of(k8s_event("ADDED", k8s_slice("s1", 5, k8s_endpoint("cache-0", "10.0.0.1", "")))));
  set.apply(event_of(k8s_event("MODIFIED", k8s_slice("s1", 8, k8s_endpoint("cache-1", "10.0.0.2", "")))));
  EXPECT_FALSE(set.apply(event_of(k8s_event("MODIFIED", k8s_slice("s1", 7, "")))));
  ASSERT_EQ(set.seen().all.size(), 1U);
  EXPECT_EQ(set.seen().all[0].id, "cache-1");
  EXPECT_FALSE(set.apply(event_of(k8s_event("DELETED", k8s_slice("s1", 6, "")))));
  EXPECT_TRUE(set.apply(event_of(k8s_event("DELETED", k8s_slice("s1", 9, "")))));
  EXPECT_TRUE(set.seen().all.empty());
  // A slice that is given to another service is ours no more.
  set.apply(event_of(k8s_event("ADDED", k8s_slice("s2", 10, k8s_endpoint("cache-0", "10.0.0.1", "")))));
  EXPECT_TRUE(set.apply(event_of(k8s_event("MODIFIED", k8s_slice("s2", 11, "", "web")))));
  EXPECT_TRUE(set.seen().all.empty());
}

TEST(KubernetesAnswer, EventsOfOtherKinds) {
  EXPECT_EQ(
      event_of(R"({"type":"BOOKMARK","object":{"kind":"EndpointSlice","metadata":{"resourceVersion":"12"}}})")
          .version,
      "12");
  EXPECT_EQ(
      event_of(
          R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})")
          .kind,
      KubernetesEvent::Kind::gone);
  const auto failed = event_of(R"({"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd"}})");
  EXPECT_EQ(failed.kind, KubernetesEvent::Kind::failed);
  EXPECT_EQ(failed.message, "etcd");
  for (
      const char* bad :
      {"", "1", "{}", R"({"type":"MORE","object":{"metadata":{"resourceVersion":"1"}}})",
       R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}})",
       R"({"type":"ADDED","object":{"metadata":{"name":"s","resourceVersion":"1","labels":{"kubernetes.io/service-name":"cache"}},"endpoints":{}}})"})
    EXPECT_FALSE(parse_slice_event(bad, k8s())) << bad;
  for (const char* bad : {"{}", R"({"kind":"EndpointSliceList","metadata":{}})",
                          R"({"kind":"Status","metadata":{"resourceVersion":"1"}})"})
    EXPECT_FALSE(parse_slice_list(bad, k8s())) << bad;
}

TEST(KubernetesAnswer, ThePortIsTheNamedOneAndAmbiguityIsLeftOut) {
  const std::string line = k8s_event("ADDED", k8s_slice("s1", 5, k8s_endpoint("cache-0", "10.0.0.1", "")));
  const struct {
    Fields fields;
    std::size_t found;
    const char* address;
  } cases[] = {{{{"port", "9121"}}, 1, "10.0.0.1:9121"},
               {{{"port", "none"}}, 0, ""},
               {{}, 0, ""},
               {{{"port", "redis"}, {"address", "name"}}, 1, "cache-0.cache.shop.svc:6379"}};
  for (const auto& one : cases) {
    Fields fields = one.fields;
    fields["url"] = "http://127.0.0.1:1";
    const auto event = parse_slice_event(line, options_for("kubernetes", fields));
    ASSERT_TRUE(event);
    ASSERT_EQ(event->slice.instances.size(), one.found);
    if (one.found > 0) {
      EXPECT_EQ(event->slice.instances[0].address, one.address);
    } else {
      EXPECT_EQ(event->slice.left_out.size(), 1U);
    }
  }
}

// --- The registry's agents ---

coord::Event put(const std::string& id, coord::Revision revision, const std::string& state = "ready") {
  return {coord::Event::Kind::put,
          {"/p/" + id,
           fmt::format(R"({{"id":"{0}","address":"{0}:6379","protocol":"redis","state":"{1}","started_at":5,
                           "labels":{{"zone":"a"}},"health":{{"used_memory":7}}}})",
                       id, state),
           1, revision, 1, 9}};
}
coord::Event removed(const std::string& id, coord::Revision revision) {
  return {coord::Event::Kind::remove, {"/p/" + id, "", 0, revision, 0, 0}};
}

TEST(AgentRecords, ComeAndGoAndStaleOnesChangeNothing) {
  AgentList list("/p/");
  list.reset({{put("a", 3).kv, put("b", 4).kv}, 4, 1});
  ASSERT_EQ(list.seen().all.size(), 2U);
  EXPECT_EQ(list.seen().all[0], (Instance{"a", "a:6379", "redis", InstanceState::ready, {{"zone", "a"}}}));
  list.apply(put("a", 6, "draining"));
  EXPECT_EQ(list.seen().all[0].state, InstanceState::draining);
  list.apply(put("a", 5));
  EXPECT_EQ(list.seen().all[0].state, InstanceState::draining);
  list.apply(removed("b", 7));
  list.apply(put("b", 4));
  EXPECT_EQ(list.seen().all.size(), 1U);
  list.apply(put("b", 9));
  EXPECT_EQ(list.seen().all.size(), 2U);
  list.reset({{put("c", 2).kv}, 2, 8});  // Another registry: nothing of before counts.
  ASSERT_EQ(list.seen().all.size(), 1U);
  EXPECT_EQ(list.seen().all[0].id, "c");
}

TEST(AgentRecords, OneThatIsNoneIsLeftOutAlone) {
  AgentList list("/p/");
  coord::Event odd = put("a", 3);
  odd.kv.value = R"({"id":"b","address":"b:1"})";
  coord::Event broken = put("d", 4);
  broken.kv.value = "{";
  list.reset({{odd.kv, put("c", 4).kv, broken.kv}, 4, 1});
  const Seen seen = list.seen();
  ASSERT_EQ(seen.all.size(), 1U);
  EXPECT_EQ(seen.all[0].id, "c");
  ASSERT_EQ(seen.left_out.size(), 2U);
  EXPECT_NE(seen.left_out[0].find("'b' is another than the key's"), std::string::npos) << seen.left_out[0];
  EXPECT_EQ(parse_agent_record("x", R"({"id":"x","address":"h:1","state":"new"})")->state,
            InstanceState::unhealthy);
}

// --- DNS ---

struct DnsBytes {
  std::string bytes;
  std::uint16_t answers = 0;

  void u8(unsigned value) { bytes += static_cast<char>(value); }
  void u16(unsigned value) {
    u8(value >> 8);
    u8(value & 255);
  }
  void u32(unsigned value) {
    u16(value >> 16);
    u16(value & 0xffff);
  }
  static std::string name(std::string_view text) {
    std::string out;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('.', begin), text.size());
      out += static_cast<char>(end - begin);
      out += text.substr(begin, end - begin);
      begin = end + 1;
    }
    return out + '\0';
  }
  void record(int type, unsigned ttl, const std::string& data) {
    bytes += name("x.test");
    u16(static_cast<unsigned>(type));
    u16(1);
    u32(ttl);
    u16(static_cast<unsigned>(data.size()));
    bytes += data;
    ++answers;
  }
  std::string message() const {
    DnsBytes head;
    head.u16(1);
    head.u16(0x8180);
    head.u16(0);
    head.u16(answers);
    head.u32(0);
    return head.bytes + bytes;
  }
};

std::string srv(unsigned priority, unsigned weight, unsigned port, std::string_view target) {
  DnsBytes data;
  data.u16(priority);
  data.u16(weight);
  data.u16(port);
  return data.bytes + (target == "." ? std::string(1, '\0') : DnsBytes::name(target));
}

TEST(DnsReply, AddressesWithTheLowestTtlOfAliasesToo) {
  DnsBytes made;
  made.record(5, 7, DnsBytes::name("y.test"));
  made.record(1, 30, std::string("\x0a\x00\x00\x02", 4));
  made.record(1, 20, std::string("\x0a\x00\x00\x01", 4));
  const auto answer = parse_dns_answer(made.message(), RecordType::a);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->addresses, (std::vector<std::string>{"10.0.0.2", "10.0.0.1"}));
  EXPECT_EQ(answer->ttl, std::chrono::seconds(7));
  const Seen seen = dns_instances(*answer, 6379);
  ASSERT_EQ(seen.all.size(), 2U);
  EXPECT_EQ(seen.all[0].id, "10.0.0.1:6379");
  EXPECT_TRUE(parse_dns_answer(made.message(), RecordType::aaaa)->addresses.empty());
}

TEST(DnsReply, AnAddressOfIpv6GetsBracketsAndKeepsItsId) {
  DnsBytes made;
  made.record(28, 30, std::string(15, '\0') + '\x01');
  const Seen seen = dns_instances(*parse_dns_answer(made.message(), RecordType::aaaa), 6379);
  ASSERT_EQ(seen.all.size(), 1U);
  EXPECT_EQ(seen.all[0].id, "::1:6379");
  EXPECT_EQ(seen.all[0].address, "[::1]:6379");
}

TEST(DnsReply, ServicesOfTheLowestPriorityAlone) {
  DnsBytes made;
  made.record(33, 60, srv(20, 5, 6379, "spare.test"));
  made.record(33, 60, srv(10, 0, 6380, "b.test"));
  made.record(33, 60, srv(10, 5, 6379, "a.test"));
  made.record(33, 60, srv(10, 5, 6379, "A.Test"));  // The same name.
  const Seen seen = dns_instances(*parse_dns_answer(made.message(), RecordType::srv), 0);
  ASSERT_EQ(seen.all.size(), 2U);
  EXPECT_EQ(seen.all[0].id, "a.test:6379");
  EXPECT_EQ(seen.all[1].address, "b.test:6380");
  EXPECT_EQ(seen.all[1].labels.at("dns.weight"), "0");
  DnsBytes none;
  none.record(33, 60, srv(0, 0, 0, "."));
  EXPECT_TRUE(parse_dns_answer(none.message(), RecordType::srv)->services.empty());
}

TEST(DnsReply, CutAndOddMessagesAreRefusedOrShorter) {
  DnsBytes made;
  made.record(33, 60, srv(10, 0, 6380, "b.test"));
  made.record(1, 60, std::string("\x0a\x00\x00\x02", 4));
  const std::string whole = made.message();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_dns_answer(std::string(whole.substr(0, size)), RecordType::srv)) << size;
  DnsBytes odd;
  odd.record(1, 60, "abc");
  EXPECT_FALSE(parse_dns_answer(odd.message(), RecordType::a));
  DnsBytes short_srv;
  short_srv.record(33, 60, "abcdef");
  EXPECT_FALSE(parse_dns_answer(short_srv.message(), RecordType::srv));
}

// --- Shared ---

TEST(HttpErrors, SayWhatToDo) {
  EXPECT_EQ(status_error({403, "Permission denied"}, "http://c", "give a token").kind, ErrorKind::denied);
  EXPECT_EQ(status_error({403, "Permission denied"}, "http://c", "give a token").message,
            "http://c refuses us (403): Permission denied; give a token");
  EXPECT_EQ(status_error({500, ""}, "http://c", "x").kind, ErrorKind::retryable);
  EXPECT_EQ(status_error({429, ""}, "http://c", "x").kind, ErrorKind::overloaded);
  EXPECT_EQ(percent_encoded("a b/c&d=e%~"), "a%20b%2Fc%26d%3De%25~");
}

}  // namespace
}  // namespace ringshift::discovery
