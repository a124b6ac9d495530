// kill -9 in the middle of writes: what was acknowledged is there, what was not is there or not, and the
// revisions go on without a gap or a repeat.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "coord/coordinator.h"
#include "tests/contract/registry_process.h"

namespace ringshift::test {
namespace {

using namespace std::chrono_literals;

TEST(RegistryCrash, NoAcknowledgedWriteIsLost) {
  RegistryProcess server(Kind::ours);
  const auto coordinator = coord::connect({{server.url()}}).value();
  const std::uint64_t cluster = coordinator->list("/").value().cluster_id;
  std::vector<coord::Revision> acknowledged;  // Index: the key's number.
  for (int round = 0; round < 5; ++round) {
    std::thread writer([&] {
      for (;;) {
        const auto written = coordinator->put("/k/" + std::to_string(acknowledged.size()), "x");
        if (!written) return;
        acknowledged.push_back(*written);
      }
    });
    std::this_thread::sleep_for(150ms + round * 37ms);
    server.kill9();
    writer.join();
    server.start();
    const coord::Range found = coordinator->list("/k/").value();
    EXPECT_EQ(found.cluster_id, cluster);
    std::set<coord::Revision> revisions;
    for (const coord::KeyValue& kv : found.kvs) EXPECT_TRUE(revisions.insert(kv.mod_revision).second);
    for (std::size_t i = 0; i < acknowledged.size(); ++i) {
      EXPECT_TRUE(revisions.contains(acknowledged[i])) << "key " << i << " of " << acknowledged.size();
    }
    ASSERT_LE(found.kvs.size(), acknowledged.size() + 1) << "more keys than were ever sent";
    if (found.kvs.size() == acknowledged.size() + 1)
      acknowledged.push_back(found.revision);  // Sent, unanswered.
  }
  EXPECT_GT(acknowledged.size(), 50U);
}

}  // namespace
}  // namespace ringshift::test
