// The databases of a drill, each the same table: SQLite always; the servers with RINGSHIFT_LONG=1, where they
// are installed (a start takes seconds).
#include "drill/origin_server.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "drill/run_directory.h"

namespace ringshift::drill {
namespace {

class Database : public testing::TestWithParam<OriginKind> {
 protected:
  void SetUp() override {
    if (GetParam() != OriginKind::sqlite && std::getenv("RINGSHIFT_LONG") == nullptr)
      GTEST_SKIP() << "starts a database server; RINGSHIFT_LONG=1 runs it";
    auto directory = RunDirectory::create_temporary();
    ASSERT_TRUE(directory);
    directory_.emplace(std::move(*directory));
    auto server = OriginServer::start(GetParam(), directory_->path());
    if (!server && server.error().message.find("apt-get install") != std::string::npos)
      GTEST_SKIP() << server.error().message;
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  std::optional<RunDirectory> directory_;
  std::unique_ptr<OriginServer> server_;
};

TEST_P(Database, ReadsUpdatesAndStartsAnew) {
  for (int round = 0; round < 2; ++round) {
    const auto origin = server_->fresh(1200, [](std::uint64_t id) { return id; });
    ASSERT_TRUE(origin) << origin.error().message;
    auto session = (*origin)->session();
    ASSERT_TRUE(session) << session.error().message;
    for (const std::uint64_t id : {0U, 7U, 1199U}) {
      const auto object = session->get(id);
      ASSERT_TRUE(object) << object.error().message;
      EXPECT_EQ(object->version, 1U);
      EXPECT_EQ(object->body, object_body(id, id));
    }
    const auto updated = session->update(7);
    ASSERT_TRUE(updated) << updated.error().message;
    EXPECT_EQ(*updated, 2U);
    EXPECT_EQ(session->get(7)->version, 2U);
    EXPECT_EQ(session->get(1200).error().kind, ErrorKind::not_found);
    EXPECT_EQ(session->update(1200).error().kind, ErrorKind::not_found);
    EXPECT_EQ((*origin)->updates(), 2U);
  }
  EXPECT_NE(server_->describe().find_first_of("0123456789"), std::string::npos) << server_->describe();
}

TEST_P(Database, ThreadsUpdateWithoutLoss) {
  const auto origin = server_->fresh(10, {});
  ASSERT_TRUE(origin) << origin.error().message;
  std::vector<std::jthread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto session = (*origin)->session();
      for (int i = 0; i < 50; ++i) failed += session && session->update(3) ? 0 : 1;
    });
  }
  threads.clear();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ((*origin)->session()->get(3)->version, 201U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Database,
                         testing::Values(OriginKind::sqlite, OriginKind::postgres, OriginKind::mysql),
                         [](const auto& kind) {
                           return kind.param == OriginKind::sqlite     ? "sqlite"
                                  : kind.param == OriginKind::postgres ? "postgres"
                                                                       : "mysql";
                         });

}  // namespace
}  // namespace ringshift::drill
