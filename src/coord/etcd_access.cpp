#include "coord/etcd_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "coord/wire.h"

namespace ringshift::coord {
namespace {

constexpr std::string_view kHeader = "Authorization: ";  // etcd wants the bare token after it.

bool says_denied(std::string_view reason) {
  return reason.find("permission denied") != std::string_view::npos ||
         reason.find("invalid auth token") != std::string_view::npos;
}

}  // namespace

std::expected<std::vector<std::string>, http::TransportError> EtcdAccess::headers(
    const std::string& endpoint, std::chrono::milliseconds timeout, const Send& send) {
  using Headers = std::vector<std::string>;
  const auto with = [](const std::string& token) {
    return token.empty() ? Headers{} : Headers{std::string(kHeader) + token};
  };
  for (int tries = 0;; ++tries) {
    Credentials as;
    {
      const std::lock_guard lock(mutex_);
      as = credentials_;
      if (as.kind == Credentials::Kind::none) return Headers{};
      if (as.kind == Credentials::Kind::token) return with(as.secret);
      if (token_) return with(*token_);
    }
    auto token = authenticate(as, endpoint, timeout, send);
    if (!token && token.error().error.kind == ErrorKind::denied && tries == 0 && renewed(as)) continue;
    if (!token) return std::unexpected(std::move(token.error()));
    const std::lock_guard lock(mutex_);
    token_ = *token;
    return with(*token);
  }
}

std::expected<std::string, http::TransportError> EtcdAccess::authenticate(const Credentials& as,
                                                                          const std::string& endpoint,
                                                                          std::chrono::milliseconds timeout,
                                                                          const Send& send) {
  http::Call request;
  request.url = endpoint + "/v3/auth/authenticate";
  request.body = authenticate_body(as.name, as.secret);
  request.timeout = timeout;
  const auto answer = send(request);
  if (!answer) return std::unexpected(http::TransportError{answer.error().error, true});
  if (answer->status == 200) {
    Result<std::string> read = read_token(answer->body);
    if (!read) return std::unexpected(http::TransportError{std::move(read.error()), true});
    return *std::move(read);
  }
  Error why = read_error(answer->status, answer->body, request.url);
  if (why.message.find("authentication is not enabled") != std::string::npos) return std::string();
  if (why.message.find("authentication failed") != std::string::npos) {  // Its code says "invalid".
    why = {ErrorKind::denied,
           fmt::format("{} does not know user '{}' with this password: check the file given by "
                       "--registry-auth-file",
                       endpoint, as.name)};
  }
  return std::unexpected(http::TransportError{std::move(why), true});
}

bool EtcdAccess::refused(const std::vector<std::string>& headers, int status, std::string_view answer) {
  if (status == 200) return false;
  const Credentials now = credentials();
  if (now.kind == Credentials::Kind::token) {
    if (status != 401) return false;
    const std::string sent = headers.empty() ? "" : headers.front().substr(kHeader.size());
    return sent != now.secret || renewed(now);
  }
  if (now.kind != Credentials::Kind::user) return false;
  // Without a token etcd says 400: which is how we learn that authentication was turned on.
  if (status != 401 && !says_no_token(answer) && !says_old_token(answer)) return false;
  forget(headers);
  return true;
}

Credentials EtcdAccess::credentials() const {
  const std::lock_guard lock(mutex_);
  return credentials_;
}

// A file that is being written may hold half a line: what comes of it is refused, and looked up again.
bool EtcdAccess::renewed(const Credentials& used) {
  if (file_.empty()) return false;
  auto read = read_credentials(file_);
  const std::lock_guard lock(mutex_);
  if (credentials_ != used) return true;
  if (!read || *read == used || read->kind == Credentials::Kind::digest) return false;
  credentials_ = *std::move(read);
  token_.reset();
  base::log(base::LogLevel::info,
            "the registry refused what {} said; it says something else now, which is used", file_);
  return true;
}

void EtcdAccess::watch_cancelled(const std::vector<std::string>& headers, std::string_view reason) {
  // A watch is told no more than "permission denied" when its token is none.
  if (says_no_token(reason) || says_old_token(reason) || says_denied(reason)) forget(headers);
}

void EtcdAccess::forget(const std::vector<std::string>& headers) {
  const std::lock_guard lock(mutex_);
  const std::string sent = headers.empty() ? "" : headers.front().substr(kHeader.size());
  if (token_ == sent) token_.reset();  // Else another thread has got a newer one.
}

}  // namespace ringshift::coord
