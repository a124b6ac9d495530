// A copy of a registry's file while it is in use, and a file put back in its place.
#include "store/backup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "store/database.h"
#include "store/write.h"

namespace ringshift::store {
namespace {

std::unexpected<Error> file_error(const std::string& path, std::string_view what) {
  return fail(ErrorKind::denied, fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

// On the disk, with its name.
Status sync_path(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error(path, "cannot be opened");
  const bool synced = fsync(fd) == 0;
  close(fd);
  if (!synced) return file_error(path, "cannot be written to the disk");
  return {};
}

std::string directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

// The file for its owner alone, empty.
Status make_private(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return file_error(path, "cannot be made");
  const bool owned = fchmod(fd, 0600) == 0;
  close(fd);
  if (!owned) return file_error(path, "cannot be made private");
  return {};
}

void remove_with_journal(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) unlink((path + suffix).c_str());
}

// What is at `path` goes to a name of its own. Nothing is removed: whoever restored the wrong file goes back.
Result<std::string> move_aside(const std::string& path) {
  try {
    const Database in_use(path, FileUse::backup);  // Takes the lock, and writes its journal into it.
  } catch (const Failure& failure) {
    if (failure.error.kind == ErrorKind::retryable) return std::unexpected(failure.error);
    // It is corrupt, or no registry: that is why one restores.
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string aside =
      fmt::format("{}.replaced-{}", path, std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  for (const char* suffix : {"-wal", "-journal", ""}) {
    if (rename((path + suffix).c_str(), (aside + suffix).c_str()) != 0 && errno != ENOENT) {
      return file_error(path + suffix, "cannot be moved aside");
    }
  }
  unlink((path + "-shm").c_str());
  return aside;
}

}  // namespace

Status Store::backup(const std::string& file) {
  if (const Status made = make_private(file); !made) return made;
  const Status done = guarded([&] {
    db_->statement("VACUUM INTO ?1").bind_text(1, file).run();
    Database(file, FileUse::backup).mark(FileUse::backup);
  });
  if (!done) unlink(file.c_str());
  return done;
}

Result<std::uint64_t> Store::begin_new_epoch() {
  for (const LeaseId id : leases()) {
    if (const auto done = revoke(id); !done) return std::unexpected(done.error());
  }
  return guarded([&] {
    const std::uint64_t old = cluster_id_;
    while (cluster_id_ == old) cluster_id_ = random_cluster_id();
    db_->statement("UPDATE meta SET cluster_id=?1").bind(1, static_cast<std::int64_t>(cluster_id_)).run();
    db_->mark(FileUse::registry);
    return cluster_id_;
  });
}

Result<Restored> restore(const std::string& from, const std::string& to, bool force) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(from, ignored)) {
    return fail(ErrorKind::not_found, fmt::format("{}: there is no such file to restore", from));
  }
  if (std::filesystem::file_size(from, ignored) == 0) {
    return fail(ErrorKind::invalid, fmt::format("{} is empty: it is no backup of a registry", from));
  }
  const bool exists = std::filesystem::exists(to, ignored);
  if (exists && std::filesystem::equivalent(from, to, ignored)) {
    return fail(ErrorKind::invalid, fmt::format("{} cannot be restored onto itself", from));
  }
  if (exists && !force) {
    return fail(
        ErrorKind::invalid,
        fmt::format("{} exists: name another file with --data, or say --force, which moves it aside", to));
  }
  const std::string temporary = to + ".restoring";
  remove_with_journal(temporary);
  if (const Status made = make_private(temporary); !made) return std::unexpected(made.error());
  std::error_code copied;
  std::filesystem::copy_file(from, temporary, std::filesystem::copy_options::overwrite_existing, copied);
  chmod(temporary.c_str(), 0600);  // Copying took the mode of the original along.
  if (copied) {
    remove_with_journal(temporary);
    return fail(ErrorKind::denied,
                fmt::format("{} cannot be copied to {}: {}", from, temporary, copied.message()));
  }
  Restored restored;
  {
    auto store = Store::open({temporary, 0, nullptr, true});  // Checks the file from end to end.
    Result<std::uint64_t> epoch =
        store ? (*store)->begin_new_epoch() : Result<std::uint64_t>(std::unexpected(store.error()));
    if (!epoch) {
      if (store) store->reset();
      remove_with_journal(temporary);
      return fail(epoch.error().kind, fmt::format("{} cannot be restored: {}", from, epoch.error().message));
    }
    restored.cluster_id = *epoch;
    restored.revision = (*store)->revision();
  }
  if (exists) {
    Result<std::string> aside = move_aside(to);
    if (!aside) {
      remove_with_journal(temporary);
      return std::unexpected(aside.error());
    }
    restored.moved_aside = *std::move(aside);
  }
  if (const Status synced = sync_path(temporary); !synced) return std::unexpected(synced.error());
  if (rename(temporary.c_str(), to.c_str()) != 0) return file_error(to, "cannot be put in place");
  if (const Status synced = sync_path(directory_of(to)); !synced) return std::unexpected(synced.error());
  return restored;
}

Status check_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored) || std::filesystem::file_size(path, ignored) == 0) {
    return fail(ErrorKind::invalid, fmt::format("{}: there is no database", path));
  }
  try {
    const Database whole(path, FileUse::backup);
    return {};
  } catch (Failure& failure) {
    return std::unexpected(std::move(failure.error));
  }
}

}  // namespace ringshift::store
