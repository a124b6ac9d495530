// Other programs' placements in a spec: read, checked, written, routed, compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ringshift/diff.h"
#include "ringshift/snapshot.h"
#include "ringshift/topology.h"

namespace ringshift::topology {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string text(const std::string& placement, int members = 5, const std::string& weight = "1") {
  std::string out = "cluster: c\nplacement: {" + placement + "}\nmembers:\n";
  for (int i = 0; i < members; ++i) {
    out += "  - {id: m" + std::to_string(i) + ", address: '127.0.0.1:" + std::to_string(31100 + i) +
           "', weight: " + (i == 0 ? weight : "1") + "}\n";
  }
  return out;
}

Spec spec(const std::string& placement, int members = 5, const std::string& weight = "1") {
  auto out = parse_spec(text(placement, members, weight), "s.yaml");
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return *out;
}

TEST(PeerSpec, WhatIsGivenIsWrittenAndReadAgain) {
  const Spec twemproxy = spec("algorithm: twemproxy, distribution: ketama, hash: murmur, hash_tag: '$$'");
  EXPECT_THAT(to_json(twemproxy), HasSubstr(R"("placement":{"algorithm":"twemproxy","distribution":"ketama",)"
                                            R"("hash":"murmur","hash_tag":"$$"})"));
  for (const char* placement :
       {"algorithm: twemproxy", "algorithm: libmemcached, distribution: ketama, weighted: true",
        "algorithm: libketama", "algorithm: nginx, consistent: true",
        "algorithm: haproxy, hash: djb2, avalanche: true",
        "algorithm: spymemcached, locator: KETAMA, hash: KETAMA_HASH, format: LIBMEMCACHED",
        "algorithm: dalli", "algorithm: hashring, vnodes: 100, hash: sha1, default_port: 11211",
        "algorithm: cache-memcached-fast, ketama_points: 150",
        "algorithm: envoy-ring, minimum_ring_size: 4096", "algorithm: envoy-maglev, table_size: 1021",
        "algorithm: article-go", "algorithm: article-php", "algorithm: article-js, vnodes: 10"}) {
    const Spec first = spec(placement);
    const auto again = parse_spec(to_json(first), "again");
    ASSERT_TRUE(again) << placement << ": " << again.error().message;
    EXPECT_EQ(first, *again) << placement;
    EXPECT_EQ(to_json(first), to_json(*again));
  }
}

TEST(PeerSpec, OursAreWrittenAsBefore) {
  EXPECT_THAT(
      to_json(spec("algorithm: ring")),
      HasSubstr(R"("placement":{"algorithm":"ring","hash":"xxh3","hash_tag":"","points":256,"slots":[]})"))
      << "another text would change every digest";
}

TEST(PeerSpec, WrongOptionsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"algorithm: twemproxy, vnodes: 3",
       "s.yaml:2: placement.vnodes: 'vnodes' is no option of twemproxy: it has distribution, hash, hash_tag"},
      {"algorithm: twemproxy, hash: md6", "placement.hash: 'md6' is not one of one_at_a_time, md5"},
      {"algorithm: twemproxy, distribution: random", "random is no placement"},
      {"algorithm: dalli, hash_tag: '{}'", "'hash_tag' is no option of dalli"},
      {"algorithm: nginx, consistent: maybe", "'maybe' is not true or false"},
      {"algorithm: envoy-maglev, table_size: 1000", "1000 is not prime"},
      {"algorithm: hashring, hash: nothing", "is no digest that OpenSSL knows"},
      {"algorithm: hashring, replicas: 5", "5 points need 20 bytes, and the digest has 16"},
      {"algorithm: ring, vnodes: 3", "vnodes"}};
  for (const auto& [placement, message] : cases) {
    const auto out = parse_spec(text(placement), "s.yaml");
    ASSERT_FALSE(out) << placement;
    EXPECT_THAT(out.error().message, HasSubstr(message));
  }
  const auto fraction = parse_spec(text("algorithm: twemproxy", 5, "1.5"), "s.yaml");
  ASSERT_FALSE(fraction);
  EXPECT_THAT(fraction.error().message, HasSubstr("takes whole weights only"));
}

TEST(PeerSpec, OursAndTheirsDoNotMix) {
  Spec mixed = spec("algorithm: twemproxy");
  mixed.placement.table_size = 1021;  // Maglev's, which no text could say of twemproxy.
  const auto theirs = parse_spec(to_json(mixed), "again");
  ASSERT_TRUE(theirs) << "it is not written";
  EXPECT_FALSE(diff(mixed, *theirs)) << "and refused when a program sets it";
  Spec ours = spec("algorithm: ring");
  ours.placement.options["distribution"] = "ketama";
  const auto refused = diff(ours, ours);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("placement.distribution: ring has no such option"));
  const auto unknown = parse_spec(text("algorithm: twemprxy"), "s.yaml");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("did you mean 'twemproxy'?"));
}

TEST(PeerSpec, RoutesAsTheRecordedPeerDid) {
  Topology topology;
  topology.spec = spec("algorithm: twemproxy, distribution: ketama, hash: fnv1a_64");
  const auto snapshot = Snapshot::compile(topology, {0, 1});
  ASSERT_TRUE(snapshot);
  // The first answers of case ketama/fnv1a_64/plain of tests/vectors/twemproxy.json: user:0:profile, ...
  const std::string recorded = "20011102041102203241";
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const std::string key = "user:" + std::to_string(i) + ":profile";
    EXPECT_EQ((*snapshot)->route(key).member, static_cast<MemberIndex>(recorded[i] - '0')) << key;
  }
  EXPECT_THAT((*snapshot)->explain("user:0:profile"), Contains(HasSubstr("point ")));
}

TEST(PeerSpec, DiffOfRingsIsExactAndAgreesWithKeys) {
  const auto exact =
      diff(spec("algorithm: twemproxy, hash: md5", 4), spec("algorithm: twemproxy, hash: md5", 5));
  ASSERT_TRUE(exact);
  EXPECT_TRUE(exact->exact);
  EXPECT_NEAR(exact->moved_share, 0.2, 0.05);
  for (const PairShare& pair : exact->pairs) EXPECT_EQ(pair.to, "m4") << "4 and 5 have 160 points each";
  const auto sampled = diff(spec("algorithm: twemproxy, hash: md5", 4), spec("algorithm: ring", 4));
  ASSERT_TRUE(sampled);
  EXPECT_FALSE(sampled->exact);
  EXPECT_NEAR(sampled->moved_share, 0.75, 0.05);
  const auto whole = shares(spec("algorithm: haproxy, method: consistent", 5));
  ASSERT_TRUE(whole);
  double sum = 0;
  for (const double share : whole->shares) sum += share;
  EXPECT_NEAR(sum, 1, 1e-12);
  const auto modula = shares(spec("algorithm: twemproxy, distribution: modula", 4));
  ASSERT_TRUE(modula);
  EXPECT_TRUE(modula->exact) << "by residues";
  EXPECT_NEAR(modula->shares[0], 0.25, 1e-6);
}

TEST(PeerSpec, WhatIsBadIsSaidWithItsMeasure) {
  // Each with what it makes of these very members.
  using testing::AllOf;
  const auto measured = [](const std::string& what) {
    return Contains(AllOf(HasSubstr(what),
                          testing::ContainsRegex("'m[0-9]+' takes [0-9.]+ % of the keys, [0-9.]+ times")));
  };
  EXPECT_THAT(warnings(spec("algorithm: twemproxy, hash: crc32")),
              measured("nearly all keys go to one member"));
  EXPECT_THAT(warnings(spec("algorithm: twemproxy, hash: crc32")),
              Contains(HasSubstr("takes 100.0 % of the keys")));
  EXPECT_THAT(warnings(spec("algorithm: libmemcached, distribution: ketama, hash: crc")),
              measured("lie close and collide"));
  EXPECT_THAT(warnings(spec("algorithm: twemproxy", 5, "5000")), measured("rounds to no points"));
  EXPECT_THAT(warnings(spec("algorithm: twemproxy", 5, "5000")),
              Contains(HasSubstr("1 of 'm3' and 1 more rounds")));
  EXPECT_THAT(warnings(spec("algorithm: twemproxy", 25)), measured("156 points each and not 160"));
  EXPECT_THAT(warnings(spec("algorithm: hashring", 7)), measured("156 points each and not 160"));
  for (const char* fnv :
       {"algorithm: article-go", "algorithm: libmemcached, distribution: ketama, hash: fnv1a_32",
        "algorithm: spymemcached, locator: KETAMA, hash: FNV1A_32_HASH"})
    EXPECT_THAT(warnings(spec(fnv)), measured("without a finaliser")) << fnv;
  EXPECT_THAT(warnings(spec("algorithm: libmemcached, distribution: ketama_weighted, hash: fnv1a_32")),
              testing::IsEmpty())
      << "its points are MD5's";
  EXPECT_THAT(warnings(spec("algorithm: libketama", 4)), testing::IsEmpty());
}

}  // namespace
}  // namespace ringshift::topology
