// The fields of each kind: what is known, what is missing, what cannot be.
#include "discovery/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "discovery/instances.h"
#include "discovery/pace.h"
#include "tests/unit/discovery/collect.h"
#include "topology/discovery.h"

namespace ringshift::discovery {
namespace {

using std::chrono::milliseconds;

TEST(Options, EachKindWithItsFields) {
  const struct {
    const char* kind;
    Fields fields;
  } good[] = {
      {"static", {{"instances", "a=10.0.0.1:6379,b=[::1]:6379"}}},
      {"file", {{"path", "/etc/x.yaml"}, {"poll", "2s"}}},
      {"dns", {{"name", "cache.example.com"}, {"port", "6379"}, {"servers", "127.0.0.1:53, 127.0.0.2:53"}}},
      {"dns", {{"name", "_redis._tcp.example.com"}}},
      {"registry", {}},
      {"consul",
       {{"service", "cache"},
        {"stale", "true"},
        {"id_from", "both"},
        {"url", "https://c:8501"},
        {"ca_file", "/ca"}}},
      {"nacos", {{"service", "cache"}, {"clusters", "a,b"}, {"api", "v2"}}},
      {"kubernetes", {{"service", "cache"}, {"id_from", "pod"}, {"wait", "2m"}}},
  };
  for (const auto& one : good) {
    const auto options = read_options(one.kind, one.fields);
    EXPECT_TRUE(options) << one.kind << ": " << options.error().message;
  }
  const auto dns = read_options("dns", good[2].fields);
  EXPECT_EQ(dns->servers, (std::vector<std::string>{"127.0.0.1:53", "127.0.0.2:53"}));
  EXPECT_EQ(dns->record, "address");
  EXPECT_EQ(read_options("dns", good[3].fields)->record, "srv");
  EXPECT_EQ(read_options("consul", {{"service", "x"}})->urls,
            (std::vector<std::string>{"http://127.0.0.1:8500"}));
  EXPECT_EQ(read_options("file", good[1].fields)->poll, milliseconds(2000));
  EXPECT_EQ(read_options("static", good[0].fields)->instances[1].address, "[::1]:6379");
}

TEST(Options, RefusalsNameTheFieldAndTheFix) {
  const struct {
    const char* kind;
    Fields fields;
    const char* says;
  } bad[] = {
      {"zookeeper", {}, "kind: 'zookeeper' is none of static, file"},
      {"file", {}, "path: is missing, and kind file needs it"},
      {"file", {{"path", "/x"}, {"poll", "2"}}, "poll: '2' is no duration"},
      {"file", {{"path", "/x"}, {"poll", "1ms"}}, "poll: '1ms' is not from 100 ms to 10 min"},
      {"file", {{"pat", "/x"}}, "pat: is no field of kind file; did you mean 'path'?"},
      {"file", {{"service", "x"}, {"path", "/x"}}, "service: is no field of kind file, which has path, poll"},
      {"dns", {{"name", "x"}}, "port: is missing"},
      {"dns", {{"name", "x"}, {"port", "70000"}}, "port: '70000' is not from 1 to 65535"},
      {"dns", {{"name", "_x._tcp.y"}, {"port", "1"}}, "port: is in the SRV records"},
      {"dns",
       {{"name", "x"}, {"port", "1"}, {"record", "mx"}},
       "record: 'mx' is none of address, a, aaaa, srv"},
      {"dns", {{"name", "x"}, {"port", "1"}, {"servers", "a,,b"}}, "servers: has an empty entry"},
      {"consul", {{"service", "x"}, {"id_from", "pod"}}, "id_from: 'pod' is none of service, node, both"},
      {"consul", {{"service", "x"}, {"url", "consul:8500"}}, "url: 'consul:8500' is no http://HOST:PORT"},
      {"consul", {{"service", "x"}, {"url", "http://u:p@c:8500"}}, "url: has a user or a query in it"},
      {"consul", {{"service", "x"}, {"stale", "yes"}}, "stale: 'yes' is not true or false"},
      {"consul", {{"service", "x"}, {"ca_file", "/ca"}, {"url", "http://c:1"}}, "ca_file: is for https"},
      {"consul", {{"service", ""}}, "service: is empty"},
      {"consul", {{"service", "a\nb"}}, "service: is no line"},
      {"static", {{"instances", "a"}}, "instances: 'a' is no ID=ADDRESS"},
      {"static", {{"instances", "a=h:1,a=h:2"}}, "instances: id 'a' is there twice"},
      {"static", {}, "instances: is missing"},
      {"registry", {{"cluster", "a/b"}}, "cluster: 'a/b' has characters"},
  };
  for (const auto& one : bad) {
    const auto options = read_options(one.kind, one.fields);
    ASSERT_FALSE(options) << one.kind << ": " << one.says;
    EXPECT_EQ(options.error().message.rfind(one.says, 0), 0U) << options.error().message;
    EXPECT_EQ(options.error().kind, ErrorKind::invalid);
  }
  EXPECT_EQ(
      read_options("file", {}, {}, "discovery.source.").error().message.rfind("discovery.source.path:", 0),
      0U);
}

TEST(Options, AListIsForTheKindStaticAlone) {
  EXPECT_TRUE(read_options("static", {}, list_of({"a", "b"})));
  EXPECT_FALSE(read_options("file", {{"path", "/x"}}, list_of({"a"})));
}

TEST(Options, ARegistryNeedsOneAndACluster) {
  const auto options = read_options("registry", {});
  ASSERT_TRUE(options);
  EXPECT_FALSE(make_source(*options));
}

TEST(StaticSource, TellsItsListOnceSorted) {
  auto options = read_options("static", {{"instances", "b=10.0.0.1:2,a=10.0.0.1:1"}});
  ASSERT_TRUE(options);
  Collect sink;
  auto source = make_source(*std::move(options));
  ASSERT_TRUE(source);
  ASSERT_TRUE((*source)->start(sink));
  ASSERT_TRUE(sink.wait([&] { return !sink.lists().empty(); }));
  source->reset();
  ASSERT_EQ(sink.lists().size(), 1U);
  EXPECT_EQ(sink.lists()[0][0].id, "a");
}

TEST(Instances, TwoOfAnIdOrAnAddressAreNoList) {
  auto all = list_of({"a", "b"});
  EXPECT_FALSE(sort_and_check(all));
  all[1].address = all[0].address;
  EXPECT_NE(sort_and_check(all)->find("address 10.0.0.1:7001 is there twice, for 'a' and 'b'"),
            std::string::npos)
      << *sort_and_check(all);
  all = list_of({"a", "a"});
  EXPECT_TRUE(sort_and_check(all));
}

TEST(Instances, LabelsAreBounded) {
  Instance instance;
  for (std::size_t i = 0; i < 2 * kLabelsMax; ++i) add_label(instance, "l" + std::to_string(i), "v");
  add_label(instance, "long", std::string(kLabelBytesMax + 1, 'x'));
  add_label(instance, "line", "a\nb");
  EXPECT_EQ(instance.labels.size(), kLabelsMax);
  EXPECT_FALSE(instance.labels.contains("line"));
}

TEST(Teller, TellsEqualListsOnceAndAgainAfterTrouble) {
  Collect sink;
  Teller teller(sink);
  EXPECT_TRUE(teller.saw({list_of({"a"}), {}}));
  EXPECT_TRUE(teller.saw({list_of({"a"}), {}}));
  EXPECT_EQ(sink.lists().size(), 1U);
  teller.trouble({ErrorKind::retryable, "away"});
  EXPECT_TRUE(teller.saw({list_of({"a"}), {}}));
  EXPECT_EQ(sink.lists().size(), 2U);
  EXPECT_FALSE(teller.saw({list_of({"a", "a"}), {}}));
  EXPECT_EQ(sink.lists().size(), 2U);
  EXPECT_EQ(sink.troubles().size(), 2U);
}

TEST(Pace, TwoAtOnceThenSlowerUntilSomethingChanges) {
  Pace pace;
  base::TimePoint now{std::chrono::seconds(100)};
  EXPECT_EQ(pace.before(now), base::Duration{0});
  EXPECT_EQ(pace.before(now), base::Duration{0});
  EXPECT_EQ(pace.before(now), base::Duration(Pace::kFastest));
  base::Duration all{0};
  for (int i = 0; i < 20; ++i) {  // Answers that come at once, with nothing new.
    pace.after(false, false);
    const auto wait = pace.before(now);
    all = wait;
    now += wait;
  }
  EXPECT_GE(all, base::Duration(Pace::kSlowest) - milliseconds(1));
  EXPECT_LE(all, base::Duration(Pace::kSlowest) * 2);
  pace.after(false, true);
  EXPECT_LE(pace.before(now + Pace::kFastest * 3), base::Duration(Pace::kFastest));
}

// The spec refuses by its own list what a source could not read: the two must name the same.
TEST(Options, TheSpecKnowsTheSameKindsAndFields) {
  EXPECT_TRUE(std::ranges::equal(kKinds, topology::kSourceKinds));
  for (const std::string_view kind : kKinds) {
    std::set<std::string> here;
    for (const FieldInfo& field : field_table()) {
      std::istringstream kinds{std::string(field.kinds)};
      for (std::string word; kinds >> word;) {
        if (word == kind) here.emplace(field.name);
      }
    }
    const auto there = topology::source_fields(kind);
    EXPECT_EQ(here, std::set<std::string>(there.begin(), there.end())) << kind;
  }
}

}  // namespace
}  // namespace ringshift::discovery
