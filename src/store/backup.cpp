// A copy of a registry's file while it is in use, and a file put back in its place.
#include "store/backup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "store/database.h"
#include "store/write.h"

namespace ringshift::store {
namespace {

std::unexpected<Error> file_error(const std::string& path, std::string_view what) {
  return fail(ErrorKind::denied, fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int fd;
};

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

// Who holds one of SQLite's locks on the file: a registry that runs. 0: nobody.
pid_t holder_of(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0x40000000;  // Where SQLite has its lock bytes, from the "pending byte" on.
  lock.l_len = 512;
  return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

// All of `in` to the end of `out`.
Status copy_bytes(int in, const std::string& from, int out, const std::string& to) {
  std::array<char, 1 << 16> piece;
  for (;;) {
    const ssize_t got = read(in, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(from, "cannot be read");
    if (got == 0) return {};
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote = write(out, piece.data() + done, static_cast<std::size_t>(got - done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return file_error(to, "cannot be written");
      done += wrote;
    }
  }
}

// A file for its owner alone, as `from` is now. With `of_nobody` no registry may run on that.
Status copy_file(const std::string& from, const std::string& to, bool of_nobody) {
  const Descriptor in(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.fd < 0) return file_error(from, "cannot be read");
  if (const pid_t holder = of_nobody ? holder_of(in.fd) : 0; holder != 0) {
    return fail(
        ErrorKind::retryable,
        fmt::format("{} is in use by process {}, a registry that runs: 'ringshift registry backup' copies "
                    "that; or stop it first",
                    from, holder));
  }
  if (const Status made = make_private(to); !made) return made;
  const Descriptor out(open(to.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (out.fd < 0) return file_error(to, "cannot be written");
  return copy_bytes(in.fd, from, out.fd, to);
}

// The database, and what was written to it and lies beside it still: a registry that was killed has its last
// writes in FILE-wal.
Status copy_database(const std::string& from, const std::string& to) {
  if (const Status copied = copy_file(from, to, true); !copied) return copied;
  std::error_code ignored;
  if (!std::filesystem::exists(from + "-wal", ignored)) return {};
  return copy_file(from + "-wal", to + "-wal", false);
}

// Root restores what another user's registry is to open: the owner is that of what is there, or of the
// directory.
void give_to_owner(const std::string& file, const std::string& to) {
  struct stat about {};
  if (geteuid() != 0) return;
  if (stat(to.c_str(), &about) != 0 && stat(directory_of(to).c_str(), &about) != 0) return;
  // By descriptor: whoever has the directory could put a name of something else there.
  const Descriptor made(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat ours {};
  if (made.fd < 0 || fstat(made.fd, &ours) != 0 || !S_ISREG(ours.st_mode) || ours.st_nlink != 1) return;
  [[maybe_unused]] const int given = fchown(made.fd, about.st_uid, about.st_gid);
}

// What is at `path` goes to a name of its own, too: it is there under both until the new one takes its place.
// Nothing is removed: whoever restored the wrong file goes back.
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
  // Its journal must not be taken for the new one's. There is none where it could be opened.
  for (const char* suffix : {"-wal", "-journal"}) {
    if (rename((path + suffix).c_str(), (aside + suffix).c_str()) != 0 && errno != ENOENT) {
      return file_error(path + suffix, "cannot be moved aside");
    }
  }
  unlink((path + "-shm").c_str());
  // Not every file system has links.
  if (link(path.c_str(), aside.c_str()) != 0 && rename(path.c_str(), aside.c_str()) != 0) {
    return file_error(path, "cannot be moved aside");
  }
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
  const bool exists = std::filesystem::exists(std::filesystem::symlink_status(to, ignored));
  if (std::filesystem::exists(to, ignored) && !std::filesystem::is_regular_file(to, ignored)) {
    return fail(ErrorKind::invalid,
                fmt::format("{} is no file: name the registry's file, for example {}/registry.db", to, to));
  }
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
  if (const Status copied = copy_database(from, temporary); !copied) {
    remove_with_journal(temporary);
    return std::unexpected(copied.error());
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
  give_to_owner(temporary, to);
  Status placed = sync_path(temporary);
  if (placed && exists) {
    Result<std::string> aside = move_aside(to);
    if (aside) restored.moved_aside = *std::move(aside);
    if (!aside) placed = std::unexpected(aside.error());
  }
  if (placed && rename(temporary.c_str(), to.c_str()) != 0) placed = file_error(to, "cannot be put in place");
  if (!placed) {
    remove_with_journal(temporary);
    return std::unexpected(placed.error());
  }
  if (const Status synced = sync_path(directory_of(to)); !synced) return std::unexpected(synced.error());
  return restored;
}

Status check_place(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) return {};
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return fail(ErrorKind::invalid, fmt::format("{} is there already, and is no file: name another", path));
  }
  if (std::filesystem::file_size(path, ignored) == 0 || says_backup(path)) return {};
  return fail(ErrorKind::invalid,
              fmt::format("{} is there already, and is no backup: name another file, or move it away", path));
}

Status sync_name(const std::string& path) { return sync_path(directory_of(path)); }

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
