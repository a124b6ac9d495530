// The topology on disk: what was written is read, and nothing else is.
#include "coord/topology_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "hashing/sha256.h"

namespace ringshift::coord {
namespace {

constexpr std::string_view kTopology =
    R"({"factors":{},"fence":{"epoch":3,"run_ids":{"a":"r1"},"step":9},"resize":null,"spec":{"cluster":"c","members":[{"address":"h:1","id":"a"}]}})";

class TopologyOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "topology-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string file() const { return directory_ + "/topology"; }

  std::string content() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set(std::string_view bytes) const { std::ofstream(file(), std::ios::binary) << bytes; }
  // With a checksum that is right.
  void set_body(const std::string& body) const {
    set(fmt::format("ringshift topology cache 1 {}\n{}", hashing::sha256_hex(body), body));
  }
  static std::shared_ptr<const topology::Snapshot> snapshot() {
    auto topology = topology::parse_topology(kTopology, "t");
    EXPECT_TRUE(topology) << topology.error().message;
    return *topology::Snapshot::compile(*topology, {1, 57});
  }
  std::string why_not(std::string prefix = "/ringshift/default/c/") const {
    const auto read = TopologyCache(file(), std::move(prefix)).read();
    return read ? "" : read.error().message;
  }

  std::string directory_;
};

TEST_F(TopologyOnDisk, WhatWasWrittenIsRead) {
  TopologyCache cache(file(), "/ringshift/default/c/");
  EXPECT_EQ(cache.read().error().kind, ErrorKind::not_found);
  const auto first = snapshot();
  ASSERT_TRUE(cache.write(*first, 0xdeadbeef, {{"a", "r1"}}));
  const auto read = cache.read();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->snapshot->version, first->version);
  EXPECT_EQ(read->snapshot->digest, first->digest);
  EXPECT_EQ(read->cluster_id, 0xdeadbeefU);
  EXPECT_EQ(read->processes, (Processes{{"a", "r1"}}));
  EXPECT_LT(read->age.count(), 3600);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1)
      << "nothing is left beside it";
  cache.remove();
  EXPECT_EQ(cache.read().error().kind, ErrorKind::not_found);
}

TEST_F(TopologyOnDisk, WhateverIsCutOffOrChangedIsRefused) {
  TopologyCache cache(file(), "/ringshift/default/c/");
  ASSERT_TRUE(cache.write(*snapshot(), 7, {}));
  const std::string whole = content();
  for (std::size_t i = 0; i < whole.size(); i += 11) {
    set(whole.substr(0, i));
    EXPECT_NE(why_not(), "") << "cut at " << i;
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 4);
    set(flipped);
    EXPECT_NE(why_not(), "") << "changed at " << i;
  }
  set(whole);
  EXPECT_EQ(why_not(), "");
  EXPECT_TRUE(why_not("/ringshift/default/other/").contains("another cluster"));
}

TEST_F(TopologyOnDisk, AResizeIsNeverServedFromIt) {
  TopologyCache cache(file(), "/ringshift/default/c/");
  ASSERT_TRUE(cache.write(*snapshot(), 7, {}));
  const std::string whole = content();
  std::string body = whole.substr(whole.find('\n') + 1);
  const std::string_view none = R"(\"resize\":null)";
  const std::size_t at = body.find(none);
  ASSERT_NE(at, std::string::npos);
  body.replace(
      at, none.size(),
      R"(\"resize\":{\"id\":\"4-57\",\"placement\":{},\"members\":[{\"id\":\"b\",\"address\":\"h:2\"}],)"
      R"(\"rollback\":false,\"phase\":\"prep\",\"read_order\":\"old_first\",\"done\":[],\"active\":[]})");
  set_body(body);
  EXPECT_TRUE(why_not().contains("midst of a resize")) << why_not();
  for (const char* broken :
       {"{}", "[]", "null", R"({"revision":1,"epoch":1,"processes":{},"prefix":"/ringshift/default/c/"})"}) {
    set_body(broken);
    EXPECT_NE(why_not(), "") << broken;
  }
}

}  // namespace
}  // namespace ringshift::coord
