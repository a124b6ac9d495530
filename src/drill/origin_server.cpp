#include "drill/origin_server.h"

#include <fmt/format.h>
#include <glob.h>
#include <pwd.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "drill/origin_server_parts.h"

namespace ringshift::drill {
namespace {

constexpr std::size_t kLongestSocketDirectory = 85;  // A socket's path has at most 107 bytes.

class SqliteServer final : public OriginServer {
 public:
  explicit SqliteServer(std::string directory) : directory_(std::move(directory)) {}

  Result<std::unique_ptr<Origin>> fresh(std::uint64_t objects, const BodyBytes& bytes) override {
    std::error_code ignored;
    for (const char* suffix : {"", "-wal", "-shm"})
      std::filesystem::remove(fmt::format("{}/origin-{}.db{}", directory_, made_, suffix), ignored);
    return Origin::create(fmt::format("{}/origin-{}.db", directory_, ++made_), objects, bytes);
  }
  std::string describe() const override { return fmt::format("SQLite {}", sqlite3_libversion()); }

 private:
  const std::string directory_;
  unsigned made_ = 0;
};

}  // namespace

Result<ServerHome> make_server_home(const std::string& directory, const std::string& name, const char* user) {
  ServerHome home;
  home.path = directory + "/" + name;
  home.spawning.log = home.path + "/log";
  const auto failed = [&](const char* what) {
    return fail(ErrorKind::internal, fmt::format("{}: {}: {}", home.path, what, std::strerror(errno)));
  };
  if (home.path.size() > kLongestSocketDirectory) {
    return fail(
        ErrorKind::invalid,
        fmt::format("{} is too long for the path of a socket: set TMPDIR to a shorter one", home.path));
  }
  if (::mkdir(home.path.c_str(), 0700) != 0) return failed("cannot be made");
  if (::geteuid() != 0) return home;
  const passwd* entry = ::getpwnam(user);
  if (entry == nullptr) entry = ::getpwnam("nobody");
  if (entry == nullptr)
    return fail(ErrorKind::internal,
                fmt::format("there is no user {} and none called nobody to run {} as", user, name));
  home.spawning.user = {entry->pw_uid, entry->pw_gid};
  if (::chown(home.path.c_str(), entry->pw_uid, entry->pw_gid) != 0) return failed("cannot be given away");
  // So that the other user gets through; names in it cannot be listed.
  if (::chmod(directory.c_str(), 0711) != 0) return failed("its parent cannot be opened");
  return home;
}

std::string find_program(const std::string& name, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    glob_t found{};
    std::string last;
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0)
      last = found.gl_pathv[found.gl_pathc - 1];
    ::globfree(&found);
    if (!last.empty()) return last;
  }
  return name;
}

Result<std::unique_ptr<OriginServer>> OriginServer::start(OriginKind kind, std::string directory) {
  switch (kind) {
    case OriginKind::postgres:
      return start_postgres(directory);
    case OriginKind::mysql:
      return start_mariadb(directory);
    case OriginKind::sqlite:
      break;
  }
  return std::make_unique<SqliteServer>(std::move(directory));
}

}  // namespace ringshift::drill
