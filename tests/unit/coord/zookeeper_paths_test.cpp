#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coord/zookeeper/nodes.h"
#include "coord/zookeeper/paths.h"

namespace ringshift::coord::zookeeper {
namespace {

TEST(ZooKeeperPaths, Urls) {
  const auto three = parse_ensemble("zk://a:1,b,[::1]:3/x/y/").value();
  EXPECT_THAT(three.endpoints, testing::ElementsAre("a:1", "b:2181", "[::1]:3"));
  EXPECT_EQ(three.chroot, "/x/y");
  EXPECT_THAT(parse_ensemble("zk://a:1,zk://b:2/x").value().endpoints, testing::ElementsAre("a:1", "b:2"));
  EXPECT_EQ(parse_ensemble("zk://a").value().chroot, "");
  for (const char* bad : {"zk://", "zk:///x", "zk://a:0x1", "zk://a:99999", "zk://a/x//y", "zk://a/../b",
                          "zk://a/zookeeper", "zk://a/x,b/x", "zk://unix:/x"}) {
    const auto refused = parse_ensemble(bad);
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  }
  const auto secret = parse_ensemble("zk://me:secret@a:1");
  ASSERT_FALSE(secret.has_value());
  EXPECT_THAT(secret.error().message, testing::Not(testing::HasSubstr("secret")));
}

TEST(ZooKeeperPaths, KeysAndBack) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"/ringshift/default/cache/spec", "/c/ringshift/default/cache/spec"},
      {"/a b/c", "/c/a b/c"},
      {"/100%", "/c/100%25"},
      {"/.", "/c/%2e"},
      {"/a/../b", "/c/a/%2e%2e/b"},
      {"/a//b/", "/c/a/%-/b/%-"},
      {"/zookeeper/a", "/c/%7aookeeper/a"},
      {"/a/zookeeper", "/c/a/zookeeper"},
      {std::string("/\0\xff", 3), "/c/%00%ff"}};
  for (const auto& [key, path] : table) {
    EXPECT_EQ(path_of("/c", key).value(), path);
    EXPECT_EQ(key_of("/c", path), key);
  }
  EXPECT_EQ(path_of("", "none").error().kind, ErrorKind::invalid);
  EXPECT_EQ(key_of("/c", "/other/a"), std::nullopt);
  EXPECT_EQ(key_of("/c", "/c"), std::nullopt);
  EXPECT_EQ(key_of("", "/a%zz"), std::nullopt);
}

TEST(ZooKeeperPaths, PlacesOfPrefixes) {
  const auto place = [](std::string_view chroot, std::string_view prefix) {
    const auto got = place_of(chroot, prefix).value();
    return got.directory + " " + got.stem;
  };
  EXPECT_EQ(place("/c", "/a/b/"), "/c/a/b ");
  EXPECT_EQ(place("/c", "/a/b"), "/c/a b");
  EXPECT_EQ(place("/c", "/a"), "/c a");
  EXPECT_EQ(place("", "/a"), "/ a");
  EXPECT_EQ(place("", ""), "/ ");
  EXPECT_EQ(parent_of("/a/b"), "/a");
  EXPECT_EQ(parent_of("/a"), "/");
  EXPECT_EQ(child_of("/", "a"), "/a");
  EXPECT_EQ(child_of("/a", "b"), "/a/b");
}

TEST(ZooKeeperIdentity, AnEnsembleBuiltAnewOrFallenBackIsAnother) {
  Identity identity;
  Stat root;
  root.czxid = 3;
  root.ctime = 1000;
  Clock::time_point now{};
  const auto look = [&](std::int64_t zxid, std::int64_t before) {
    return identity.seen_after_sync(root, zxid, before, now);
  };
  const std::uint64_t first = look(10, identity.newest()).value();
  EXPECT_NE(first, 0U);
  identity.saw(first, 20);
  EXPECT_EQ(look(20, identity.newest()), first);
  // Read before another thread saw 30: no sign of anything.
  const std::int64_t before = identity.newest();
  identity.saw(first, 30);
  EXPECT_EQ(look(25, before), first);
  // Asked after we saw 30, it knows only 12: a deposed leader for a while, another one knows better.
  EXPECT_EQ(look(12, identity.newest()).error().kind, ErrorKind::retryable);
  now += Identity::kBehindMax;
  EXPECT_EQ(look(31, identity.newest()), first);
  EXPECT_EQ(look(12, identity.newest()).error().kind, ErrorKind::retryable);
  now += Identity::kBehindMax / 2;
  EXPECT_EQ(look(13, identity.newest()).error().kind, ErrorKind::retryable);
  // For longer: restored from a backup.
  now += Identity::kBehindMax / 2;
  const std::uint64_t second = look(13, identity.newest()).value();
  EXPECT_NE(second, first);
  EXPECT_EQ(look(40, identity.newest()), second);
  root.ctime = 2000;
  const std::uint64_t third = look(5, identity.newest()).value();
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
  EXPECT_EQ(look(6, identity.newest()), third);
}

}  // namespace
}  // namespace ringshift::coord::zookeeper
