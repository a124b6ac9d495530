// Files that cannot be taken over: the error names file, line and column, the value and what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.h"

namespace ringshift::importing {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Bad {
  Format format;
  std::string text, place, says;
};

constexpr Format kNut = Format::nutcracker, kLib = Format::libmemcached, kNginx = Format::nginx,
                 kHap = Format::haproxy, kRed = Format::redis_cluster;

std::string pool(const std::string& lines) { return "a:\n  redis: true\n" + lines; }
std::string upstream(const std::string& lines) { return "upstream u {\n hash $k;\n" + lines + "\n}\n"; }
std::string backend(const std::string& lines) {
  return "backend b\n balance uri\n" + lines + "\n server s 10.0.0.1:1\n";
}
std::string node(const std::string& rest) {
  return std::string(40, 'f') + " 10.0.0.1:7000@17000 " + rest + "\n";
}

const Bad kCases[] = {
    {kNut, "", "F:1:1: ", "map of pools"},
    {kNut, "a: [", "F:1:1: ", "not YAML"},
    {kNut, "a: 1\n", "F:1:1: ", "no map of directives"},
    {kNut, pool(""), "F:1:1: ", "has no server"},
    {kNut, pool("  servers:\n   - 10.0.0.1:6379\n"), "F:4:6: ", "has no port or no weight"},
    {kNut, pool("  servers:\n   - 10.0.0.1:6379:x\n"), "F:4:6: ", "no whole number as its weight"},
    {kNut, pool("  servers:\n   - 10.0.0.1:6379:0\n"), "F:4:6: ", "weight 0"},
    {kNut, pool("  servers:\n   - 10.0.0.1:70000:1\n"), "F:4:6: ", "no port from 1 to 65535"},
    {kNut, pool("  servers:\n   - 10.0.0.1:1:9000000\n"), "F:4:6: ", "not a weight"},
    {kNut, pool("  servers:\n   - h:1:1 x\n   - h:2:1 x\n"), "F:5:6: ", "name of a server before"},
    {kNut, pool("  servers:\n   - h:1:1 x\n   - h:1:1 y\n"), "F:5:6: ", "address of"},
    {kNut, pool("  servers:\n   - [1]\n"), "F:4:6: ", "no server"},
    {kNut, pool("  servers: x\n"), "F:3:12: ", "a list"},
    {kNut, pool("  distribution: random\n  servers: [\"h:1:1\"]\n"), "F:3:17: ", "random is no placement"},
    {kNut, pool("  hash: sha1\n  servers: [\"h:1:1\"]\n"), "F:3:9: ", "'sha1' is not one of"},
    {kNut, pool("  hash_tag: abc\n"), "F:3:13: ", "two characters"},
    {kNut, pool("  redis_db: 3\n"), "F:3:13: ", "database 0"},
    {kNut, pool("  redis: true\n"), "F:3:3: ", "given twice"},
    {kNut, pool("  preconect: true\n"), "F:3:3: ", "no directive of twemproxy"},
    {kNut, "a:\n  redis: yes\n", "F:2:10: ", "true or false"},
    {kNut, "a: &x {servers: [\"h:1:1\"]}\nb: *x\n", "F:1:4: ", "anchors"},
    {kNut, "a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}\n", "F:1:32: ", "nested deeper"},
    {kNut, "a: 1\n---\nb: 1\n", "F:2:1: ", "second document"},

    {kLib, "", "F:1:1: ", "has no server"},
    {kLib, "hello", "F:1:1: ", "no option"},
    {kLib, "--SERVER=a --FOO", "F:1:12: ", "no option of libmemcached"},
    {kLib, "--SERVER=a:0", "F:1:1: ", "--SERVER=host:port"},
    {kLib, "--SERVER=a/2", "F:1:1: ", "/?N"},
    {kLib, "--SERVER=a\n  --DISTRIBUTION=random", "F:2:3: ", "no placement"},
    {kLib, "--DISTRIBUTION=ketama --SERVER=a", "F:1:1: ", "consistent and modula"},
    {kLib, "--HASH=SHA1 --SERVER=a", "F:1:1: ", "fnv1a_64"},
    {kLib, "--HASH=MD5 --HASH=CRC --SERVER=a", "F:1:12: ", "twice"},
    {kLib, "--SERVER=a --DISTRIBUTION=consistent --HASH=MD5",
     "F:1:38: ", "built its ring with the hash default"},
    {kLib, "--NAMESPACE=x --SERVER=a", "F:1:1: ", "without it"},
    {kLib, "--SERVER=b --SERVER=a --SORT-HOSTS", "F:1:23: ", "order"},
    {kLib, "--SOCKET=\"/tmp/a/?2\"", "F:1:1: ", "within the quotes"},
    {kLib, "--SOCKET=\"/tmp/a", "F:1:1: ", "not closed"},
    {kLib, "--CONFIGURE-FILE=\"/x\"", "F:1:1: ", "another file"},
    {kLib, "--SERVER=a --SERVER=a", "F:1:12: ", "address of"},

    {kNginx, "", "F:1:1: ", "nothing of nginx's"},
    {kNginx, "upstream u {\n server a:1;\n}\n", "F:1:10: ", "round robin"},
    {kNginx, "upstream u {\n ip_hash;\n server a:1;\n}\n", "F:2:2: ", "by their address"},
    {kNginx, upstream(" server 10.0.0.1:1 down;"), "F:3:20: ", "is down"},
    {kNginx, upstream(" server 10.0.0.1:1 backup;"), "F:3:20: ", "backup"},
    {kNginx, upstream(" server 10.0.0.1:1 weight=0;"), "F:3:20: ", "above 0"},
    {kNginx, upstream(" server 10.0.0.1:1 weight=9000000;"), "F:3:9: ", "not a weight"},
    {kNginx, upstream(" server 10.0.0.1:1 service=x;"), "F:3:20: ", "not known"},
    {kNginx, upstream(" server 10.0.0.1:x;"), "F:3:9: ", "no port"},
    {kNginx, upstream(" server $backend:80;"), "F:3:9: ", "variable"},
    {kNginx, upstream(" include servers.conf;"), "F:3:2: ", "another file"},
    {kNginx, upstream(" balancer_by_lua_block { x }"), "F:3:2: ", "program chooses"},
    {kNginx, upstream(" server a:1"), "F:3:9: ", "not ended by ;"},
    {kNginx, upstream(" hash $x;"), "F:3:2: ", "twice"},
    {kNginx, "upstream u {\n hash $k twice;\n}", "F:2:10: ", "consistent or nothing"},
    {kNginx, "upstream u {\n hash $k;", "F:1:10: ", "not closed"},
    {kNginx, "http {\n server \"x;\n}", "F:2:9: ", "quote is not closed"},
    {kNginx, "http { } }", "F:1:10: ", "closes nothing"},
    {kNginx, "http {", "F:1:6: ", "not closed"},

    {kHap, "", "F:1:1: ", "nothing of haproxy's"},
    {kHap, "backend b\n server s 10.0.0.1:1\n", "F:1:9: ", "round robin"},
    {kHap, "backend b\n balance leastconn\n server s 10.0.0.1:1\n", "F:2:10: ", "no hash"},
    {kHap, "backend b\n balance source\n server s 10.0.0.1:1\n", "F:2:10: ", "by their address"},
    {kHap, "backend b\n balance uri len 3\n server s 10.0.0.1:1\n", "F:2:14: ", "only a part"},
    {kHap, backend(" hash-type consistent md5"), "F:3:23: ", "'md5' is not one of"},
    {kHap, backend(" hash-type ring"), "F:3:12: ", "neither"},
    {kHap, backend(" hash-type consistent sdbm x"), "F:3:28: ", "avalanche"},
    {kHap, backend(" hash-balance-factor 150"), "F:3:2: ", "set it to 0"},
    {kHap, backend(" stick on src"), "F:3:2: ", "past the hash"},
    {kHap, backend(" cookie SRV insert"), "F:3:2: ", "past the hash"},
    {kHap, backend(" server-template x 1-3 h:1"), "F:3:2: ", "past the hash"},
    {kHap, backend(" wibble"), "F:3:2: ", "not known here"},
    {kHap, backend(" server t 10.0.0.2"), "F:3:11: ", "no port"},
    {kHap, backend(" server t 10.0.0.2:+1"), "F:3:11: ", "relative"},
    {kHap, backend(" server t 10.0.0.2:2 weight 300"), "F:3:29: ", "0 to 256"},
    {kHap, backend(" server t 10.0.0.2:2 id 0"), "F:3:25: ", "id '0'"},
    {kHap, backend(" server t 10.0.0.2:2 wobble"), "F:3:22: ", "not known"},
    {kHap, backend(" server t 10.0.0.2:2 hash-key addr"), "F:3:22: ", "hash-key"},
    {kHap,
     backend(" server t 10.0.0.2:2 weight 2 disabled\n server w 10.0.0.3:3 weight 4\n server v 10.0.0.4:4 "
             "weight 4"),
     "", ""},  // The last server of backend() weighs 1: the table is the same without t.
    {kHap, "backend b\n balance uri\n server t h:1 weight 2 disabled\n server u h:2 weight 4\n",
     "F:3:2: ", "counts in HAProxy's table"},
    {kHap, backend(" server s 10.0.0.2:2"), "F:4:9: ", "defined before"},
    {kHap, backend(" server \"t 10.0.0.2:2"), "F:3:9: ", "quote"},
    {kHap, "defaults\nbackend b from x\n", "F:2:16: ", "no defaults"},

    {kRed, "", "F:1:1: ", "nothing of redis-cluster's"},
    {kRed, "a b c\n", "F:1:1: ", "fewer than the 8"},
    {kRed, node("master - 0 0 1 connected 0-16382"), "F:1:1: ", "16383-16383 belong to no node"},
    {kRed, node("master - 0 0 1 connected 0-16384"), "F:1:87: ", "no range"},
    {kRed, node("master - 0 0 1 connected 0-16383 [5->-abc]"), "F:1:95: ", "being moved"},
    {kRed, node("master,fail - 0 0 1 connected 0-16383"), "F:1:62: ", "repair"},
    {kRed, node("slave x 0 0 1 connected 0-16383"), "F:1:86: ", "no master"},
    {kRed, node("master - 0 0 1 connected 0-16383") + node("master - 0 0 1 connected 7"),
     "F:2:87: ", "slot 7"},
    {kRed, std::string(40, 'f') + " :7000@17000 myself,master - 0 0 1 connected 0-16383",
     "F:1:42: ", "no host"},
};

TEST(BadFiles, AreRefusedAtTheirPlace) {
  for (const Bad& bad : kCases) {
    const auto imported = import_as(bad.format, bad.text);
    if (bad.place.empty()) {
      EXPECT_TRUE(imported) << bad.text << "\n" << imported.error().message;
      continue;
    }
    ASSERT_FALSE(imported) << bad.text;
    EXPECT_THAT(imported.error().message, StartsWith(bad.place)) << bad.text;
    EXPECT_THAT(imported.error().message, HasSubstr(bad.says)) << bad.text;
  }
}

TEST(BadFiles, ThePoolAskedForMustBeThere) {
  const std::string text = "a: {servers: [\"h:1:1\"]}\nb: {servers: [\"h:1:1\"]}\n";
  const auto none = import_as(kNut, text, "c");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no pool 'c'"));
  const auto both = import_as(kNut, text, "", "one");
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, StartsWith("F:2:1: "));
  EXPECT_TRUE(import_as(kNut, text, "b", "one"));
}

TEST(BadFiles, HugeOnesEndSoon) {
  std::string many = "a:\n  redis: true\n  servers:\n";
  for (int i = 0; i < 17'000; ++i) many += "   - h:" + std::to_string(i + 1) + ":1\n";
  const auto imported = import_as(kNut, many);
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("17000 servers"));
  EXPECT_FALSE(import_as(kNginx, std::string(9U << 20, ' ')));
  EXPECT_FALSE(import_as(kNginx, "a" + std::string(100'000, 'a') + "${" + std::string(1U << 20, '}')));
  std::string lua = "x_by_lua_block { ";
  for (int i = 0; i < 300'000; ++i) lua += "'x' ";
  EXPECT_FALSE(import_as(kNginx, lua));
  std::string same = "a:\n  redis: true\n  servers:\n";
  for (int i = 0; i < 16'000; ++i) {
    std::string name = "x";
    for (int bit = 0; bit < 14; ++bit)
      name += (i >> bit & 1) != 0 ? "/y" : ",y";  // One id of them all: x-y-y...
    same += "   - h:" + std::to_string(i + 1) + ":1 " + name + "\n";
  }
  const auto alike = import_as(kNut, same);
  EXPECT_FALSE(alike && alike->front().spec.members[0].id == alike->front().spec.members[1].id);
  std::string lines = "backend b\n balance uri\n default-server";
  for (int i = 0; i < 180; ++i) lines += " check";
  for (int i = 0; i < 20'000; ++i) lines += "\n server s" + std::to_string(i) + " h:" + std::to_string(i + 1);
  const auto servers = import_as(kHap, lines);
  ASSERT_FALSE(servers);
  EXPECT_THAT(servers.error().message, HasSubstr("16384 servers"));
}

}  // namespace
}  // namespace ringshift::importing
