#include "cli/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ringshift::cli {
namespace {
constexpr std::size_t kFileBytesMax = 1U << 20;
}

Status write_file(const std::string& path, std::string_view text, unsigned mode, bool force) {
  const auto failed = [&](std::string_view what) {
    return Status(fail(ErrorKind::denied, fmt::format("{}: {}: {}", path, what, std::strerror(errno))));
  };
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return failed("cannot be written");
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  const bool whole = done == text.size() && ::fchmod(fd, mode) == 0 && ::fsync(fd) == 0;
  ::close(fd);
  // A link fails when there is one already, whoever else makes it at this moment.
  const bool placed = whole && (force ? ::rename(temporary.c_str(), path.c_str()) == 0
                                      : ::link(temporary.c_str(), path.c_str()) == 0);
  if (placed) {
    if (!force) ::unlink(temporary.c_str());
    return {};
  }
  const int error = errno;
  ::unlink(temporary.c_str());
  if (error == EEXIST) {
    return fail(ErrorKind::invalid,
                fmt::format("{} exists: name another file, or say --force to replace it", path));
  }
  errno = error;
  return failed("cannot be written");
}

Result<std::string> read_whole_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored) ||
      std::filesystem::file_size(path, ignored) > kFileBytesMax) {
    return fail(ErrorKind::invalid, fmt::format("{}: there is no such file, or it is too large", path));
  }
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in) return fail(ErrorKind::denied, fmt::format("{} cannot be read", path));
  return text;
}

}  // namespace ringshift::cli
