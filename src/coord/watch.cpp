#include "coord/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "coord/wire.h"
#include "http/client.h"

namespace ringshift::coord {
namespace {

using std::chrono::milliseconds;

// Attempt n waits a random time up to min(kBackoffMax, kBackoffFirst * 2^n): the first one, too, so that a
// thousand routers do not return to a restarted registry in one moment, which would be slow for all of them.
constexpr milliseconds kBackoffFirst{1000};
constexpr milliseconds kBackoffMax{5000};
constexpr std::size_t kMessageBytesMax = 64U << 20;

class EtcdWatch final : public Watch {
 public:
  EtcdWatch(const Options& options, std::shared_ptr<EtcdAccess> access, std::string prefix, Watcher& watcher)
      : options_(options),
        access_(std::move(access)),
        prefix_(std::move(prefix)),
        watcher_(watcher),
        random_(std::random_device{}()) {
    thread_ = std::thread([this] { run(); });
  }
  ~EtcdWatch() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    call_.cancel();
    thread_.join();
  }
  EtcdWatch(const EtcdWatch&) = delete;
  EtcdWatch& operator=(const EtcdWatch&) = delete;

 private:
  enum class End { resync, failed };

  void run() {
    bool fresh = false;  // Whether the watcher's state is the registry's, up to next_ - 1.
    while (!stopping()) {
      if (!authorize()) {
        if (!stopping()) pause();
        continue;
      }
      if (!fresh) fresh = resync();
      if (fresh && !stopping()) fresh = follow() == End::failed;  // A failure resumes; lost history does not.
      if (!stopping()) pause();
    }
  }

  // The headers that say who we are, before each request.
  bool authorize() {
    auto headers = access_->headers(endpoint(), options_.request_timeout,
                                    [this](const http::Call& call) { return run_whole(call); });
    if (stopping()) return false;
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
  std::expected<http::Answer, http::TransportError> run_whole(const http::Call& request) {
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
    if (stopping()) return false;
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
    if (stopping() || end == End::resync) return end;
    if (!why && !status) why = status.error().error;
    if (!why && *status != 200) note_refusal(*status, pending);
    if (!why && *status != 200) why = read_error(*status, pending, request.url);
    if (!why) why = Error{ErrorKind::retryable, fmt::format("{} ended the watch", request.url)};
    give_up(*std::move(why));
    return End::failed;
  }

  // One message. False ends the stream, for the reason in `end` or `why`.
  bool take(std::string_view line, End& end, std::optional<Error>& why) {
    if (stopping()) return false;
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
    attempt_ = 0;
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

  void pause() {
    const milliseconds limit = std::min(kBackoffMax, kBackoffFirst * (1 << std::min(attempt_, 10)));
    ++attempt_;
    std::uniform_int_distribution<milliseconds::rep> spread(0, limit.count());
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, milliseconds(spread(random_)), [this] { return stopping_; });
  }

  bool stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  const Options options_;
  const std::shared_ptr<EtcdAccess> access_;
  const std::string prefix_;
  Watcher& watcher_;
  http::StreamCall call_;

  // The thread's own.
  std::mt19937_64 random_;
  std::size_t endpoint_ = 0;
  std::vector<std::string> authorization_;
  int attempt_ = 0;
  std::uint64_t cluster_id_ = 0;
  Revision next_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // Guarded by mutex_.
  std::thread thread_;     // Last: it uses all above.
};

}  // namespace

std::unique_ptr<Watch> start_watch(const Options& options, std::shared_ptr<EtcdAccess> access,
                                   std::string prefix, Watcher& watcher) {
  return std::make_unique<EtcdWatch>(options, std::move(access), std::move(prefix), watcher);
}

}  // namespace ringshift::coord
