#include "http/client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <atomic>
#include <mutex>

namespace ringshift::http {
namespace {

// A stream's peer that vanished without a word is noticed after about 10 + 3 * 5 seconds.
constexpr long kKeepAliveIdleSeconds = 10;
constexpr long kKeepAliveIntervalSeconds = 5;
constexpr int kPollMs = 1000;  // A wake-up ends the wait earlier; this is only the net below.

void init_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

struct HeaderList {
  curl_slist* list = nullptr;
  ~HeaderList() { curl_slist_free_all(list); }
  void add(const std::string& header) { list = curl_slist_append(list, header.c_str()); }
};

struct Sink {
  std::string* body = nullptr;
  const std::function<bool(std::string_view)>* on_data = nullptr;
  bool refused = false;

  static std::size_t take(char* data, std::size_t size, std::size_t count, void* self) {
    auto* sink = static_cast<Sink*>(self);
    const std::string_view bytes(data, size * count);
    if (sink->on_data != nullptr) {
      sink->refused = !(*sink->on_data)(bytes);
    } else {
      sink->refused = sink->body->size() + bytes.size() > kAnswerBytesMax;
      if (!sink->refused) sink->body->append(bytes);
    }
    return sink->refused ? 0 : bytes.size();
  }
};

void prepare(CURL* curl, const Call& call, HeaderList& headers, Sink& sink) {
  for (const std::string& header : call.headers) headers.add(header);
  headers.add("Content-Type: application/json");
  headers.add("Expect:");  // No pause before a larger body.
  curl_easy_setopt(curl, CURLOPT_URL, call.url.c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call.method == "GET" ? nullptr : call.method.c_str());
  if (call.method == "GET") {
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call.body.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.list);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Sink::take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &sink);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(call.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");  // The registry is never behind the environment's proxy.
}

TransportError failure(CURLcode code, const Call& call) {
  const bool unsent = code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return {{ErrorKind::invalid, fmt::format("URL '{}' is not usable ({}): write http://HOST:PORT", call.url,
                                             curl_easy_strerror(code))},
            true};
  }
  if (code == CURLE_WRITE_ERROR) {
    return {{ErrorKind::overloaded, fmt::format("{} answered more than {} bytes", call.url, kAnswerBytesMax)},
            false};
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return {
        {ErrorKind::retryable, fmt::format("{} did not answer within {} ms", call.url, call.timeout.count())},
        unsent};
  }
  return {{ErrorKind::retryable, fmt::format("{} is not reachable ({}): is the registry running there?",
                                             call.url, curl_easy_strerror(code))},
          unsent};
}

}  // namespace

struct Client::Impl {
  std::mutex mutex;
  std::vector<CURL*> idle;  // Guarded by mutex; each holds its open connections.

  CURL* borrow() {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        CURL* curl = idle.back();
        idle.pop_back();
        return curl;
      }
    }
    return curl_easy_init();
  }
  void give_back(CURL* curl) {
    curl_easy_reset(curl);  // Options go, connections stay.
    {
      const std::lock_guard lock(mutex);
      if (idle.size() < kIdleConnectionsMax) {
        idle.push_back(curl);
        return;
      }
    }
    curl_easy_cleanup(curl);
  }
};

Client::Client() : impl_(std::make_unique<Impl>()) { init_curl(); }
Client::~Client() {
  for (CURL* curl : impl_->idle) curl_easy_cleanup(curl);
}

std::expected<Answer, TransportError> Client::send(const Call& call) {
  CURL* curl = impl_->borrow();
  Answer answer;
  HeaderList headers;
  Sink sink{&answer.body, nullptr};
  prepare(curl, call, headers, sink);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (curl_header* date = nullptr; curl_easy_header(curl, "Date", 0, CURLH_HEADER, -1, &date) == CURLHE_OK) {
    answer.date = std::max<std::int64_t>(0, curl_getdate(date->value, nullptr));
  }
  impl_->give_back(curl);
  if (code != CURLE_OK) return std::unexpected(failure(code, call));
  answer.status = static_cast<int>(status);
  return answer;
}

struct StreamCall::Impl {
  CURLM* multi = nullptr;
  std::atomic<bool> cancelled{false};
};

StreamCall::StreamCall() : impl_(std::make_unique<Impl>()) {
  init_curl();
  impl_->multi = curl_multi_init();
}
StreamCall::~StreamCall() { curl_multi_cleanup(impl_->multi); }

void StreamCall::cancel() {
  impl_->cancelled.store(true);
  curl_multi_wakeup(impl_->multi);
}

std::expected<int, TransportError> StreamCall::run(const Call& call,
                                                   const std::function<bool(std::string_view)>& on_data,
                                                   bool whole) {
  CURL* curl = curl_easy_init();
  HeaderList headers;
  Sink sink{nullptr, &on_data};
  prepare(curl, call, headers, sink);
  if (whole) curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  curl_multi_add_handle(impl_->multi, curl);

  CURLcode code = CURLE_OK;
  bool ended = false;
  while (!ended && !impl_->cancelled.load()) {
    int running = 0;
    if (curl_multi_perform(impl_->multi, &running) != CURLM_OK) {
      code = CURLE_FAILED_INIT;
      break;
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(impl_->multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      code = message->data.result;
      ended = true;
    }
    if (!ended) curl_multi_poll(impl_->multi, nullptr, 0, kPollMs, nullptr);
  }
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_multi_remove_handle(impl_->multi, curl);
  curl_easy_cleanup(curl);
  if (impl_->cancelled.load() || sink.refused) return 0;
  if (code != CURLE_OK) return std::unexpected(failure(code, call));
  return static_cast<int>(status);
}

}  // namespace ringshift::http
