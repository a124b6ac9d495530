// Files that every program would obey: what becomes of each line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.h"

namespace ringshift::importing {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using topology::Protocol;

// Every import must be what its own YAML says.
Imported one(Format format, std::string_view text, const std::string& pool = "") {
  auto imported = import_as(format, text, pool);
  EXPECT_TRUE(imported) << imported.error().message;
  if (!imported) return {};
  EXPECT_EQ(imported->size(), 1U);
  const std::string yaml = to_yaml(imported->front(), format, "F");
  const auto again = topology::parse_spec(yaml, "yaml");
  EXPECT_TRUE(again) << again.error().message << "\n" << yaml;
  if (again) {
    EXPECT_EQ(*again, imported->front().spec) << yaml;
  }
  return imported->front();
}

constexpr std::string_view kTwoPools =
    "alpha:\n"
    "  listen: 127.0.0.1:22121\n"
    "  hash: crc32a\n"
    "  distribution: modula\n"
    "  hash_tag: \"{}\"\n"
    "  redis: true\n"
    "  timeout: 400\n"
    "  auto_eject_hosts: true\n"
    "  preconnect: true\n"
    "  redis_auth: secret\n"
    "  servers:\n"
    "   - 127.0.0.1:6379:1 one\n"
    "   - 127.0.0.1:6380:2\n"
    "beta:\n"
    "  listen: /var/run/nutcracker/beta.sock 0666\n"
    "  servers:\n"
    "   - 10.0.0.1:11211:1\n"
    "   - /tmp/memcached.sock:1\n"
    "   - /tmp/other.sock:1 other/one\n"
    "   - ::1:11212:3\n";

TEST(Nutcracker, EveryPoolWithTwemproxysDefaults) {
  const auto both = import_as(Format::nutcracker, kTwoPools);
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_EQ(both->size(), 2U);
  const topology::Spec& alpha = (*both)[0].spec;
  EXPECT_EQ(alpha.cluster, "alpha");
  EXPECT_EQ(alpha.protocol, Protocol::redis);
  EXPECT_EQ(alpha.placement.algorithm, "twemproxy");
  EXPECT_EQ(alpha.placement.hash, "crc32a");
  EXPECT_EQ(alpha.placement.hash_tag, "{}");
  EXPECT_EQ(alpha.placement.options.at("distribution"), "modula");
  ASSERT_EQ(alpha.members.size(), 2U);
  EXPECT_EQ(alpha.members[0].id, "one");
  EXPECT_EQ(alpha.members[0].label, "one");
  EXPECT_EQ(alpha.members[1].id, "127.0.0.1:6380");
  EXPECT_EQ(alpha.members[1].label, "");  // As the placement makes it of the address.
  EXPECT_EQ(alpha.members[1].weight, 2.0);

  const topology::Spec& beta = (*both)[1].spec;
  EXPECT_EQ(beta.protocol, Protocol::memcached);
  EXPECT_EQ(beta.placement.hash, "fnv1a_64");
  EXPECT_EQ(beta.placement.options.at("distribution"), "ketama");
  ASSERT_EQ(beta.members.size(), 4U);
  EXPECT_EQ(beta.members[1].address, "unix:/tmp/memcached.sock");
  EXPECT_EQ(beta.members[1].label, "/tmp/memcached.sock:");  // As nutcracker's statistics show it.
  EXPECT_EQ(beta.members[2].label, "other/one");
  EXPECT_EQ(beta.members[2].id, "other-one");
  EXPECT_EQ(beta.members[3].address, "[::1]:11212");
  EXPECT_EQ(beta.members[3].label, "::1:11212");
}

TEST(Nutcracker, SaysLineByLineWhatIsLost) {
  const Imported alpha = one(Format::nutcracker, kTwoPools, "alpha");
  EXPECT_THAT(note_words(alpha),
              ElementsAre("listen: 127.0.0.1:22121", "timeout: 400", "auto_eject_hosts: true",
                          "preconnect: true", "redis_auth: (hidden)"));
  EXPECT_EQ(alpha.notes[2].mark, (Mark{8, 3}));
  EXPECT_THAT(to_yaml(alpha, Format::nutcracker, "F"), Not(HasSubstr("secret")));
  EXPECT_THAT(note_words(one(Format::nutcracker, kTwoPools, "beta")), Contains("other/one"));
}

TEST(Nutcracker,
     DebiansExampleComesThrough) {  // Weights of 100000, an IPv6 address, a database number aside.
  const Imported omega = one(Format::nutcracker,
                             "omega:\n  listen: /tmp/gamma\n  hash: hsieh\n  distribution: ketama\n"
                             "  auto_eject_hosts: false\n  servers:\n   - 127.0.0.1:11214:100000\n"
                             "   - 127.0.0.1:11215:1\n");
  EXPECT_EQ(omega.spec.members[0].weight, 100000.0);
  EXPECT_THAT(note_words(omega), Not(Contains(HasSubstr("auto_eject"))));
}

TEST(Libmemcached, TheWholeString) {
  const Imported all = one(Format::libmemcached,
                           "--HASH=MD5 --DISTRIBUTION=consistent --SERVER=10.0.0.1:11212/?2 --server=cache-b "
                           "--SOCKET=\"/tmp/a.sock\"/?3 --VERIFY-KEY --CONNECT-TIMEOUT=100 END --WHATEVER");
  EXPECT_EQ(all.spec.protocol, Protocol::memcached);
  EXPECT_EQ(all.spec.consistency, topology::Consistency::cache);
  EXPECT_EQ(all.spec.placement.hash, "md5");
  ASSERT_EQ(all.spec.members.size(), 3U);
  EXPECT_EQ(all.spec.members[0].weight, 2.0);
  EXPECT_EQ(all.spec.members[1].address, "cache-b:11211");
  EXPECT_EQ(all.spec.members[2].address, "unix:/tmp/a.sock");
  EXPECT_EQ(all.spec.members[2].label, "/tmp/a.sock:0");
  EXPECT_THAT(note_words(all), ElementsAre("--VERIFY-KEY", "--CONNECT-TIMEOUT=100", "libmemcached"));
}

TEST(Libmemcached, WeightsBeforeTheDistributionDoNotCount) {
  const Imported late =
      one(Format::libmemcached, "--SERVER=10.0.0.1/?1 --SERVER=10.0.0.2/?3 --DISTRIBUTION=consistent,CRC");
  EXPECT_EQ(late.spec.members[1].weight, 1.0);
  EXPECT_THAT(note_words(late), Contains("weight 3 of 10.0.0.2:11211"));
  EXPECT_THAT(note_words(late), Contains("--DISTRIBUTION=consistent,CRC"));
  const Imported early =
      one(Format::libmemcached, "--DISTRIBUTION=consistent --SERVER=10.0.0.1/?1 --SERVER=10.0.0.2/?3");
  EXPECT_EQ(early.spec.members[1].weight, 3.0);
}

TEST(Libmemcached, ANamespaceThatIsHashedStays) {
  const Imported spaced =
      one(Format::libmemcached, "--NAMESPACE=\"app:\" --HASH-WITH-NAMESPACE --SERVER=10.0.0.1 --SORT-HOSTS");
  EXPECT_THAT(note_words(spaced), Contains("--NAMESPACE=\"app:\""));
}

TEST(Nginx, UpstreamsAmongOtherThings) {
  const Imported cache = one(Format::nginx,
                             "user www; # upstream in a comment { }\n"
                             "http {\n"
                             "  log_format main '$remote_addr { ; }';\n"
                             "  upstream cache {\n"
                             "    hash $memcached_key consistent;\n"
                             "    server 10.0.0.1:11211 weight=3 max_fails=2;\n"
                             "    server 10.0.0.2;\n"
                             "    server unix:/tmp/m.sock;\n"
                             "    server \"backend.example.com:11212\";\n"
                             "    keepalive 32;\n"
                             "  }\n"
                             "  init_by_lua_block { local s = '}' .. '{' }\n"
                             "  server { listen 80; location /${x} { memcached_pass cache; } }\n"
                             "}\n");
  EXPECT_EQ(cache.spec.protocol, Protocol::memcached);
  EXPECT_EQ(cache.spec.placement.options.at("consistent"), "true");
  ASSERT_EQ(cache.spec.members.size(), 4U);
  EXPECT_EQ(cache.spec.members[0].weight, 3.0);
  EXPECT_EQ(cache.spec.members[1].address, "10.0.0.2:80");
  EXPECT_EQ(cache.spec.members[1].label, "10.0.0.2");  // No port is hashed where none is written.
  EXPECT_EQ(cache.spec.members[2].address, "unix:/tmp/m.sock");
  EXPECT_EQ(cache.spec.members[3].address, "backend.example.com:11212");
  EXPECT_THAT(note_words(cache), ElementsAre("cache", "cache", "max_fails=2 of 10.0.0.1:11211", "10.0.0.2",
                                             "backend.example.com:11212", "keepalive 32"));
}

TEST(Nginx, ChoosesByPoolAndKeepsAPlainHash) {
  const std::string_view text =
      "upstream web { least_conn; server a:80; }\nupstream cache { server 10.0.0.1:1; hash $uri; }\n";
  const Imported cache = one(Format::nginx, text, "cache");
  EXPECT_EQ(cache.spec.placement.options.at("consistent"), "false");
  EXPECT_EQ(cache.spec.protocol, Protocol::redis);
  EXPECT_THAT(note_words(cache), Contains("hash $uri"));
}

constexpr std::string_view kHaproxy =
    "global\n"
    "  maxconn 100\n"
    "defaults base\n"
    "  timeout connect 5s\n"
    "  balance hdr(x-key)\n"
    "  default-server check weight 10\n"
    "frontend in\n"
    "  bind :80\n"
    "  use_backend cache if { path /x }\n"
    " backend cache\n"  // Sections may be indented.
    "  hash-type consistent djb2 # a comment\n"
    "  option redis-check\n"
    "  server a 10.0.0.1:6379\n"
    "  server \"b c\" 10.0.0.2:6379 weight 20 id 1 inter 3s\n"
    "  server c 10.0.0.3:6379 disabled\n"
    "  server d ipv4@10.0.0.4:6379 weight 0\n"
    "  server e unix@/tmp/e.sock weight 256 backup\n"
    "  server f [::1]:6379\n";

TEST(Haproxy, DefaultsIdsAndServersWithoutKeys) {
  const Imported cache = one(Format::haproxy, kHaproxy);
  EXPECT_EQ(cache.spec.cluster, "cache");
  EXPECT_EQ(cache.spec.protocol, Protocol::redis);
  EXPECT_EQ(cache.spec.placement.hash, "djb2");
  EXPECT_EQ(cache.spec.placement.options.at("method"), "consistent");
  EXPECT_EQ(cache.spec.placement.options.at("avalanche"), "false");
  ASSERT_EQ(cache.spec.members.size(), 3U);
  EXPECT_EQ(cache.spec.members[0].label, "2");  // 1 is taken by the second.
  EXPECT_EQ(cache.spec.members[0].weight, 10.0);
  EXPECT_EQ(cache.spec.members[1].id, "b-c");
  EXPECT_EQ(cache.spec.members[1].label, "1");
  EXPECT_EQ(cache.spec.members[1].weight, 20.0);
  EXPECT_EQ(cache.spec.members[2].label, "7");  // Numbers go on from the one taken.
  EXPECT_EQ(cache.spec.members[2].address, "[::1]:6379");
  EXPECT_THAT(note_words(cache), Contains("server c"));
  EXPECT_THAT(note_words(cache), Contains("server d"));
  EXPECT_THAT(note_words(cache), Contains("server e"));
  EXPECT_THAT(note_words(cache), Contains("timeout connect 5s"));
}

struct HashType {
  std::string_view line, method, hash, avalanche;
};
TEST(Haproxy, HashTypesAsHaproxyReadsThem) {
  const HashType kTypes[] = {
      {"", "map-based", "sdbm", "false"},
      {"hash-type map-based", "map-based", "sdbm", "false"},
      {"hash-type consistent", "consistent", "sdbm", "true"},  // Alone it has the modifier.
      {"hash-type consistent sdbm", "consistent", "sdbm", "false"},
      {"hash-type consistent wt6 avalanche", "consistent", "wt6", "true"},
  };
  for (const HashType& type : kTypes) {
    const Imported imported =
        one(Format::haproxy, "backend b\n balance uri whole\n " + std::string(type.line) +
                                 "\n hash-balance-factor 0\n server s 10.0.0.1:1\n");
    const auto& placement = imported.spec.placement;
    EXPECT_EQ(placement.options.at("method"), type.method) << type.line;
    EXPECT_EQ(placement.hash, type.hash) << type.line;
    EXPECT_EQ(placement.options.at("avalanche"), type.avalanche) << type.line;
  }
}

const std::string kId(40, 'a');

TEST(RedisCluster, MastersAndTheirSlots) {
  const std::string text =
      kId + " 10.0.0.1:7000@17000,host-a myself,master - 0 0 1 connected 0-99 200 300-16383\n" + kId +
      " 10.0.0.2:7000@17000 slave " + kId + " 0 0 1 connected\n" +               //
      kId + " 10.0.0.3:7000@17000 master - 0 0 2 connected 100-199 201-299\n" +  //
      kId + " 10.0.0.4:7000@17000 master - 0 0 2 connected\n";
  const Imported cluster = one(Format::redis_cluster, text);
  EXPECT_EQ(cluster.spec.placement.algorithm, "slots");
  EXPECT_EQ(cluster.spec.placement.hash_tag, "{}");
  ASSERT_EQ(cluster.spec.members.size(), 2U);
  EXPECT_EQ(cluster.spec.members[1].id, "10.0.0.3:7000");
  ASSERT_EQ(cluster.spec.placement.slots.size(), 5U);
  EXPECT_EQ(cluster.spec.placement.slots[1], (topology::SlotRange{100, 199, "10.0.0.3:7000"}));
  EXPECT_EQ(cluster.notes.size(), 3U);  // A replica, a master without slots, cluster mode itself.
}

TEST(Guess, KnowsEachFormat) {
  EXPECT_EQ(guess(kTwoPools), Format::nutcracker);
  EXPECT_EQ(guess("--SERVER=a"), Format::libmemcached);
  EXPECT_EQ(guess("server {\n listen 80;\n}\n"), Format::nginx);
  EXPECT_EQ(guess(kHaproxy), Format::haproxy);
  EXPECT_EQ(guess(kId + " 10.0.0.1:7000@17000 master - 0 0 1 connected 0-16383"), Format::redis_cluster);
  EXPECT_EQ(guess("hello\n"), std::nullopt);
}

TEST(Ids, AreUniqueAndReadable) {
  const Imported pool = one(Format::nutcracker,
                            "p/1:\n  redis: true\n  servers:\n   - 10.0.0.1:1:1 a/b\n   - 10.0.0.1:2:1 a-b\n"
                            "   - /tmp/x.sock:1\n");
  EXPECT_EQ(pool.spec.cluster, "p-1");
  EXPECT_EQ(pool.spec.members[0].id, "a-b");
  EXPECT_EQ(pool.spec.members[1].id, "a-b-2");
  EXPECT_EQ(pool.spec.members[2].id, "unix-tmp-x.sock");
}

TEST(ToYaml, CommentsCannotBecomeYaml) {
  const Imported pool = one(
      Format::nutcracker,
      "\"p\\nmembers: []\":\n  redis: true\n  servers: [\"10.0.0.1:1:1 null\", \"10.0.0.1:2:1 'x\\\"\"]\n");
  EXPECT_EQ(pool.spec.members[0].id, "null");
  EXPECT_EQ(pool.spec.members[1].label, "'x\"");
}

}  // namespace
}  // namespace ringshift::importing
