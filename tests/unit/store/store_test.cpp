// The store alone: revisions, history, compaction, leases on a clock we turn by hand, and files in a bad
// state.
#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "store/errors.h"

namespace ringshift::store {
namespace {

using testing::HasSubstr;

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "ringshift-store-XXXXXX";
    directory = mkdtemp(pattern.data());
    path = directory + "/registry.db";
    open();
  }
  ~StoreTest() override {
    store.reset();
    std::filesystem::remove_all(directory);
  }
  void open() {
    store.reset();
    auto opened = Store::open({path, retain, &clock});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    store = *std::move(opened);
  }
  Result<PutResult> put(const std::string& key, const std::string& value, LeaseId lease = 0) {
    return store->put({key, value, lease, false, false, false});
  }
  std::vector<KeyValue> all(Revision revision = 0) {
    RangeRequest request;
    request.key = request.range_end = std::string(1, '\0');
    request.revision = revision;
    return store->range(request).value().kvs;
  }
  std::string error_of_opening() {
    const auto opened = Store::open({path, 0, &clock});
    return opened ? "opened" : opened.error().message;
  }

  std::string directory, path;
  std::int64_t retain = 0;
  base::ManualClock clock;
  std::unique_ptr<Store> store;
};

TEST_F(StoreTest, RevisionsAndTheClusterIdSurviveAReopen) {
  EXPECT_EQ(store->revision(), 1);
  EXPECT_EQ(put("a", "1")->revision, 2);
  EXPECT_EQ(put("a", "2")->revision, 3);
  EXPECT_EQ(store->remove({"none", "", false})->revision, 3) << "a removal of nothing is no change";
  const std::uint64_t cluster = store->cluster_id();
  open();
  EXPECT_EQ(store->revision(), 3);
  EXPECT_EQ(store->cluster_id(), cluster);
  ASSERT_EQ(all().size(), 1U);
  EXPECT_EQ(all()[0].create_revision, 2);
  EXPECT_EQ(all()[0].version, 2);
  EXPECT_EQ(all(2)[0].value, "1");
}

TEST_F(StoreTest, HistoryIsWholeUntilCompaction) {
  ASSERT_TRUE(put("a", "1").has_value());
  ASSERT_TRUE(put("b", "1").has_value());
  ASSERT_TRUE(
      store->txn({{}, {DeleteRequest{"a", "", false}, PutRequest{"b", "2", 0, false, false, false}}, {}})
          .has_value());
  const auto history = store->history("a", "c", 2, 100).value();
  ASSERT_EQ(history.events.size(), 4U);
  EXPECT_TRUE(history.events[2].removed);
  EXPECT_EQ(history.events[2].kv.mod_revision, history.events[3].kv.mod_revision);
  EXPECT_EQ(history.next, 5);
  // A portion ends only between revisions.
  const auto portion = store->history("a", "c", 4, 1).value();
  EXPECT_EQ(portion.events.size(), 2U);
  EXPECT_EQ(store->history("a", "c", 2, 1).value().next, 3);

  ASSERT_TRUE(store->compact(4).has_value());
  EXPECT_EQ(store->history("a", "c", 3, 100).error().message, errors::kCompacted);
  EXPECT_EQ(store->compact(4).error().message, errors::kCompacted);
  EXPECT_EQ(store->compact(9).error().message, errors::kFutureRevision);
  open();
  EXPECT_EQ(store->compacted(), 4);
  EXPECT_EQ(all().size(), 1U);
}

TEST_F(StoreTest, OldHistoryGoesByItself) {
  retain = 100;
  open();
  for (int i = 0; i < 1200; ++i) ASSERT_TRUE(put("k", std::to_string(i)).has_value());
  ASSERT_TRUE(store->expire().has_value());
  EXPECT_EQ(store->compacted(), store->revision() - 100);
  EXPECT_EQ(all()[0].value, "1199");
}

TEST_F(StoreTest, AFailedTransactionChangesNothing) {
  const auto failed = store->txn(
      {{},
       {PutRequest{"a", "1", 0, false, false, false}, PutRequest{"b", "1", 77, false, false, false}},
       {}});
  EXPECT_EQ(failed.error().message, errors::kLeaseNotFound);
  EXPECT_TRUE(all().empty());
  EXPECT_EQ(store->revision(), 1);
  EXPECT_EQ(put("a", "1")->revision, 2);
}

TEST_F(StoreTest, TheListenerHearsOfCommittedEventsOnly) {
  std::vector<std::string> heard;
  store->set_listener([&](const std::vector<Event>& events, Revision revision) {
    for (const Event& event : events) heard.push_back(event.kv.key + "@" + std::to_string(revision));
  });
  ASSERT_TRUE(put("a", "1").has_value());
  ASSERT_FALSE(put("b", "1", 99).has_value());
  ASSERT_TRUE(store->remove({"a", "b", false}).has_value());
  EXPECT_THAT(heard, testing::ElementsAre("a@2", "a@3"));
}

TEST_F(StoreTest, LeasesRunOnTheClockAndStartAnewAfterAReopen) {
  const LeaseId id = store->grant(10, 0)->id;
  ASSERT_TRUE(put("leased", "1", id).has_value());
  clock.advance(std::chrono::seconds(9));
  EXPECT_EQ(store->time_to_live(id, true)->remaining_seconds, 1);
  EXPECT_THAT(store->time_to_live(id, true)->keys, testing::ElementsAre("leased"));
  open();  // As after a crash: nobody knows for how long we were away.
  clock.advance(std::chrono::seconds(9));
  ASSERT_TRUE(store->expire().has_value());
  EXPECT_EQ(all().size(), 1U);
  EXPECT_EQ(store->keep_alive(id)->remaining_seconds, 10);
  clock.advance(std::chrono::seconds(10));
  EXPECT_EQ(store->keep_alive(id).error().kind, ErrorKind::not_found) << "over, though not yet swept";
  ASSERT_TRUE(store->expire().has_value());
  EXPECT_TRUE(all().empty());
  EXPECT_TRUE(store->leases().empty());
  open();
  EXPECT_TRUE(store->leases().empty());
}

TEST_F(StoreTest, AFullDiskFailsWritesAndNothingElse) {
  ASSERT_TRUE(put("a", "1").has_value());
  ASSERT_TRUE(store->limit_pages_for_test(20).has_value());
  Result<PutResult> full;
  int written = 0;
  while ((full = put("k" + std::to_string(written), std::string(4000, 'x'))) && written < 1000) ++written;
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().kind, ErrorKind::overloaded);
  EXPECT_THAT(full.error().message,
              testing::AllOf(HasSubstr(path), HasSubstr("no space left"), HasSubstr("free space")));
  const Revision revision = store->revision();
  EXPECT_EQ(all().size(), static_cast<std::size_t>(written) + 1);
  ASSERT_TRUE(store->limit_pages_for_test(100000).has_value());
  EXPECT_EQ(put("after", "1")->revision, revision + 1) << "no revision was lost to the failure";
}

TEST_F(StoreTest, WritesOfAGroupAreToldWhenItEnds) {
  std::vector<std::string> told;
  store->set_listener([&](const std::vector<Event>& events, Revision revision) {
    for (const Event& event : events) told.push_back(event.kv.key + std::to_string(revision));
  });
  ASSERT_TRUE(store->begin_group().has_value());
  EXPECT_EQ(put("a", "1")->revision, 2);
  EXPECT_EQ(put("b", "1", 77).error().kind, ErrorKind::not_found) << "no such lease";
  const LeaseId lease = store->grant(10, 0)->id;
  EXPECT_EQ(put("c", "1", lease)->revision, 3) << "one that failed takes no revision";
  EXPECT_TRUE(told.empty());
  ASSERT_TRUE(store->end_group().has_value());
  EXPECT_THAT(told, testing::ElementsAre("a2", "c3"));
  open();
  EXPECT_EQ(store->revision(), 3);
  EXPECT_EQ(all().size(), 2U);
  EXPECT_THAT(store->leases(), testing::ElementsAre(lease));
}

TEST_F(StoreTest, AFullDiskUndoesAWholeGroup) {
  ASSERT_TRUE(put("before", "1").has_value());
  const LeaseId lease = store->grant(10, 0)->id;
  ASSERT_TRUE(store->limit_pages_for_test(20).has_value());
  int told = 0;
  store->set_listener([&](const std::vector<Event>&, Revision) { ++told; });
  const Revision revision = store->revision();
  ASSERT_TRUE(store->begin_group().has_value());
  ASSERT_TRUE(store->revoke(lease).has_value());
  Result<PutResult> full;
  for (int i = 0; i < 1000 && (full = put("k" + std::to_string(i), std::string(4000, 'x'))); ++i) continue;
  ASSERT_FALSE(full.has_value());
  EXPECT_FALSE(put("later", "1").has_value()) << "and nothing more of this group";
  EXPECT_FALSE(store->grant(10, 0).has_value());
  const Status ended = store->end_group();
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().kind, ErrorKind::overloaded);
  EXPECT_THAT(ended.error().message, HasSubstr("no space left"));
  EXPECT_EQ(told, 0);
  EXPECT_EQ(store->revision(), revision);
  ASSERT_EQ(all().size(), 1U);
  EXPECT_THAT(store->leases(), testing::ElementsAre(lease)) << "its revocation did not happen";
  ASSERT_TRUE(store->limit_pages_for_test(100000).has_value());
  EXPECT_EQ(put("after", "1")->revision, revision + 1);
  EXPECT_EQ(told, 1);
}

TEST_F(StoreTest, ASecondUserOfTheFileIsRefused) {
  EXPECT_THAT(error_of_opening(),
              testing::AllOf(HasSubstr(path), HasSubstr("in use by another process"), HasSubstr("--data")));
  EXPECT_TRUE(put("a", "1").has_value());
}

TEST_F(StoreTest, ACorruptFileIsRefused) {
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(put("k" + std::to_string(i), std::string(500, 'x')).has_value());
  store.reset();
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (int page = 2; page < 12; ++page) {
      file.seekp(page * 4096);
      file << std::string(4000, '\x5a');
    }
  }
  EXPECT_THAT(error_of_opening(), testing::AllOf(HasSubstr(path), HasSubstr("corrupt"), HasSubstr("backup")));
  std::ofstream(path, std::ios::trunc)
      << "this is no database, but it is longer than a header would be ................"
         "....................................................................";
  EXPECT_THAT(error_of_opening(), HasSubstr("corrupt"));
}

TEST_F(StoreTest, AnotherProgramsDatabaseIsRefused) {
  path = directory + "/other.db";
  sqlite3* other = nullptr;
  sqlite3_open(path.c_str(), &other);
  sqlite3_exec(other, "CREATE TABLE users(name)", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_THAT(error_of_opening(), HasSubstr("of another program"));
}

TEST_F(StoreTest, PlacesThatCannotBeWrittenAreRefused) {
  ASSERT_TRUE(put("a", "1").has_value());
  store.reset();
  const std::string good = path;
  path = directory;
  EXPECT_THAT(error_of_opening(), HasSubstr("is a directory"));
  path = directory + "/none/registry.db";
  EXPECT_THAT(error_of_opening(),
              testing::AllOf(HasSubstr("cannot be opened"), HasSubstr("directory must exist")));
  // As somebody who may read, but not write.
  chmod(directory.c_str(), 0555);
  chmod(good.c_str(), 0444);
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  path = good;
  EXPECT_THAT(error_of_opening(),
              testing::AllOf(HasSubstr(good), HasSubstr("cannot be written"), HasSubstr("permission")));
  path = directory + "/new.db";
  EXPECT_THAT(error_of_opening(), HasSubstr("cannot be opened"));
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  chmod(directory.c_str(), 0755);
}

}  // namespace
}  // namespace ringshift::store
