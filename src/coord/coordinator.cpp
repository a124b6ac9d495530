#include "coord/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "coord/etcd_access.h"
#include "coord/watch.h"
#include "coord/wire.h"
#include "coord/zookeeper/coordinator.h"
#include "coord/zookeeper/paths.h"
#include "http/client.h"

namespace ringshift::coord {
namespace {

constexpr std::int64_t kNoHurry = std::numeric_limits<std::int64_t>::max();

class EtcdCoordinator final : public Coordinator {
 public:
  explicit EtcdCoordinator(Options options)
      : options_(std::move(options)),
        access_(std::make_shared<EtcdAccess>(options_.credentials, options_.credentials_file)) {}

  Result<std::optional<KeyValue>> get(std::string_view key) override {
    const Result<std::string> answer = read("/v3/kv/range", range_body(key, ""));
    if (!answer) return std::unexpected(answer.error());
    Result<Range> range = read_range(*answer);
    if (!range) return std::unexpected(std::move(range.error()));
    if (range->kvs.empty()) return std::nullopt;
    return std::move(range->kvs.front());
  }

  Result<Range> list(std::string_view prefix) override {
    const Result<std::string> answer =
        read("/v3/kv/range", range_body(prefix, prefix_end(std::string(prefix))));
    if (!answer) return std::unexpected(answer.error());
    return read_range(*answer);
  }

  Result<Revision> put(std::string_view key, std::string_view value, LeaseId lease) override {
    const Result<Written> written = write("/v3/kv/put", put_body(key, value, lease));
    if (!written) return std::unexpected(written.error());
    return written->revision;
  }

  Result<bool> remove(std::string_view key) override {
    const Result<Written> written = write("/v3/kv/deleterange", delete_body(key));
    if (!written) return std::unexpected(written.error());
    return written->deleted > 0;
  }

  Result<std::optional<Revision>> transact(const std::vector<Compare>& compares,
                                           const std::vector<Op>& ops) override {
    const Result<Written> written = write("/v3/kv/txn", txn_body(compares, ops));
    if (!written) return std::unexpected(written.error());
    if (!written->succeeded) return std::nullopt;
    return written->revision;
  }

  Result<LeaseId> grant(std::chrono::seconds ttl) override {
    const Result<std::string> answer = call("/v3/lease/grant", lease_body(0, ttl.count()), false);
    if (!answer) return std::unexpected(answer.error());
    const Result<LeaseAnswer> lease = read_lease(*answer);
    if (!lease) return std::unexpected(lease.error());
    return lease->id;
  }

  Result<std::chrono::seconds> keep_alive(LeaseId id) override {
    // Saying it twice does no harm, so it counts as a read.
    const Result<std::string> answer = read("/v3/lease/keepalive", lease_body(id, 0));
    if (!answer) return std::unexpected(answer.error());
    const Result<LeaseAnswer> lease = read_lease(*answer);
    if (!lease) return std::unexpected(lease.error());
    if (lease->ttl_seconds <= 0) {  // HTTP 200 without a TTL: etcd's way to say that it is gone.
      return fail(ErrorKind::not_found,
                  fmt::format("lease {} is gone: grant a new one and put its keys again", id));
    }
    return std::chrono::seconds(lease->ttl_seconds);
  }

  Status revoke(LeaseId id) override {
    const Result<std::string> answer = call("/v3/lease/revoke", lease_body(id, 0), false);
    if (!answer) return std::unexpected(answer.error());
    return {};
  }

  void hurry(std::chrono::milliseconds most) override { most_ms_ = most.count(); }

  std::unique_ptr<Watch> watch(std::string prefix, Watcher& watcher) override {
    return start_watch(options_, access_, std::move(prefix), watcher);
  }

 private:
  Result<std::string> read(std::string_view path, std::string body) {
    return call(path, std::move(body), true);
  }

  Result<Written> write(std::string_view path, std::string body) {
    const Result<std::string> answer = call(path, std::move(body), false);
    if (!answer) return std::unexpected(answer.error());
    return read_written(*answer);
  }

  // Asks the endpoints in turn, beginning with the one that answered last. A write goes on to the next only
  // when this one certainly did not get it.
  Result<std::string> call(std::string_view path, std::string body, bool repeatable) {
    http::Call request;
    request.body = std::move(body);
    const bool hurried = most_ms_ != kNoHurry;
    if (hurried && lost_) return fail(ErrorKind::retryable, "the registry did not answer when it had to");
    request.timeout = std::min(options_.request_timeout, std::chrono::milliseconds(most_ms_));
    const std::size_t first = preferred_.load(std::memory_order_relaxed);
    Error last;
    for (std::size_t i = 0; i < options_.endpoints.size(); ++i) {
      const std::size_t index = (first + i) % options_.endpoints.size();
      request.url = options_.endpoints[index] + std::string(path);
      auto answer = send_as_us(options_.endpoints[index], request);
      if (!answer) {
        last = std::move(answer.error().error);
        if (hurried && !answer.error().unsent) lost_ = true;
        if (repeatable || answer.error().unsent) continue;
        return std::unexpected(std::move(last));
      }
      if (answer->status == 200) {
        preferred_.store(index, std::memory_order_relaxed);
        return std::move(answer->body);
      }
      last = read_error(answer->status, answer->body, request.url);
      if (!repeatable || last.kind != ErrorKind::retryable) return std::unexpected(std::move(last));
    }
    return std::unexpected(std::move(last));
  }

  // With the headers that say who we are, again when the registry says that they no longer do.
  std::expected<http::Answer, http::TransportError> send_as_us(const std::string& endpoint,
                                                               http::Call& request) {
    request.tls = options_.tls;
    const auto send = [this](http::Call call) {
      call.tls = options_.tls;
      return http_.send(call);
    };
    for (int tries = 0;; ++tries) {
      auto headers = access_->headers(endpoint, request.timeout, send);
      if (!headers) return std::unexpected(std::move(headers.error()));
      request.headers = *headers;
      request.headers.emplace_back(kHasLeader);
      auto answer = http_.send(request);
      if (!answer || !access_->refused(*headers, answer->status, answer->body) || tries > 0) return answer;
    }
  }

  const Options options_;
  const std::shared_ptr<EtcdAccess> access_;  // Shared with the watches.
  http::Client http_;
  std::atomic<std::size_t> preferred_{0};
  std::atomic<std::int64_t> most_ms_{kNoHurry};  // See hurry().
  std::atomic<bool> lost_{false};
};

}  // namespace

Result<std::unique_ptr<Coordinator>> connect(Options options) {
  if (options.endpoints.empty()) {
    return fail(ErrorKind::invalid, "no registry is given: name one with --registry http://127.0.0.1:7379");
  }
  if (options.endpoints.front().starts_with(zookeeper::kScheme)) {
    return zookeeper::connect(fmt::format("{}", fmt::join(options.endpoints, ",")), options);
  }
  if (options.credentials.kind == Credentials::Kind::digest) {
    return fail(ErrorKind::invalid,
                "credentials that begin with 'digest:' are for ZooKeeper, and the registry is none: leave "
                "--registry-auth-file out, or name a zk:// registry");
  }
  for (std::string& endpoint : options.endpoints) {
    if (endpoint.find('@') != std::string::npos) {  // Not shown: what is before the @ may be a password.
      return fail(
          ErrorKind::invalid,
          "a registry's URL holds no user and password: put user:NAME:PASSWORD into a file and name it "
          "by --registry-auth-file");
    }
    const std::size_t bracket =
        std::min(endpoint.find('['), endpoint.size());  // [fe80::1%25eth0] has one, too.
    const std::string outside =
        endpoint.substr(0, bracket) + endpoint.substr(std::min(endpoint.find(']', bracket), endpoint.size()));
    if (outside.find_first_of("?#%") != std::string::npos) {  // Nor is this shown.
      return fail(
          ErrorKind::invalid,
          "a registry's URL holds no '?', '#' or '%': everybody reads it in process lists and logs, so that "
          "nothing secret belongs there; who we are says the file of --registry-auth-file");
    }
    const bool secure = endpoint.starts_with("https://");
    if (!(secure || endpoint.starts_with("http://")) || endpoint.size() <= (secure ? 8U : 7U)) {
      return fail(ErrorKind::invalid,
                  fmt::format("registry '{}': write http://HOST:PORT or https://HOST:PORT, for example "
                              "http://127.0.0.1:7379, or zk://HOST:PORT for ZooKeeper",
                              endpoint));
    }
    if (!secure && !(options.tls.ca.empty() && options.tls.certificate.empty())) {
      return fail(ErrorKind::invalid,
                  fmt::format("registry '{}': --registry-ca and --registry-cert are for TLS, "
                              "and it has none: write https://",
                              endpoint));
    }
    while (endpoint.ends_with('/')) endpoint.pop_back();
  }
  return std::make_unique<EtcdCoordinator>(std::move(options));
}

}  // namespace ringshift::coord
