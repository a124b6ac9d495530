#include "cli/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace ringshift::cli {
namespace {
constexpr std::size_t kFileBytesMax = 1U << 20;
}

namespace {

std::unexpected<Error> failed(const std::string& path, std::string_view what) {
  return fail(ErrorKind::denied, fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

std::unexpected<Error> is_there(const std::string& path) {
  return fail(ErrorKind::invalid,
              fmt::format("{} exists: name another file, or say --force to replace it", path));
}

}  // namespace

ReservedFile::ReservedFile(ReservedFile&& other) noexcept
    : path_(std::move(other.path_)),
      mode_(other.mode_),
      force_(other.force_),
      fd_(std::exchange(other.fd_, -1)) {}

ReservedFile::~ReservedFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary().c_str());
}

Result<ReservedFile> ReservedFile::take(const std::string& path, std::size_t bytes, unsigned mode,
                                        bool force) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) == 0) {
    if (!force) return is_there(path);
    if (::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) {
      return fail(ErrorKind::invalid,
                  fmt::format("{} is no file that could be replaced: name another", path));
    }
  }
  ReservedFile file(path, mode, force);
  ::unlink(file.temporary().c_str());
  file.fd_ = ::open(file.temporary().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (file.fd_ < 0) return failed(path, "cannot be written");
  if (const Status room = file.write(std::string(bytes, ' ')); !room) return std::unexpected(room.error());
  return file;
}

// From the beginning of the file, and on the disk.
Status ReservedFile::write(std::string_view text) const {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::pwrite(fd_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failed(path_, "cannot be written");
    done += static_cast<std::size_t>(wrote);
  }
  if (::ftruncate(fd_, static_cast<off_t>(text.size())) == 0 && ::fchmod(fd_, mode_) == 0 &&
      ::fsync(fd_) == 0)
    return {};
  return failed(path_, "cannot be written");
}

Status ReservedFile::fill(std::string_view text) {
  if (const Status written = write(text); !written) return written;
  // A link fails when there is one already, whoever else makes it at this moment.
  const bool placed = force_ ? ::rename(temporary().c_str(), path_.c_str()) == 0
                             : ::link(temporary().c_str(), path_.c_str()) == 0;
  if (!placed) return errno == EEXIST ? Status(is_there(path_)) : failed(path_, "cannot be written");
  if (!force_) ::unlink(temporary().c_str());
  ::close(std::exchange(fd_, -1));
  return {};
}

Status write_file(const std::string& path, std::string_view text, unsigned mode, bool force) {
  auto file = ReservedFile::take(path, text.size(), mode, force);
  if (!file) return std::unexpected(std::move(file.error()));
  return file->fill(text);
}

Result<std::string> read_whole_file(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return failed(path, "cannot be read");
  if (!S_ISREG(about.st_mode) || about.st_size > static_cast<off_t>(kFileBytesMax)) {
    return fail(ErrorKind::invalid,
                fmt::format("{}: it is no file, or larger than {} bytes", path, kFileBytesMax));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return failed(path, "cannot be read");
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in) return fail(ErrorKind::denied, fmt::format("{} cannot be read", path));
  return text;
}

}  // namespace ringshift::cli
