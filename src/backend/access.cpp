#include "backend/access.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "protocol/resp/value.h"

namespace ringshift::backend {

MemberAccess::MemberAccess(Options options)
    : options_(std::move(options)), credentials_{options_.user, options_.password} {}

Result<std::shared_ptr<MemberAccess>> MemberAccess::open(Options options) {
  if (!options.user.empty() && options.password.empty() && options.password_file.empty()) {
    return fail(ErrorKind::invalid, "a user of the members is named, but no password");
  }
  std::shared_ptr<MemberAccess> access(new MemberAccess(std::move(options)));
  if (access->options_.tls) {
    auto tls = net::TlsContext::client(*access->options_.tls);
    if (!tls) return std::unexpected(tls.error());
    access->tls_ = std::move(*tls);
  }
  if (const Status read = access->read_password(); !read) return std::unexpected(read.error());
  return access;
}

Status MemberAccess::reload() {
  const Status password = read_password();
  if (tls_) {
    if (Status tls = tls_->reload(); !tls) return tls;
  }
  return password;
}

Status MemberAccess::read_password() {
  const std::string& path = options_.password_file;
  if (path.empty()) return {};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorKind::invalid, "password file " + path + ": " + why);
  };
  if (file == nullptr) return refuse(std::strerror(errno));
  std::string text(kMaxPasswordBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return refuse("cannot be read");
  const std::size_t end = text.find_first_of("\r\n");
  if (end == std::string::npos && text.size() > kMaxPasswordBytes)
    return refuse("its first line is too long");
  text.resize(end == std::string::npos ? text.size() : end);
  if (text.empty()) return refuse("its first line is empty");
  const std::lock_guard lock(mutex_);
  credentials_.password = std::move(text);
  return {};
}

Credentials MemberAccess::credentials() const {
  const std::lock_guard lock(mutex_);
  return credentials_;
}

void append_auth(std::string& out, const Credentials& credentials) {
  if (credentials.user.empty()) {
    protocol::resp::append_command(out, {"AUTH", credentials.password});
  } else {
    protocol::resp::append_command(out, {"AUTH", credentials.user, credentials.password});
  }
}

bool auth_refused(std::string_view error_text) noexcept {
  return error_text.find("without any password configured") == std::string_view::npos;
}

}  // namespace ringshift::backend
