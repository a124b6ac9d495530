#include "drill/origin.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "drill/run_directory.h"

namespace ringshift::drill {
namespace {

TEST(Origin, ReadsUpdatesAndCounts) {
  const auto directory = RunDirectory::create_temporary();
  ASSERT_TRUE(directory);
  auto origin = Origin::create(directory->path() + "/origin.db", 1000);
  ASSERT_TRUE(origin) << origin.error().message;
  auto session = (*origin)->session();
  ASSERT_TRUE(session) << session.error().message;
  const auto first = session->get(7);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->version, 1U);
  EXPECT_GE(first->body.size(), 100U);
  EXPECT_LE(first->body.size(), 200U);
  EXPECT_EQ(session->update(7), 2U);
  EXPECT_EQ(session->get(7)->version, 2U);
  EXPECT_EQ(session->get(7)->body, first->body);
  EXPECT_EQ(session->get(1000).error().kind, ErrorKind::not_found);
  EXPECT_EQ(session->update(1000).error().kind, ErrorKind::not_found);
  EXPECT_EQ((*origin)->reads(), 4U);
  EXPECT_EQ((*origin)->updates(), 2U);
}

TEST(Origin, ThreadsUpdateWithoutLoss) {
  const auto directory = RunDirectory::create_temporary();
  ASSERT_TRUE(directory);
  auto origin = Origin::create(directory->path() + "/origin.db", 10);
  ASSERT_TRUE(origin) << origin.error().message;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto session = (*origin)->session();
      ASSERT_TRUE(session);
      for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(session->update(3));
        ASSERT_TRUE(session->get(3));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ((*origin)->session()->get(3)->version, 801U);
}

TEST(Origin, ErrorNamesTheFile) {
  const auto origin = Origin::create("/nowhere/origin.db", 1);
  ASSERT_FALSE(origin);
  EXPECT_NE(origin.error().message.find("/nowhere/origin.db"), std::string::npos) << origin.error().message;
}

}  // namespace
}  // namespace ringshift::drill
