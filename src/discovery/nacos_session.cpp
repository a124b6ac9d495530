#include "discovery/nacos_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "discovery/nacos.h"

namespace ringshift::discovery {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kTokenLeast{5};  // A shorter tokenTtl counts as this.
constexpr std::string_view kNacosFix =
    "give a user that may use the service as user:NAME:PASSWORD by auth_file";
constexpr const char* kForm = "Content-Type: application/x-www-form-urlencoded";

// With the API's own root, unless the URL names one.
std::vector<std::string> nacos_roots(std::vector<std::string> urls) {
  for (std::string& url : urls) {
    while (url.ends_with('/')) url.pop_back();
    if (url.find('/', url.find("://") + 3) == std::string::npos) url += "/nacos";
  }
  return urls;
}

}  // namespace

NacosSession::NacosSession(std::vector<std::string> urls, std::string ca_file, std::string auth_file,
                           std::chrono::milliseconds timeout)
    : auth_file_(std::move(auth_file)),
      timeout_(timeout),
      http_(nacos_roots(std::move(urls)), std::move(ca_file)) {}

Result<HttpReply> NacosSession::ask(std::string_view method, const std::string& path,
                                    const std::string& form) {
  for (bool again = false;; again = true) {
    http::Call call;
    call.method = method;
    call.timeout = timeout_;
    if (!auth_file_.empty()) {
      if (const Status in = log_in(); !in) return std::unexpected(in.error());
      call.headers = {"Authorization: Bearer " + token_, "accessToken: " + token_};
    }
    if (method != "GET") call.headers.emplace_back(kForm);
    call.body = form;
    auto reply = http_.ask(std::move(call), path);
    if (!reply || reply->status == 200) return reply;
    Error error = status_error(*reply, http_.url(), kNacosFix);
    token_.clear();  // A restarted server may know it no more.
    if (error.kind == ErrorKind::denied && !auth_file_.empty() && !again) continue;
    http_.next();
    return std::unexpected(std::move(error));
  }
}

// The token that there is, or a new one.
Status NacosSession::log_in() {
  if (!token_.empty() && steady_clock::now() < renew_at_) return {};
  const auto secret = read_secret(auth_file_);
  if (!secret) return std::unexpected(secret.error());
  const std::size_t colon = secret->find(':', 5);
  if (!secret->starts_with("user:") || colon == std::string::npos) {
    return fail(ErrorKind::denied, fmt::format("{}: does not hold user:NAME:PASSWORD", auth_file_));
  }
  http::Call call;
  call.timeout = timeout_;
  call.headers = {kForm};
  call.body = fmt::format("username={}&password={}", percent_encoded(secret->substr(5, colon - 5)),
                          percent_encoded(secret->substr(colon + 1)));
  auto reply = http_.ask(std::move(call), "/v1/auth/login");
  if (!reply) return std::unexpected(std::move(reply.error()));
  if (reply->status != 200) {
    http_.next();
    return std::unexpected(status_error({reply->status, {}}, http_.url() + "/v1/auth/login", kNacosFix));
  }
  auto token = parse_nacos_login(reply->body);
  if (!token) return std::unexpected(std::move(token.error()));
  token_ = std::move(token->token);
  const auto ttl = std::max(token->ttl, kTokenLeast);
  renew_at_ = steady_clock::now() + ttl - ttl / 5;
  return {};
}

}  // namespace ringshift::discovery
