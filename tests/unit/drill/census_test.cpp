#include "drill/census.h"

#include <gtest/gtest.h>

#include "drill/client.h"
#include "drill/redis_fleet.h"
#include "drill/run_directory.h"
#include "ringshift/diff.h"
#include "ringshift/snapshot.h"

namespace ringshift::drill {
namespace {

using namespace std::chrono_literals;

topology::Spec spec_of(std::span<const RedisNode> nodes) {
  topology::Spec spec;
  spec.cluster = "test";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    spec.members.push_back({.id = "cache-" + std::to_string(i + 1),
                            .address = nodes[i].address,
                            .weight = 1,
                            .zone = "",
                            .host = "",
                            .label = ""});
  }
  return spec;
}

// Real keys on real nodes, put where `spec` wants them.
void place(const topology::Spec& spec, int keys) {
  const auto snapshot =
      topology::Snapshot::compile({.spec = spec, .factors = {}, .fence = {}, .resize = {}}, {});
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  std::vector<Client> clients;
  for (const auto& member : spec.members) {
    auto client = Client::connect(member.address, 1s);
    ASSERT_TRUE(client);
    clients.push_back(std::move(*client));
  }
  for (int i = 0; i < keys; ++i) {
    const std::string key = "key:" + std::to_string(i);
    const topology::MemberIndex owner = (*snapshot)->owner_before(key);
    ASSERT_TRUE(clients[owner].call({"SET", key, "v"}));
  }
  for (Client& client : clients) ASSERT_TRUE(client.call({"SET", "rs:stamp", "ours"}));
}

TEST(Census, CountsOnRealNodesWhatTheDiffPredicts) {
  const auto directory = RunDirectory::create_temporary();
  RedisFleet fleet({.directory = directory->path()});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(fleet.add());
  const topology::Spec four = spec_of(fleet.nodes().first(4));
  const topology::Spec five = spec_of(fleet.nodes());
  constexpr int kKeys = 20000;
  place(four, kKeys);

  const auto census = take_census(four, five, PlacedBy::from);
  ASSERT_TRUE(census) << census.error().message;
  EXPECT_EQ(census->keys_total, kKeys);
  EXPECT_EQ(census->misplaced, 0U);
  EXPECT_EQ(census->by_member.at("cache-5"), 0U);
  const auto diff = topology::diff(four, five);
  ASSERT_TRUE(diff);
  const double share = static_cast<double>(census->keys_minimum) / kKeys;
  EXPECT_NEAR(share, diff->moved_share, 0.012) << "four standard errors";

  // By the target, exactly the keys that have to move lie in the wrong place.
  const auto by_target = take_census(four, five, PlacedBy::to);
  ASSERT_TRUE(by_target);
  EXPECT_EQ(by_target->misplaced, census->keys_minimum);
}

TEST(Census, ADeadMemberIsNamed) {
  topology::Spec spec;
  spec.cluster = "test";
  spec.members.push_back({.id = "gone-1",
                          .address = "127.0.0.1:" + std::to_string(free_port()),
                          .weight = 1,
                          .zone = "",
                          .host = "",
                          .label = ""});
  const auto census = take_census(spec, spec, PlacedBy::from);
  ASSERT_FALSE(census);
  EXPECT_NE(census.error().message.find("gone-1"), std::string::npos) << census.error().message;
}

}  // namespace
}  // namespace ringshift::drill
