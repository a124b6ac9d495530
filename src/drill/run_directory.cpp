#include "drill/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace ringshift::drill {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ringshift-run-";
constexpr std::string_view kUnfinishedPrefix = "ringshift-new-";  // Made, but not locked yet.
constexpr std::time_t kUnfinishedGraceSeconds = 60;
constexpr int kMaxKeptRuns = 10000;

std::string default_parent() {
  const char* from_environment = std::getenv("TMPDIR");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment : "/tmp";
}

// Ours to remove: a real directory (no link) of this user.
bool own_directory(const std::string& path, struct stat& info) {
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// Removes `path` if nobody holds its lock. The lock is kept until the files are gone, so that two sweeps
// at once do not meet in the middle.
bool remove_if_stale(const std::string& path) {
  const int fd = ::open((path + "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool stale = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  std::error_code ignored;
  if (stale) fs::remove_all(path, ignored);
  ::close(fd);
  return stale;
}

}  // namespace

int RunDirectory::sweep(const std::string& parent) {
  int removed = 0;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::string path = it->path().string();
    struct stat info{};
    if (name.starts_with(kPrefix)) {
      if (own_directory(path, info) && remove_if_stale(path)) ++removed;
    } else if (name.starts_with(kUnfinishedPrefix) && own_directory(path, info) &&
               info.st_mtime + kUnfinishedGraceSeconds < std::time(nullptr)) {
      std::error_code ignored;
      if (fs::remove_all(path, ignored) > 0) ++removed;
    }
  }
  return removed;
}

Result<RunDirectory> RunDirectory::create_temporary(std::string parent) {
  if (parent.empty()) parent = default_parent();
  sweep(parent);
  std::string unfinished = fmt::format("{}/{}XXXXXX", parent, kUnfinishedPrefix);
  if (::mkdtemp(unfinished.data()) == nullptr) {
    return fail(ErrorKind::internal,
                fmt::format("cannot make a directory in {}: {}; set TMPDIR to one that can be written",
                            parent, std::strerror(errno)));
  }
  const int fd = ::open((unfinished + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  const std::string suffix = unfinished.substr(unfinished.size() - 6);
  const std::string path = fmt::format("{}/{}{}", parent, kPrefix, suffix);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) != 0 || ::rename(unfinished.c_str(), path.c_str()) != 0) {
    const int cause = errno;
    if (fd >= 0) ::close(fd);
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    return fail(ErrorKind::internal, fmt::format("cannot set up {}: {}", path, std::strerror(cause)));
  }
  return RunDirectory(path, fd);
}

Result<RunDirectory> RunDirectory::create_kept(std::string_view parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  for (int run = 1; !error && run <= kMaxKeptRuns; ++run) {
    std::string path = fmt::format("{}/run-{}", parent, run);
    if (::mkdir(path.c_str(), 0700) == 0) return RunDirectory(fs::absolute(path).string(), -1);
    if (errno != EEXIST) error = std::error_code(errno, std::generic_category());
  }
  return fail(ErrorKind::internal,
              fmt::format("cannot make a directory for this run in '{}': {}; name another with --data",
                          parent, error ? error.message() : "too many runs there"));
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_fd_(std::exchange(other.lock_fd_, -1)) {
  other.path_.clear();
}

RunDirectory::~RunDirectory() {
  if (lock_fd_ < 0) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(lock_fd_);
}

}  // namespace ringshift::drill
