#include "discovery/nacos.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/retry_thread.h"
#include "discovery/http_ask.h"

namespace ringshift::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kNacosPoll{3000};
constexpr milliseconds kNacosTimeout{5000};
constexpr std::chrono::seconds kTokenLeast{5};  // A shorter tokenTtl counts as this.
constexpr std::string_view kNacosFix =
    "give a user that may read the service as user:NAME:PASSWORD by auth_file";

// With the API's own root, unless the URL names one.
std::vector<std::string> nacos_roots(std::vector<std::string> urls) {
  for (std::string& url : urls) {
    while (url.ends_with('/')) url.pop_back();
    if (url.find('/', url.find("://") + 3) == std::string::npos) url += "/nacos";
  }
  return urls;
}

class NacosSource final : public Source {
 public:
  explicit NacosSource(Options options)
      : options_(std::move(options)),
        poll_(options_.poll.count() > 0 ? options_.poll : kNacosPoll),
        timeout_(options_.timeout.count() > 0 ? options_.timeout : kNacosTimeout),
        http_(nacos_roots(options_.urls), options_.ca_file) {}
  ~NacosSource() override {
    thread_.stop([this] { http_.cancel(); });
  }
  NacosSource(const NacosSource&) = delete;
  NacosSource& operator=(const NacosSource&) = delete;

  Status start(Sink& sink) override {
    thread_.start([this, &sink] { run(sink); });
    return {};
  }
  std::string describe() const override {
    return fmt::format("Nacos service {}@@{} at {}", group(), options_.service,
                       fmt::join(options_.urls, ", "));
  }

 private:
  std::string group() const { return options_.group.empty() ? "DEFAULT_GROUP" : options_.group; }

  void run(Sink& sink) {
    Teller teller(sink);
    while (!thread_.stopping()) {
      auto seen = look();
      if (thread_.stopping()) return;
      if (!seen) {
        teller.trouble(seen.error());
        thread_.back_off();
        continue;
      }
      thread_.done();
      teller.saw(*std::move(seen));
      thread_.wait(poll_);
    }
  }

  std::string path() const {
    std::string path = fmt::format("/{}/ns/instance/list?serviceName={}&groupName={}&healthyOnly=false",
                                   options_.api.empty() ? "v1" : options_.api,
                                   percent_encoded(options_.service), percent_encoded(group()));
    if (!options_.name_space.empty()) path += "&namespaceId=" + percent_encoded(options_.name_space);
    if (!options_.clusters.empty()) {
      const std::string_view parameter = options_.api == "v2" ? "clusterName" : "clusters";
      path += fmt::format("&{}={}", parameter,
                          percent_encoded(fmt::format("{}", fmt::join(options_.clusters, ","))));
    }
    return path;
  }

  Result<Seen> look() {
    for (bool again = false;; again = true) {
      http::Call call;
      call.method = "GET";
      call.timeout = timeout_;
      if (!options_.auth_file.empty()) {
        if (const Status in = log_in(); !in) return std::unexpected(in.error());
        call.headers = {"Authorization: Bearer " + token_, "accessToken: " + token_};
      }
      auto reply = http_.ask(std::move(call), path());
      if (!reply) return std::unexpected(std::move(reply.error()));
      if (reply->status == 200) return parse_nacos_list(reply->body, options_);
      Error error = status_error(*reply, http_.url(), kNacosFix);
      token_.clear();  // A restarted server may know it no more.
      if (error.kind == ErrorKind::denied && !options_.auth_file.empty() && !again) continue;
      http_.next();
      return std::unexpected(std::move(error));
    }
  }

  // The token that there is, or a new one.
  Status log_in() {
    if (!token_.empty() && steady_clock::now() < renew_at_) return {};
    const auto secret = read_secret(options_.auth_file);
    if (!secret) return std::unexpected(secret.error());
    const std::size_t colon = secret->find(':', 5);
    if (!secret->starts_with("user:") || colon == std::string::npos) {
      return fail(ErrorKind::denied, fmt::format("{}: does not hold user:NAME:PASSWORD", options_.auth_file));
    }
    http::Call call;
    call.timeout = timeout_;
    call.headers = {"Content-Type: application/x-www-form-urlencoded"};
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

  const Options options_;
  const milliseconds poll_, timeout_;
  HttpAsk http_;

  // The thread's own.
  std::string token_;
  steady_clock::time_point renew_at_{};

  base::RetryThread thread_{kRetryFirst, kRetryMax};  // Last: its thread uses all above.
};

}  // namespace

std::unique_ptr<Source> make_nacos_source(Options options) {
  return std::make_unique<NacosSource>(std::move(options));
}

}  // namespace ringshift::discovery
