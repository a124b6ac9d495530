#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/encoding.h"
#include "coord/zookeeper/wire.h"

namespace ringshift::coord::zookeeper {
namespace {

std::string bytes(std::string_view hex) {
  std::string digits;
  for (const char c : hex) {
    if (c != ' ') digits.push_back(c);
  }
  return base::from_hex(digits).value();
}

constexpr std::string_view
    kStat =  // czxid 7, mzxid 9, ctime, mtime, versions 2 3 4, owner 5, length 6, 1 child
    "0000000000000007 0000000000000009 000000000000000a 000000000000000b 00000002 00000003 00000004 "
    "0000000000000005 00000006 00000001 0000000000000008";

TEST(ZooKeeperWire, Requests) {
  EXPECT_EQ(connect_request(5000, 0x102, std::string(16, '\x7')),
            bytes("00000000 0000000000000000 00001388 0000000000000102 00000010 "
                  "07070707070707070707070707070707 00"));
  EXPECT_EQ(ping_request(), bytes("fffffffe 0000000b"));
  EXPECT_EQ(close_request(), bytes("00000000 fffffff5"));
  EXPECT_EQ(auth_request("digest", "u:p"),
            bytes("fffffffc 00000064 00000000 00000006 646967657374 00000003 753a70"));
  EXPECT_EQ(get_data_request("/a"), bytes("00000000 00000004 00000002 2f61 00"));
  EXPECT_EQ(get_children_request("/a"), bytes("00000000 0000000c 00000002 2f61 00"));
  EXPECT_EQ(sync_request("/a"), bytes("00000000 00000009 00000002 2f61"));
  EXPECT_EQ(add_watch_request("/a", true), bytes("00000000 0000006a 00000002 2f61 00000001"));
  // No data is not empty data.
  EXPECT_EQ(set_data_request("/a", std::nullopt, -1),
            bytes("00000000 00000005 00000002 2f61 ffffffff ffffffff"));
  EXPECT_EQ(set_data_request("/a", "", 3), bytes("00000000 00000005 00000002 2f61 00000000 00000003"));
  EXPECT_EQ(
      create_request("/a", "v", Access::world, true),
      bytes("00000000 0000000f 00000002 2f61 00000001 76 00000001 0000001f 00000005 776f726c64 00000006 "
            "616e796f6e65 00000001"));
  std::string request = get_data_request("/a");
  set_xid(request, 0x01020304);
  EXPECT_EQ(request, bytes("01020304 00000004 00000002 2f61 00"));
}

TEST(ZooKeeperWire, MultiRequest) {
  Multi multi;
  EXPECT_TRUE(multi.empty());
  multi.check("/a", 2);
  multi.remove("/b", 3);
  EXPECT_EQ(multi.request(), bytes("00000000 0000000e 0000000d 00 ffffffff 00000002 2f61 00000002 "
                                   "00000002 00 ffffffff 00000002 2f62 00000003 ffffffff 01 ffffffff"));
}

TEST(ZooKeeperWire, Replies) {
  const auto connected = read_connected(bytes("00000000 00002710 0000000000000102 00000002 7071 00"));
  ASSERT_TRUE(connected.has_value());
  EXPECT_EQ(connected->timeout_ms, 10000);
  EXPECT_EQ(connected->session, 0x102);
  EXPECT_EQ(connected->password, "pq");
  const std::string packet = bytes("00000005 0000000100000002 ffffff9b 00");
  std::string_view rest = packet;
  const auto header = read_header(rest);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->xid, 5);
  EXPECT_EQ(header->zxid, 0x100000002);
  EXPECT_EQ(header->code, Code::no_node);
  EXPECT_EQ(rest.size(), 1U);
  const auto node = read_node(bytes("00000001 76" + std::string(kStat)));
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->data, "v");
  EXPECT_EQ(node->stat.czxid, 7);
  EXPECT_EQ(node->stat.mzxid, 9);
  EXPECT_EQ(node->stat.version, 2);
  EXPECT_EQ(node->stat.ephemeral_owner, 5);
  EXPECT_EQ(node->stat.children, 1);
  EXPECT_EQ(node->stat.pzxid, 8);
  EXPECT_EQ(read_node(bytes("ffffffff" + std::string(kStat)))->data, std::nullopt);
  EXPECT_EQ(read_node(bytes("00000000" + std::string(kStat)))->data, "");
  EXPECT_THAT(read_children(bytes("00000002 00000001 61 00000002 6263" + std::string(kStat))).value(),
              testing::ElementsAre("a", "bc"));
  const auto notification = read_notification(bytes("00000003 00000003 00000002 2f61"));
  ASSERT_TRUE(notification.has_value());
  EXPECT_EQ(notification->type, 3);
  EXPECT_EQ(notification->path, "/a");
}

TEST(ZooKeeperWire, MultiAnswers) {
  const std::string done = "0000000d 00 00000000 0000000f 00 00000000 00000002 2f61" + std::string(kStat) +
                           "00000002 00 00000000 ffffffff 01 ffffffff";
  const auto good = read_multi(bytes(done));
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->code, Code::ok);
  EXPECT_EQ(good->last_stat->mzxid, 9);
  // The second of three failed: the first says 0, the third that it was not tried.
  const auto failed = read_multi(
      bytes("ffffffff 00 00000000 00000000 ffffffff 00 ffffff99 ffffff99 ffffffff 00 fffffffe fffffffe "
            "ffffffff 01 ffffffff"));
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->code, Code::bad_version);
  EXPECT_EQ(failed->failed, 1U);
}

TEST(ZooKeeperWire, WhatIsCutShortOrClaimsTooMuchIsAnError) {
  const std::string whole = bytes("00000001 76" + std::string(kStat));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_node(std::string_view(whole).substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(read_node(bytes("7fffffff 76" + std::string(kStat))).has_value());
  EXPECT_FALSE(read_node(bytes("80000000 76" + std::string(kStat))).has_value());
  EXPECT_FALSE(read_children(bytes("7fffffff 00000001 61")).has_value());
  EXPECT_FALSE(read_multi(bytes("00000063 00 00000000")).has_value());
  // 3.8 answers a create2 in a multi as a create.
  EXPECT_EQ(read_multi(bytes("00000001 00 00000000 00000002 2f61 ffffffff 01 ffffffff")).value().code,
            Code::ok);
  EXPECT_FALSE(read_multi("").has_value());
  EXPECT_EQ(read_connected("HTTP/1.1 400").error().kind, ErrorKind::internal);
}

}  // namespace
}  // namespace ringshift::coord::zookeeper
