// A copy of a store in use, and what comes of putting it back.
#include "store/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "store/store.h"

namespace ringshift::store {
namespace {

using testing::HasSubstr;

class BackupTest : public testing::Test {
 protected:
  BackupTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "ringshift-backup-XXXXXX";
    directory = mkdtemp(pattern.data());
    path = directory + "/registry.db";
    copy = directory + "/copy.db";
  }
  ~BackupTest() override { std::filesystem::remove_all(directory); }
  static std::unique_ptr<Store> open(const std::string& file) {
    auto opened = Store::open({file, 0, nullptr});
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  static Result<PutResult> put(Store& store, const std::string& key, const std::string& value,
                               LeaseId lease = 0) {
    return store.put({key, value, lease, false, false, false});
  }
  static std::string value(Store& store, const std::string& key) {
    RangeRequest request;
    request.key = key;
    const auto found = store.range(request);
    return found->kvs.empty() ? "-" : found->kvs[0].value;
  }
  std::string directory, path, copy;
};

TEST_F(BackupTest, ACopyOfAStoreInUseIsWholeAndPrivate) {
  auto store = open(path);
  const LeaseId lease = store->grant(60, 0, "agent").value().id;
  ASSERT_TRUE(put(*store, "a", "1").has_value());
  ASSERT_TRUE(put(*store, "leased", "x", lease).has_value());
  const TokenRow token{std::string(32, 'h'), "n", "read", "default", "", "", 1, 0};
  ASSERT_TRUE(store->change_tokens({token}, {}, {}).has_value());
  ASSERT_TRUE(store->backup(copy).has_value());
  ASSERT_TRUE(put(*store, "a", "2").has_value()) << "the store goes on";
  struct stat about {};
  ASSERT_EQ(stat(copy.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  ASSERT_TRUE(check_file(copy).has_value());
  const auto as_it_is = Store::open({copy, 0, nullptr});
  ASSERT_FALSE(as_it_is.has_value()) << "it would go on under the cluster id of one that has gone on";
  EXPECT_THAT(as_it_is.error().message, HasSubstr("ringshift registry restore"));

  // It is in use: it cannot be replaced, even by force.
  const auto in_use = restore(copy, path, true);
  ASSERT_FALSE(in_use.has_value());
  EXPECT_THAT(in_use.error().message, HasSubstr("in use"));
  const std::uint64_t old_id = store->cluster_id();
  store.reset();
  EXPECT_THAT(restore(copy, path, false).error().message, HasSubstr("--force"));
  const auto restored = restore(copy, path, true);
  ASSERT_TRUE(restored.has_value()) << restored.error().message;
  EXPECT_NE(restored->cluster_id, old_id) << "a new epoch";
  store = open(path);
  EXPECT_EQ(store->cluster_id(), restored->cluster_id);
  EXPECT_EQ(store->revision(), restored->revision);
  EXPECT_EQ(value(*store, "a"), "1");
  EXPECT_EQ(value(*store, "leased"), "-") << "leases end: whoever lives comes again";
  EXPECT_TRUE(store->leases().empty());
  ASSERT_EQ(store->tokens()->size(), 1U);
  EXPECT_EQ(store->tokens()->at(0).name, "n");
  store.reset();
  auto aside = open(restored->moved_aside);
  EXPECT_EQ(value(*aside, "a"), "2") << "what was there is kept";
}

TEST_F(BackupTest, WhatIsNoBackupIsRefusedAndChangesNothing) {
  { ASSERT_TRUE(put(*open(path), "a", "1").has_value()); }
  ASSERT_TRUE(open(path)->backup(copy).has_value());
  EXPECT_EQ(restore(directory + "/none", path, true).error().kind, ErrorKind::not_found);
  std::ofstream(directory + "/empty").close();
  EXPECT_THAT(restore(directory + "/empty", path, true).error().message, HasSubstr("empty"));
  std::ofstream(directory + "/text") << "this is no database, whatever its name";
  EXPECT_FALSE(restore(directory + "/text", path, true).has_value());
  EXPECT_FALSE(restore(path, path, true).has_value());
  // Cut in the middle, as by a full disk.
  std::filesystem::resize_file(copy, std::filesystem::file_size(copy) / 2);
  EXPECT_FALSE(check_file(copy).has_value());
  EXPECT_FALSE(restore(copy, path, true).has_value());
  EXPECT_EQ(value(*open(path), "a"), "1");
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr("restoring")));
  }
}

TEST_F(BackupTest, ACorruptFileIsReplacedByForce) {
  ASSERT_TRUE(put(*open(path), "a", "1").has_value());
  ASSERT_TRUE(open(path)->backup(copy).has_value());
  std::ofstream(path, std::ios::trunc) << std::string(8192, 'x');
  EXPECT_FALSE(Store::open({path, 0, nullptr}).has_value());
  ASSERT_TRUE(restore(copy, path, true).has_value());
  EXPECT_EQ(value(*open(path), "a"), "1");
}

TEST_F(BackupTest, WhatAKilledRegistryLeftBesideItsFileIsRestoredToo) {
  const auto running = open(path);
  ASSERT_TRUE(put(*running, "a", "1").has_value());
  const std::string killed = directory + "/killed.db";
  std::filesystem::copy_file(path, killed);
  EXPECT_FALSE(restore(killed, copy, false).has_value()) << "all that was written is in its -wal";
  EXPECT_FALSE(std::filesystem::exists(copy));
  std::filesystem::copy_file(path + "-wal", killed + "-wal");
  ASSERT_TRUE(restore(killed, copy, false).has_value());
  EXPECT_EQ(value(*open(copy), "a"), "1");
  EXPECT_TRUE(std::filesystem::exists(killed + "-wal")) << "what it is made from is not touched";
}

TEST_F(BackupTest, NothingButAFileIsReplaced) {
  ASSERT_TRUE(put(*open(path), "a", "1").has_value());
  ASSERT_TRUE(open(path)->backup(copy).has_value());
  const std::string inside = directory + "/inside";
  std::filesystem::create_directory(inside);
  EXPECT_THAT(restore(copy, inside, true).error().message, HasSubstr("is no file"));
  EXPECT_TRUE(std::filesystem::is_directory(inside));

  // A backup's place: free, empty, or an earlier backup's; never a registry's.
  std::ofstream(directory + "/empty").close();
  for (const std::string& good : {directory + "/none", directory + "/empty", copy})
    EXPECT_TRUE(check_place(good).has_value()) << good;
  std::ofstream(directory + "/text")
      << "a text that is longer than the header of a database would be, by a little";
  for (const std::string& bad : {inside, path, directory + "/text", std::string("/dev/null")})
    EXPECT_FALSE(check_place(bad).has_value()) << bad;
}

TEST_F(BackupTest, OthersCannotReadTheFile) {
  const auto store = open(path);
  for (const char* suffix : {"", "-wal"}) {
    struct stat about {};
    ASSERT_EQ(stat((path + suffix).c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600U) << suffix;
  }
}

TEST_F(BackupTest, LeaseOwnersAndTheAuditSurviveAReopen) {
  auto store = open(path);
  const LeaseId lease = store->grant(60, 0, "agent").value().id;
  const Actor by{"ops", "127.0.0.1", "put", [](std::string_view key) { return key != "quiet"; }};
  ASSERT_TRUE(store->put({"a", "1", 0, false, false, false}, &by).has_value());
  ASSERT_TRUE(store->put({"quiet", "1", 0, false, false, false}, &by).has_value());
  EXPECT_FALSE(store->put({"a", "2", 77, false, false, false}, &by).has_value()) << "no such lease";
  store = open(directory + "/other.db");
  store = open(path);
  EXPECT_EQ(store->lease_owner(lease), "agent");
  EXPECT_EQ(store->lease_owner(12345), std::nullopt);
  auto rows = store->audit(0, 0, 100).value();
  ASSERT_EQ(rows.size(), 1U) << "what failed, and what nobody asks for, leaves no row";
  EXPECT_EQ(rows[0].key, "a");
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store->append_audit({}).has_value());
  ASSERT_TRUE(store->trim_audit(4, 0).has_value());
  rows = store->audit(0, 0, 100).value();
  EXPECT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows.back().id, 11) << "the youngest stay";
  ASSERT_TRUE(store->trim_audit(4, INT64_MAX).has_value());
  EXPECT_TRUE(store->audit(0, 0, 100)->empty()) << "all are too old";
}

}  // namespace
}  // namespace ringshift::store
