#include "admin/tokens.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/ascii.h"
#include "base/encoding.h"

namespace ringshift::admin {
namespace {

constexpr std::string_view kScheme = "bearer ";
constexpr std::string_view kOnlyName = "admin";  // Of a token without a name.

// As long for every `given` of one length, whatever it shares with `token`.
bool same_token(std::string_view token, std::string_view given) {
  unsigned char differs = token.size() == given.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    differs = static_cast<unsigned char>(differs | (static_cast<unsigned char>(given[i]) ^
                                                    static_cast<unsigned char>(token[i % token.size()])));
  }
  // What the compiler cannot see through: it must not leave the loop early.
  volatile unsigned char result = differs;
  return result == 0;
}

std::unexpected<Error> token_file_error(const std::string& path, int error, std::string_view fix) {
  return fail(ErrorKind::invalid, fmt::format("token file {}: {}: {}", path, std::strerror(error), fix));
}

struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

Result<std::string> read_private(const std::string& path) {
  const File file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) {
    const int error = errno;
    if (error == ENOENT) {
      return fail(
          ErrorKind::not_found,
          fmt::format("token file {}: there is none: make one with 'umask 077; head -c 32 /dev/urandom | "
                      "base64 > {}'",
                      path, path));
    }
    return token_file_error(path, error, "it must be readable by the user that Ringshift runs as");
  }
  struct stat about {};
  if (fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode))
    return fail(ErrorKind::invalid, fmt::format("token file {}: is no regular file", path));
  if ((about.st_mode & 077) != 0) {
    return fail(
        ErrorKind::denied,
        fmt::format("token file {}: others may read or write it (mode {:04o}), and whoever has a token acts: "
                    "chmod 600 {}",
                    path, about.st_mode & 07777, path));
  }
  std::string text(Tokens::kFileBytesMax + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return token_file_error(path, errno, "it cannot be read");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > Tokens::kFileBytesMax)
    return fail(ErrorKind::invalid,
                fmt::format("token file {}: more than {} bytes", path, Tokens::kFileBytesMax));
  text.resize(size);
  return text;
}

Status make_token_file(const std::string& path) {
  std::array<char, 32> secret{};  // 256 bits.
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    return fail(ErrorKind::internal, "no random bytes for a token");
  const std::string text = base::to_hex({secret.data(), secret.size()}) + "\n";
  // Written whole under another name first: nobody reads half a token.
  const std::string draft = fmt::format("{}.{}", path, getpid());
  const File file{open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  if (file.fd < 0) return token_file_error(draft, errno, "its folder must be writable");
  const bool written = ::write(file.fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || fsync(file.fd) != 0) {
    const int error = errno;
    unlink(draft.c_str());
    return token_file_error(draft, error, "it cannot be written");
  }
  // Not over one that another process made meanwhile.
  const bool linked = link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const int error = errno;
  unlink(draft.c_str());
  if (!linked) return token_file_error(path, error, "it cannot be made");
  return {};
}

}  // namespace

Result<Tokens> Tokens::parse(std::string_view text, std::string_view place) {
  Tokens tokens;
  int line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r' || line.back() == '\t'))
      line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.empty() || line.front() == '#') continue;
    const auto wrong = [&](std::string_view what) {
      return fail(ErrorKind::invalid, fmt::format("{}:{}: {}", place, line_number, what));
    };
    const std::size_t space = line.find_first_of(" \t");
    Token token{std::string(kOnlyName), std::string(line)};
    if (space != std::string_view::npos) {
      const std::size_t next = line.find_first_not_of(" \t", space);
      token = {base::printable(line.substr(0, space), 64), std::string(line.substr(next))};
    }
    if (token.token.find_first_of(" \t") != std::string::npos)
      return wrong("a line is 'TOKEN' or 'NAME TOKEN'");
    if (token.token.size() < kTokenBytesMin || token.token.size() > kTokenBytesMax) {
      return wrong(fmt::format("a token has {} to {} characters, so that nobody guesses it", kTokenBytesMin,
                               kTokenBytesMax));
    }
    if (tokens.tokens_.size() == kTokensMax) return wrong(fmt::format("more than {} tokens", kTokensMax));
    tokens.tokens_.push_back(std::move(token));
  }
  if (tokens.tokens_.empty()) return fail(ErrorKind::invalid, fmt::format("{}: has no token", place));
  tokens.path_ = place;
  return tokens;
}

Result<Tokens> Tokens::read(const std::string& path) {
  const Result<std::string> text = read_private(path);
  if (!text) return std::unexpected(text.error());
  return parse(*text, path);
}

Result<Tokens> Tokens::read_or_make(const std::string& path) {
  Result<Tokens> there = read(path);
  if (there || there.error().kind != ErrorKind::not_found) return there;
  if (const Status made = make_token_file(path); !made) return std::unexpected(made.error());
  return read(path);
}

std::optional<std::string> Tokens::who(std::string_view authorization) const {
  if (authorization.size() < kScheme.size() || authorization.size() > kScheme.size() + kTokenBytesMax)
    return std::nullopt;
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if (base::ascii_lower(authorization[i]) != kScheme[i]) return std::nullopt;
  }
  const std::string_view given = authorization.substr(kScheme.size());
  std::optional<std::string> found;
  for (const Token& token : tokens_) {
    if (same_token(token.token, given)) found = token.name;
  }
  return found;
}

}  // namespace ringshift::admin
