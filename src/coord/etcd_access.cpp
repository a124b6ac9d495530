#include "coord/etcd_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <string_view>
#include <utility>

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
  if (credentials_.kind == Credentials::Kind::none) return Headers{};
  const auto with = [](const std::string& token) {
    return token.empty() ? Headers{} : Headers{std::string(kHeader) + token};
  };
  if (credentials_.kind == Credentials::Kind::token) return with(credentials_.secret);
  {
    const std::lock_guard lock(mutex_);
    if (token_) return with(*token_);
  }
  http::Call request;
  request.url = endpoint + "/v3/auth/authenticate";
  request.body = authenticate_body(credentials_.name, credentials_.secret);
  request.timeout = timeout;
  const auto answer = send(request);
  if (!answer) return std::unexpected(http::TransportError{answer.error().error, true});
  std::string token;
  if (answer->status == 200) {
    Result<std::string> read = read_token(answer->body);
    if (!read) return std::unexpected(http::TransportError{std::move(read.error()), true});
    token = *std::move(read);
  } else {
    Error why = read_error(answer->status, answer->body, request.url);
    if (why.message.find("authentication is not enabled") == std::string::npos) {
      if (why.message.find("authentication failed") != std::string::npos) {  // Its code says "invalid".
        why = {ErrorKind::denied,
               fmt::format("{} does not know user '{}' with this password: check the file given by "
                           "--registry-auth-file",
                           endpoint, credentials_.name)};
      }
      return std::unexpected(http::TransportError{std::move(why), true});
    }
  }
  const std::lock_guard lock(mutex_);
  token_ = token;
  return with(token);
}

bool EtcdAccess::refused(const std::vector<std::string>& headers, int status, std::string_view answer) {
  if (credentials_.kind != Credentials::Kind::user || status == 200) return false;
  // Without a token etcd says 400: which is how we learn that authentication was turned on.
  if (status != 401 && !says_no_token(answer) && !says_old_token(answer)) return false;
  forget(headers);
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
