// The picture of a cluster from its registry's keys: whole, key by key, and with a thousand members.
#include "admin/picture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "coord/membership_keys.h"
#include "coord/router_record.h"
#include "topology/discovery.h"

namespace ringshift::admin {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::SizeIs;

const coord::ClusterKeys kKeys{"default", "cache"};

topology::Spec spec_of(std::size_t members) {
  topology::Spec spec;
  spec.cluster = "cache";
  for (std::size_t i = 1; i <= members; ++i) {
    topology::Member member;
    member.id = fmt::format("cache-{}", i);
    member.address = fmt::format("10.0.{}.{}:6379", i / 250, i % 250 + 1);
    spec.members.push_back(member);
  }
  return spec;
}

class PictureTest : public testing::Test {
 protected:
  coord::KeyValue kv(const std::string& key, const std::string& value) {
    ++revision_;
    return {key, value, revision_, revision_, 1, 0x7f};
  }
  // As the controller writes it: the topology, and its copy.
  std::vector<coord::KeyValue> published(const topology::Topology& topology) {
    const coord::KeyValue now = kv(kKeys.topology(), topology::to_json(topology));
    coord::KeyValue copy = now;
    copy.key = fmt::format("{}{:020}", kKeys.history(), now.mod_revision - 1);
    topology_revision_ = now.mod_revision;
    digest_ = topology::digest(topology);
    return {now, copy};
  }
  coord::RouterRecord record(std::uint64_t requests) {
    coord::RouterRecord out;
    out.revision = topology_revision_;
    out.digest = digest_;
    out.requests = requests;
    out.hits = requests * 9 / 10;
    out.misses = requests / 10;
    out.clients = 5;
    out.p99_ms = 2;
    return out;
  }
  coord::KeyValue report(const std::string& id, const coord::RouterRecord& record) {
    return kv(kKeys.router(id), coord::to_json(record));
  }
  void put(const coord::KeyValue& one) { picture_.apply({coord::Event::Kind::put, one}, now()); }
  void remove(const std::string& key) {
    coord::KeyValue one;
    one.key = key;
    one.mod_revision = ++revision_;
    picture_.apply({coord::Event::Kind::remove, one}, now());
  }
  void wait(std::chrono::milliseconds time) { elapsed_ += time; }
  [[nodiscard]] Moment now() const { return {SteadyTime{} + 1h + elapsed_, 1'000'000 + elapsed_.count()}; }
  std::shared_ptr<const State> build() { return state_ = picture_.build(now()); }
  // The news of a topic in the last state.
  [[nodiscard]] std::vector<json> news(Topic topic) const {
    std::vector<json> out;
    for (const News& one : state_->news) {
      if (one.topic == topic) out.push_back(json::parse(one.data));
    }
    return out;
  }
  void load(std::vector<coord::KeyValue> kvs) {
    coord::Range range;
    range.kvs = std::move(kvs);
    range.cluster_id = 17;
    range.revision = revision_;
    std::ranges::sort(range.kvs, {}, &coord::KeyValue::key);
    picture_.reset(range, now());
  }
  // A cluster of four, with a router that has reported twice.
  void load_four() {
    topology::Topology topology;
    topology.spec = spec_of(4);
    auto kvs = published(topology);
    kvs.push_back(kv(kKeys.spec(), topology::to_json(topology.spec)));
    kvs.push_back(kv(kKeys.controller(), "c1"));
    load(std::move(kvs));
    put(report("r1", record(1000)));
    wait(1000ms);
    put(report("r1", record(2000)));
  }

  Picture picture_{kKeys, {"http://127.0.0.1:1", "default", "cache"}};
  std::shared_ptr<const State> state_;
  coord::Revision revision_ = 100, topology_revision_ = 0;
  std::string digest_;
  std::chrono::milliseconds elapsed_{0};
};

TEST_F(PictureTest, EmptyRegistryIsSaidInWords) {
  picture_.connection(false, "refused", now());
  build();
  EXPECT_EQ(json::parse(*state_->overview)["registry_connected"], false);
  wait(5000ms);
  load({});
  build();
  const json overview = json::parse(*state_->overview);
  EXPECT_EQ(overview["health"], "critical");
  EXPECT_EQ(overview["alerts"][0]["code"], "no_topology");
  EXPECT_EQ(json::parse(members_text(*state_))["members"], json::array());
  EXPECT_EQ(json::parse(*state_->topology), json(nullptr));
}

TEST_F(PictureTest, OverviewOfACluster) {
  load_four();
  build();
  const json overview = json::parse(*state_->overview);
  EXPECT_EQ(overview["version"], fmt::format("1.{}", topology_revision_));
  EXPECT_EQ(overview["digest"], digest_);
  EXPECT_EQ(overview["routers"]["agree"], 1);
  EXPECT_EQ(overview["members"]["total"], 4);
  EXPECT_NEAR(overview["qps"].get<double>(), 1000, 1);
  EXPECT_NEAR(overview["hit_rate"].get<double>(), 0.9, 1e-6);
  EXPECT_NEAR(overview["origin"]["qps"].get<double>(), 100, 0.1);
  EXPECT_EQ(overview["origin"]["source"], "misses");
  EXPECT_EQ(overview["controller"], "c1");
  EXPECT_EQ(overview["health"], "ok") << overview["alerts"].dump();
  const json members = json::parse(members_text(*state_));
  double shares = 0;
  for (const json& member : members["members"]) shares += member["share"].get<double>();
  EXPECT_NEAR(shares, 1, 1e-6);
  EXPECT_EQ(members["exact_shares"], true);
  // What operators' programs say counts before the estimate.
  put(kv(kKeys.origin(), "77"));
  wait(1000ms);
  build();
  EXPECT_EQ(json::parse(*state_->overview)["origin"], json({{"qps", 77}, {"source", "reported"}}));
}

TEST_F(PictureTest, NewsIsWhatChangedAndNothingElse) {
  load_four();
  build();
  EXPECT_TRUE(state_->fresh_start);
  wait(250ms);
  build();
  EXPECT_FALSE(state_->fresh_start);
  EXPECT_THAT(state_->news, SizeIs(0));
  wait(750ms);
  build();
  EXPECT_THAT(state_->news, SizeIs(1));
  EXPECT_EQ(state_->news[0].topic, Topic::series);
  // A new topology: told at once, with the members.
  topology::Topology next;
  next.spec = spec_of(4);
  next.fence.epoch = 1;
  topology::Resize resize;
  resize.id = "1-120";
  resize.placement = next.spec.placement;
  resize.members = spec_of(5).members;
  resize.members.erase(resize.members.begin());
  next.resize = resize;
  for (const auto& one : published(next)) put(one);
  wait(10ms);
  build();
  EXPECT_THAT(news(Topic::topology), SizeIs(1));
  EXPECT_EQ(news(Topic::topology)[0]["resize"]["id"], "1-120");
  EXPECT_THAT(news(Topic::topology)[0]["changes"], SizeIs(1));
  ASSERT_THAT(news(Topic::members), SizeIs(1));
  std::map<std::string, std::string> states;
  const json members = json::parse(members_text(*state_));
  for (const json& member : members["members"]) states[member["id"]] = member["state"];
  EXPECT_EQ(states["cache-1"], "leaving");
  EXPECT_EQ(states["cache-2"], "active");
  EXPECT_EQ(states["cache-5"], "joining");
  const json overview = json::parse(*state_->overview);
  EXPECT_EQ(overview["routers"]["behind"], json::array({"r1"}));
  EXPECT_EQ(overview["members"]["joining"], 1);
  EXPECT_EQ(overview["members"]["leaving"], 1);
}

TEST_F(PictureTest, StatusLogMarksAndHistory) {
  load_four();
  build();
  resize::ResizeStatus status;
  status.state = "running";
  status.id = "1-9";
  status.step = 1;
  status.steps = 4;
  status.phase = "dual";
  status.keys_moved = 10;
  status.keys_to_move = 40;
  put(kv(kKeys.status(), resize::to_json(status)));
  put(kv(resize::decision_key(kKeys, "1-9", 1), resize::to_json({5, "accepted", "go", "ann"})));
  put(kv(audit_prefix(kKeys) + "0000000000005-1",
         to_json(AuditEntry{"", 5, "ann", "resize/start", "", "a", "b", "accepted"})));
  build();
  EXPECT_THAT(news(Topic::resize), SizeIs(1));
  EXPECT_THAT(news(Topic::mark), SizeIs(2));
  EXPECT_EQ(news(Topic::log)[0]["by"], "ann");
  EXPECT_EQ(news(Topic::audit)[0]["action"], "resize/start");
  EXPECT_EQ(*state_->resize, resize::to_json(status)) << "as `resize status --json`";
  EXPECT_EQ(json::parse(*log_text(*state_->logs, "last"))["resize"], "1-9");
  EXPECT_EQ(log_text(*state_->logs, "other"), std::nullopt);
  wait(1000ms);
  build();
  EXPECT_NEAR(json::parse(series_text(*state_, 0))["columns"]["share_done"].back().get<double>(), 0.25, 1e-6);
  EXPECT_THAT(json::parse(series_text(*state_, 0))["marks"], SizeIs(2));
  EXPECT_EQ(state_->history->begin()->first, topology_revision_);
  remove(fmt::format("{}{:020}", kKeys.history(), topology_revision_ - 1));
  remove(resize::decision_key(kKeys, "1-9", 1));
  remove(audit_prefix(kKeys) + "0000000000005-1");
  build();
  EXPECT_TRUE(state_->history->empty());
  EXPECT_TRUE(state_->logs->empty());
  EXPECT_TRUE(state_->audit->empty());
}

TEST_F(PictureTest, AnotherDigestUnderOneVersionIsAnAlarm) {
  load_four();
  coord::RouterRecord wrong = record(10);
  wrong.digest = "0000";
  put(report("r2", wrong));
  build();
  const json overview = json::parse(*state_->overview);
  EXPECT_EQ(overview["routers"]["other_digest"], json::array({"r2"}));
  EXPECT_EQ(overview["health"], "critical");
  remove(kKeys.router("r2"));
  remove(kKeys.controller());
  wait(4000ms);
  build();
  EXPECT_EQ(json::parse(*state_->overview)["alerts"][0]["code"], "no_controller");
  EXPECT_THAT(json::parse(*state_->routers)["routers"], SizeIs(1));
}

TEST_F(PictureTest, HotKeysOfAllRoutersAddUp) {
  load_four();
  for (const char* id : {"r1", "r2"}) {
    coord::RouterRecord hot = record(3000);
    hot.hot_keys = {{"hot", 2000}, {std::string("\xff\n", 2), 10}};
    put(report(id, hot));
  }
  build();
  const json keys = json::parse(*state_->hot_keys)["keys"];
  ASSERT_THAT(keys, SizeIs(2));
  EXPECT_EQ(keys[0]["key"], "hot");
  EXPECT_NEAR(keys[0]["requests_per_second"].get<double>(), 400, 0.1);
  EXPECT_EQ(keys[0]["routers"], 2);
  EXPECT_EQ(keys[1]["key"], "\\xff\\x0a");
  EXPECT_EQ(keys[1]["key_base64"], "/wo=");
}

TEST_F(PictureTest, MembershipIsThatOfThePolicyAndAbsentWithout) {
  const auto shown = [&] { return json::parse(*build()->membership); };
  load_four();
  EXPECT_EQ(shown()["active"], false);
  put(kv(coord::membership_key(kKeys), R"({"left over":1})"));
  EXPECT_EQ(shown()["reported"], false);
  topology::DiscoverySpec rules;
  rules.source.kind = "registry";
  rules.remove.after = 90s;
  put(kv(coord::discovery_key(kKeys), topology::to_json(rules)));
  json now = shown();
  EXPECT_EQ(now["active"], true);
  EXPECT_EQ(now["reported"], false) << "nobody has looked yet, or nothing can be read";
  EXPECT_EQ(now["source"]["state"], "unknown");
  EXPECT_EQ(now["rules"]["remove_after_seconds"], 90);
  membership::Report report;
  report.source = "registry";
  report.trouble = "it shows 0 instances";
  report.trouble_since_ms = 5;
  report.held = true;
  report.cooldown_until_ms = 7;
  report.last_change = {"cache-9", true, 6};
  report.last_error = "too full";
  membership::Candidate ready, unfit, ill;
  ready.member.id = "cache-7";
  unfit.member.id = "cache-8";
  unfit.why_not = unfit.waits_for = "its id is retired";
  unfit.code = "retired";
  ill.member.id = "cache-9";
  ill.state = discovery::InstanceState::unhealthy;
  report.candidates = {ready, unfit, ill};
  report.gone = {{"cache-2", "nobody leaves by himself (remove.after)", "never", 4, 0}};
  report.elsewhere = {{"cache-1", "a:1", "b:1"}};
  put(kv(coord::membership_key(kKeys), membership::to_json(report)));
  now = shown();
  EXPECT_EQ(news(Topic::membership).at(0), now);
  EXPECT_EQ(
      now["source"],
      (json{{"name", "registry"}, {"state", "held"}, {"error", "it shows 0 instances"}, {"since_ms", 5}}));
  EXPECT_EQ(now["cooldown_until_ms"], 7);
  EXPECT_EQ(now["last_change"],
            (json{{"member", "cache-9"}, {"joins", true}, {"at_ms", 6}, {"error", "too full"}}));
  std::vector<bool> admissible;
  for (const json& one : now["candidates"]) admissible.push_back(one["admissible"]);
  EXPECT_THAT(admissible, ElementsAre(true, false, false));
  EXPECT_EQ(now["candidates"][1]["code"], "retired");
  EXPECT_EQ(now["gone"][0]["leaves_at_ms"], nullptr);
  EXPECT_EQ(now["elsewhere"][0]["instance_address"], "b:1");
  build();
  EXPECT_THAT(news(Topic::membership), SizeIs(0));
  wait(2000ms);  // The overview has the alerts.
  EXPECT_THAT(*build()->overview, testing::HasSubstr("discovery_held"));
  remove(coord::discovery_key(kKeys));
  EXPECT_EQ(shown()["active"], false);
  EXPECT_EQ(shown()["candidates"], json::array());
  wait(2000ms);
  EXPECT_THAT(*build()->overview, testing::Not(testing::HasSubstr("discovery_held")));
}

TEST_F(PictureTest, OddContentsChangeNothing) {
  load_four();
  build();
  json overview = json::parse(*state_->overview);
  for (const std::string& key :
       {kKeys.topology(), kKeys.status(), kKeys.router("r1"), kKeys.router("rx"), kKeys.history() + "1",
        kKeys.log() + "1/1", kKeys.log() + "x", audit_prefix(kKeys) + "1", kKeys.origin()}) {
    for (const char* value : {"", "{", "[]", "null", "{\"requests\":\"x\"}", "\xff"}) put(kv(key, value));
  }
  put(kv("/elsewhere/topology", "{}"));
  wait(1000ms);
  build();
  EXPECT_NE(json::parse(*state_->overview)["at_ms"], overview["at_ms"]) << "it was made anew";
  overview["at_ms"] = json::parse(*state_->overview)["at_ms"];
  EXPECT_EQ(json::parse(*state_->overview), overview);
  EXPECT_NE(state_->stored, nullptr);
}

TEST_F(PictureTest, AThousandMembersAndTenRouters) {
  topology::Topology topology;
  topology.spec = spec_of(1000);
  load(published(topology));
  const auto report_all = [&](std::uint64_t round) {
    for (int r = 0; r < 10; ++r) {
      coord::RouterRecord one = record(round * 100'000);
      for (std::size_t m = 0; m < coord::RouterRecord::kMembersMax; ++m) {
        auto& member = one.members[topology.spec.members[(m + static_cast<std::size_t>(r) * 100) % 1000].id];
        member.requests = round * 500 + m;
        member.hits = round * 450;
      }
      put(report(fmt::format("r{}", r), one));
    }
  };
  report_all(1);
  build();
  EXPECT_THAT(json::parse(members_text(*state_))["members"], SizeIs(1000));
  wait(1000ms);
  report_all(2);
  wait(1000ms);
  report_all(3);
  build();
  const json changed = news(Topic::members).at(0)["changed"];
  EXPECT_THAT(changed, SizeIs(1000));
  for (const json& member : changed) {
    EXPECT_FALSE(member.contains("address")) << "only what changed";
    EXPECT_TRUE(member.contains("requests_per_second"));
  }
  EXPECT_LT(news(Topic::members).at(0).dump().size(), 400U * 1000);
  // The same rates again are no news: all is said by the fifth look.
  std::size_t bytes = 0;
  for (std::uint64_t round = 4; round < 14; ++round) {
    wait(1000ms);
    report_all(round);
    build();
    if (round < 10) continue;
    EXPECT_THAT(news(Topic::members), SizeIs(0));
    for (const News& one : state_->news) bytes += one.data.size();
  }
  EXPECT_LT(bytes, 20'000U);
}

}  // namespace
}  // namespace ringshift::admin
