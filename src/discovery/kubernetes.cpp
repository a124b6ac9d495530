#include "discovery/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "base/encoding.h"
#include "base/retry_thread.h"
#include "discovery/http_ask.h"

namespace ringshift::discovery {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kKubernetesWait{240'000};
constexpr milliseconds kKubernetesTimeout{10'000};
constexpr std::size_t kPageSlices = 50;
constexpr std::size_t kPagesMax = kSlicesMax / kPageSlices;
constexpr milliseconds kWatchRest{200};  // Between two watches that end at once.
constexpr std::string_view kAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";
constexpr std::string_view kKubernetesFix =
    "let the service account list and watch endpointslices.discovery.k8s.io in the namespace";

class KubernetesSource final : public Source {
 public:
  explicit KubernetesSource(Options options)
      : options_(std::move(options)),
        wait_(options_.wait.count() > 0 ? options_.wait : kKubernetesWait),
        timeout_(options_.timeout.count() > 0 ? options_.timeout : kKubernetesTimeout),
        http_(options_.urls, options_.ca_file) {}
  ~KubernetesSource() override {
    thread_.stop([this] { http_.cancel(); });
  }
  KubernetesSource(const KubernetesSource&) = delete;
  KubernetesSource& operator=(const KubernetesSource&) = delete;

  Status start(Sink& sink) override {
    thread_.start([this, &sink] { run(sink); });
    return {};
  }
  std::string describe() const override {
    return fmt::format("Kubernetes service {}/{} at {}", options_.name_space, options_.service,
                       fmt::join(options_.urls, ", "));
  }

 private:
  void run(Sink& sink) {
    Teller teller(sink);
    while (!thread_.stopping()) {
      Status went = list(teller);
      while (went && !version_.empty() && !thread_.stopping()) {
        thread_.done();
        went = watch(teller);
        thread_.wait(kWatchRest);
      }
      if (thread_.stopping()) return;
      // Without trouble it was 410: the version is gone, the server is well. So it is for all who watch:
      // spread them.
      if (!went) teller.trouble(went.error());
      thread_.back_off();
    }
  }

  std::string path() const {
    return fmt::format("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?labelSelector={}",
                       percent_encoded(options_.name_space),
                       percent_encoded("kubernetes.io/service-name=" + options_.service));
  }

  Result<http::Call> call_within(milliseconds timeout) const {
    http::Call call;
    call.method = "GET";
    call.timeout = timeout;
    call.headers = {"Accept: application/json"};
    if (options_.token_file.empty()) return call;
    const auto token = read_secret(options_.token_file);
    if (!token) return std::unexpected(token.error());
    call.headers.push_back("Authorization: Bearer " + *token);
    return call;
  }

  // All pages. version_ is "" after a page that was gone before it was read.
  Status list(Teller& teller) {
    version_.clear();
    std::vector<KubernetesSlice> slices;
    std::string more;
    for (std::size_t pages = 0; pages < kPagesMax; ++pages) {
      auto call = call_within(timeout_);
      if (!call) return std::unexpected(call.error());
      std::string at = path() + fmt::format("&limit={}", kPageSlices);
      if (!more.empty()) at += "&continue=" + percent_encoded(more);
      auto reply = http_.ask(*std::move(call), at);
      if (!reply) return std::unexpected(std::move(reply.error()));
      if (reply->status == 410 && !more.empty()) return {};
      if (reply->status != 200) return unfit(*reply);
      auto page = parse_slice_list(reply->body, options_);
      if (!page) return std::unexpected(std::move(page.error()));
      std::ranges::move(page->slices, std::back_inserter(slices));
      more = page->more;
      if (!more.empty()) continue;
      set_.reset(std::move(slices));
      version_ = page->version;
      teller.saw(set_.seen());
      return {};
    }
    return fail(ErrorKind::overloaded, fmt::format("the service has more than {} slices", kSlicesMax));
  }

  Status unfit(const HttpReply& reply) {
    Error error = status_error(reply, http_.url(), kKubernetesFix);
    http_.next();
    return std::unexpected(std::move(error));
  }

  // From version_ on, until the server ends it. version_ is "" when it is gone.
  Status watch(Teller& teller) {
    const auto seconds = std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(wait_).count());
    auto call = call_within(std::chrono::seconds(seconds) + timeout_);
    if (!call) return std::unexpected(call.error());
    Status status;
    auto reply = http_.follow(*std::move(call),
                              path() + fmt::format("&watch=true&allowWatchBookmarks=true&resourceVersion={}"
                                                   "&timeoutSeconds={}",
                                                   percent_encoded(version_), seconds),
                              [&](std::string_view line) { return take(line, teller, status); });
    if (!status) return status;
    if (!reply) return std::unexpected(std::move(reply.error()));
    if (reply->status == 410) version_.clear();
    return reply->status == 200 || reply->status == 410 || thread_.stopping() ? Status{} : unfit(*reply);
  }

  bool take(std::string_view line, Teller& teller, Status& status) {
    auto event = parse_slice_event(line, options_);
    if (!event) {
      status = std::unexpected(std::move(event.error()));
      return false;
    }
    using Kind = KubernetesEvent::Kind;
    if (event->kind == Kind::gone) {
      version_.clear();
      return false;
    }
    if (event->kind == Kind::failed) {
      status = fail(ErrorKind::retryable, fmt::format("{} ended the watch: {}", http_.url(), event->message));
      return false;
    }
    version_ = event->version;
    if (event->kind != Kind::bookmark && set_.apply(*std::move(event))) teller.saw(set_.seen());
    return !thread_.stopping();
  }

  const Options options_;
  const milliseconds wait_, timeout_;
  HttpAsk http_;

  // The thread's own.
  SliceSet set_;
  std::string version_;  // Where the watch goes on; "": list first.

  base::RetryThread thread_{kRetryFirst, kRetryMax};  // Last: its thread uses all above.
};

}  // namespace

// What is not given is what a pod finds around it.
Result<std::unique_ptr<Source>> make_kubernetes_source(Options options) {
  if (options.urls.empty()) {
    const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
    const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
    const auto number = base::parse_u64(port == nullptr ? "443" : port);
    if (host == nullptr || *host == '\0' || !number || *number < 1 || *number > 65535) {
      return fail(ErrorKind::invalid,
                  "url: is missing, and KUBERNETES_SERVICE_HOST names no API server: outside of a "
                  "pod give https://HOST:PORT");
    }
    options.urls = {"https://" + join_address(host, static_cast<std::uint16_t>(*number))};
    std::error_code ignored;
    const std::string token = std::string(kAccount) + "token";
    const std::string ca = std::string(kAccount) + "ca.crt";
    if (options.token_file.empty() && std::filesystem::exists(token, ignored)) options.token_file = token;
    if (options.ca_file.empty() && std::filesystem::exists(ca, ignored)) options.ca_file = ca;
  }
  if (options.name_space.empty()) {
    const auto own = read_secret(std::string(kAccount) + "namespace");
    options.name_space = own ? *own : "default";
  }
  return std::make_unique<KubernetesSource>(std::move(options));
}

}  // namespace ringshift::discovery
