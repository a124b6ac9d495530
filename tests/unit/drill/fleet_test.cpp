// Processes and directories: they start, stop, and die with whoever started them.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "drill/client.h"
#include "drill/redis_fleet.h"
#include "drill/run_directory.h"

namespace ringshift::drill {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

bool gone_within(pid_t pid, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (::kill(pid, 0) == 0 || errno != ESRCH) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

// Dead, if perhaps not reaped yet: a zombie has no program any more.
bool dead_within(pid_t pid, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const std::string program = "/proc/" + std::to_string(pid) + "/exe";
  for (;;) {
    std::error_code error;
    const fs::path target = fs::read_symlink(program, error);
    if (error || target.empty()) return true;
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
}

TEST(RedisFleet, StartsAnswersAndStops) {
  const auto directory = RunDirectory::create_temporary();
  ASSERT_TRUE(directory);
  RedisFleet fleet({.directory = directory->path()});
  const auto a = fleet.add();
  ASSERT_TRUE(a) << a.error().message;
  const auto b = fleet.add();
  ASSERT_TRUE(b) << b.error().message;
  EXPECT_NE(a->port, b->port);
  EXPECT_FALSE(port_is_free(a->port));
  auto client = Client::connect(a->address, 1s);
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ(client->call({"SET", "k", "v"})->text, "OK");
  EXPECT_EQ(client->call({"CONFIG", "GET", "save"})->items.at(1).text, "");
  fleet.stop();
  EXPECT_TRUE(gone_within(a->pid, 0ms));
  EXPECT_TRUE(port_is_free(a->port));
  EXPECT_FALSE(Client::connect(a->address, 1s));
}

TEST(RedisFleet, MissingProgramNamesTheFix) {
  RedisFleet fleet({.directory = "/tmp", .program = "redis-server-that-is-not-there"});
  const auto node = fleet.add();
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().kind, ErrorKind::not_found);
  EXPECT_NE(node.error().message.find("scripts/setup"), std::string::npos) << node.error().message;
}

TEST(RedisFleet, AServerThatCannotStartIsReported) {
  RedisFleet fleet({.directory = "/nowhere/at-all"});
  const auto node = fleet.add();
  ASSERT_FALSE(node);
  EXPECT_NE(node.error().message.find("ended at once"), std::string::npos) << node.error().message;
}

TEST(Client, NoListenerAndBadAddress) {
  const auto refused = Client::connect("127.0.0.1:" + std::to_string(free_port()), 500ms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::retryable);
  EXPECT_EQ(Client::connect("nonsense", 500ms).error().kind, ErrorKind::invalid);
}

// Everything of a run that is killed with SIGKILL goes: its servers at once, its directory with the next run.
TEST(RunDirectory, KillLeavesNothing) {
  const auto parent = RunDirectory::create_temporary();
  ASSERT_TRUE(parent);
  struct Report {
    pid_t redis;
    char path[200];
  };
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto directory = RunDirectory::create_temporary(parent->path());
    RedisFleet fleet({.directory = directory->path()});
    const auto node = fleet.add();
    Report report{node ? node->pid : -1, {}};
    directory->path().copy(report.path, sizeof report.path - 1);
    if (::write(ends[1], &report, sizeof report) != static_cast<ssize_t>(sizeof report)) ::_exit(1);
    for (;;) ::pause();
  }
  Report report{};
  ASSERT_EQ(::read(ends[0], &report, sizeof report), static_cast<ssize_t>(sizeof report));
  ASSERT_GT(report.redis, 0);
  EXPECT_EQ(RunDirectory::sweep(parent->path()), 0) << "a live run was swept";
  ASSERT_TRUE(fs::exists(report.path));
  ASSERT_EQ(::kill(report.redis, 0), 0);

  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_TRUE(dead_within(report.redis, 2s)) << "redis-server outlived its parent";

  const auto next = RunDirectory::create_temporary(parent->path());
  ASSERT_TRUE(next);
  EXPECT_FALSE(fs::exists(report.path)) << "the killed run's directory is still there";
  EXPECT_TRUE(fs::exists(next->path()));
}

TEST(RunDirectory, RemovedWithItsOwnerUnlessKept) {
  std::string path;
  {
    const auto directory = RunDirectory::create_temporary();
    ASSERT_TRUE(directory);
    path = directory->path();
    EXPECT_TRUE(fs::exists(path));
    const auto first = RunDirectory::create_kept(path + "/data");
    const auto second = RunDirectory::create_kept(path + "/data");
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(second->path().ends_with("/data/run-2")) << second->path();
    EXPECT_TRUE(first->kept());
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(RunDirectory::create_kept("/proc/nowhere"));
  EXPECT_FALSE(RunDirectory::create_temporary("/nowhere"));
}

TEST(RunDirectory, SweepLeavesStrangersAlone) {
  const auto parent = RunDirectory::create_temporary();
  ASSERT_TRUE(parent);
  const std::string without_lock = parent->path() + "/ringshift-run-AAAAAA";  // No run of ours looks so.
  const std::string target = parent->path() + "/precious";
  fs::create_directory(without_lock);
  fs::create_directory(target);
  fs::create_directory_symlink(target, parent->path() + "/ringshift-run-BBBBBB");
  EXPECT_EQ(RunDirectory::sweep(parent->path()), 0);
  EXPECT_TRUE(fs::exists(without_lock));
  EXPECT_TRUE(fs::exists(target));
}

}  // namespace
}  // namespace ringshift::drill
