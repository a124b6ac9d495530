#include "coord/watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/retry_thread.h"
#include "coord/wire.h"
#include "http/client.h"

namespace ringshift::coord {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMessageBytesMax = 64U << 20;

class EtcdWatch final : public Watch {
 public:
  EtcdWatch(const Options& options, std::shared_ptr<EtcdAccess> access, std::string prefix, Watcher& watcher)
      : options_(options), access_(std::move(access)), prefix_(std::move(prefix)), watcher_(watcher) {
    call_.on_silence(options_.watch_silence, [this] { return answers(); });
    thread_.start([this] { run(); });
  }
  ~EtcdWatch() override {
    thread_.stop([this] {
      call_.cancel();
      health_.cancel();
    });
  }
  EtcdWatch(const EtcdWatch&) = delete;
  EtcdWatch& operator=(const EtcdWatch&) = delete;

 private:
  enum class End { resync, failed };

  void run() {
    bool fresh = false;  // Whether the watcher's state is the registry's, up to next_ - 1.
    while (!thread_.stopping()) {
      if (!authorize()) {
        if (!thread_.stopping()) thread_.back_off();
        continue;
      }
      if (!fresh) fresh = resync();
      if (fresh && !thread_.stopping())
        fresh = follow() == End::failed;  // A failure resumes; lost history does not.
      if (!thread_.stopping()) thread_.back_off();
    }
  }

  // The headers that say who we are, before each request.
  bool authorize() {
    auto headers = access_->headers(endpoint(), options_.request_timeout,
                                    [this](const http::Call& call) { return run_whole(call); });
    if (thread_.stopping()) return false;
    if (!headers) {
      give_up(std::move(headers.error().error));
      return false;
    }
    authorization_ = *std::move(headers);
    return true;
  }

  // The next attempt asks for another token, if that is what was wrong.
  void note_refusal(int status, std::string_view answer) {
    static_cast<void>(access_->refused(authorization_, status, answer));
  }

  // Status 0: the answer is too large, or this watch ends.
  std::expected<http::Answer, http::TransportError> run_whole(http::Call request) {
    request.tls = options_.tls;
    http::Answer answer;
    const auto status = call_.run(
        request,
        [&](std::string_view bytes) {
          answer.body.append(bytes);
          return answer.body.size() <= http::kAnswerBytesMax;
        },
        true);
    if (!status) return std::unexpected(status.error());
    answer.status = *status;
    return answer;
  }

  // Reads the whole prefix and tells the watcher.
  bool resync() {
    http::Call request = call_to("/v3/kv/range", range_body(prefix_, prefix_end(prefix_)));
    const auto answer = run_whole(request);
    if (thread_.stopping()) return false;
    if (answer) note_refusal(answer->status, answer->body);
    Result<Range> range = !answer                 ? std::unexpected(answer.error().error)
                          : answer->status == 200 ? read_range(answer->body)
                          : answer->status == 0
                              ? too_large()
                              : std::unexpected(read_error(answer->status, answer->body, request.url));
    if (!range) {
      give_up(std::move(range.error()));
      return false;
    }
    cluster_id_ = range->cluster_id;
    next_ = range->revision + 1;
    watcher_.on_resync(*range);
    return true;
  }

  // Follows the events from next_ on until the stream ends.
  End follow() {
    std::string pending;
    End end = End::failed;
    std::optional<Error> why;
    const http::Call request = call_to("/v3/watch", watch_body(prefix_, next_));
    const auto status = call_.run(request, [&](std::string_view bytes) {
      pending.append(bytes);
      std::size_t begin = 0;
      for (std::size_t line_end; (line_end = pending.find('\n', begin)) != std::string::npos;
           begin = line_end + 1) {
        const std::string_view line(pending.data() + begin, line_end - begin);
        if (!line.empty() && !take(line, end, why)) return false;
      }
      pending.erase(0, begin);
      if (pending.size() <= kMessageBytesMax) return true;
      why = Error{ErrorKind::overloaded, fmt::format("a watch message exceeds {} bytes", kMessageBytesMax)};
      return false;
    });
    if (thread_.stopping() || end == End::resync) return end;
    if (!why && !status) why = status.error().error;
    if (!why && *status == 0) {
      why = Error{ErrorKind::retryable,
                  fmt::format("{} is silent, and does not say that it is well", endpoint())};
    }
    if (!why && *status != 200) note_refusal(*status, pending);
    if (!why && *status != 200) why = read_error(*status, pending, request.url);
    if (!why) why = Error{ErrorKind::retryable, fmt::format("{} ended the watch", request.url)};
    give_up(*std::move(why));
    return End::failed;
  }

  // A server that hangs, or has lost its leader, leaves a watch open and says nothing on it.
  bool answers() {
    http::Call health;
    health.method = "GET";
    health.url = endpoint() + "/health";
    health.timeout = options_.request_timeout;
    health.tls = options_.tls;
    const auto status = health_.run(health, [](std::string_view) { return true; }, true);
    return status && *status == 200;
  }

  // One message. False ends the stream, for the reason in `end` or `why`.
  bool take(std::string_view line, End& end, std::optional<Error>& why) {
    if (thread_.stopping()) return false;
    const Result<WatchMessage> message = read_watch(line);
    if (!message) {
      why = message.error();
      return false;
    }
    if (message->compact_revision != 0) {
      // etcd leaves the stream open, and nothing ever comes on it again.
      end = End::resync;
      return false;
    }
    if (message->canceled) {
      access_->watch_cancelled(authorization_, message->reason);
      why = Error{ErrorKind::retryable, fmt::format("the registry cancelled the watch: {}", message->reason)};
      return false;
    }
    // Another store, or one restored to an earlier time: what we know is not its history.
    if (message->cluster_id != cluster_id_ || (message->created && message->revision < next_ - 1)) {
      end = End::resync;
      return false;
    }
    thread_.done();
    if (!message->events.empty()) {
      watcher_.on_events(message->events);
      // Not the header's revision: while it catches up, the registry is further than the events it sends.
      next_ = std::max(next_, message->events.back().kv.mod_revision + 1);
    } else if (!message->created) {
      next_ = std::max(next_, message->revision + 1);  // Progress: nothing for us up to here.
    }
    return true;
  }

  [[nodiscard]] const std::string& endpoint() const {
    return options_.endpoints[endpoint_ % options_.endpoints.size()];
  }

  [[nodiscard]] http::Call call_to(std::string_view path, std::string body) const {
    http::Call request;
    request.url = endpoint() + std::string(path);
    request.tls = options_.tls;
    request.headers = authorization_;
    request.headers.emplace_back(kHasLeader);
    request.body = std::move(body);
    request.timeout = options_.request_timeout;
    return request;
  }

  static Result<Range> too_large() {
    return fail(ErrorKind::overloaded,
                fmt::format("the watched prefix holds more than {} bytes", http::kAnswerBytesMax));
  }

  void give_up(Error why) {
    ++endpoint_;
    watcher_.on_disconnected(why);
  }

  const Options options_;
  const std::shared_ptr<EtcdAccess> access_;
  const std::string prefix_;
  Watcher& watcher_;
  http::StreamCall call_, health_;

  // The thread's own.
  std::size_t endpoint_ = 0;
  std::vector<std::string> authorization_;
  std::uint64_t cluster_id_ = 0;
  Revision next_ = 0;

  base::RetryThread thread_{kWatchRetryFirst, kWatchRetryMax};  // Last: it uses all above.
};

}  // namespace

std::unique_ptr<Watch> start_watch(const Options& options, std::shared_ptr<EtcdAccess> access,
                                   std::string prefix, Watcher& watcher) {
  return std::make_unique<EtcdWatch>(options, std::move(access), std::move(prefix), watcher);
}

}  // namespace ringshift::coord
