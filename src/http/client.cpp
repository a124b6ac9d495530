#include "http/client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>

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

using ErrorText = std::array<char, CURL_ERROR_SIZE>;

void prepare_tls(CURL* curl, const ClientTls& tls) {
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT, 0L);  // A day otherwise, whatever the file says by then.
  if (!tls.ca.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, tls.ca.c_str());
  if (!tls.certificate.empty()) curl_easy_setopt(curl, CURLOPT_SSLCERT, tls.certificate.c_str());
  if (!tls.key.empty()) curl_easy_setopt(curl, CURLOPT_SSLKEY, tls.key.c_str());
}

void prepare(CURL* curl, const Call& call, HeaderList& headers, Sink& sink, ErrorText& text) {
  for (const std::string& header : call.headers) headers.add(header);
  const auto is_type = [](const std::string& header) { return header.starts_with("Content-Type:"); };
  if (std::ranges::none_of(call.headers, is_type)) headers.add("Content-Type: application/json");
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
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text.data());
  prepare_tls(curl, call.tls);
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");  // The registry is never behind the environment's proxy.
}

// TLS that trying again will not mend; nullopt: the failure is another.
std::optional<Error> tls_failure(CURLcode code, const Call& call, std::string_view detail) {
  const auto denied = [&](std::string_view what) {
    return Error{ErrorKind::denied, fmt::format("{}: {} ({})", call.url, what, detail)};
  };
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      return denied(
          call.tls.ca.empty()
              ? "its certificate is not one that the system's CAs vouch for: name the CA that signed it"
              : fmt::format("its certificate is not one that {} vouches for, at this name and time",
                            call.tls.ca));
    case CURLE_SSL_CACERT_BADFILE:
      return denied(fmt::format("CA file {} cannot be used", call.tls.ca));
    case CURLE_SSL_CERTPROBLEM:
      return denied(
          fmt::format("our certificate {} and key {} cannot be used", call.tls.certificate, call.tls.key));
    default:
      break;
  }
  // The server's refusal of ours comes as an alert, with TLS 1.3 on the first read only.
  const auto says = [&](std::string_view words) { return detail.find(words) != std::string_view::npos; };
  if (says("alert") && (says("certificate") || says("unknown ca") || says("expired"))) {
    return denied(call.tls.certificate.empty()
                      ? "it wants a certificate of ours, and none is named"
                      : fmt::format("it refuses our certificate {}", call.tls.certificate));
  }
  if (says("wrong version number")) {
    return denied("there is no TLS at this address: write http://");
  }
  return std::nullopt;
}

TransportError failure(CURLcode code, const Call& call, const ErrorText& text) {
  if (auto tls = tls_failure(code, call, text.data())) {
    // Nothing was sent to whom we do not trust.
    const bool handshake = code != CURLE_RECV_ERROR && code != CURLE_SEND_ERROR;
    return {*std::move(tls), handshake};
  }
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
  // With TLS 1.3 the request may be on its way before the server's alert is read, which is lost then.
  const bool cut = code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING;
  const char* hint = "";
  if (cut && call.url.starts_with("https://")) {
    hint = call.tls.certificate.empty() ? ", and does it want a certificate of ours"
                                        : ", and does it take our certificate";
  } else if (cut) {
    hint = ", and without TLS";
  }
  return {{ErrorKind::retryable, fmt::format("{} is not reachable ({}): is the registry running there{}?",
                                             call.url, curl_easy_strerror(code), hint)},
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
  ErrorText text{};
  prepare(curl, call, headers, sink, text);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (curl_header* date = nullptr; curl_easy_header(curl, "Date", 0, CURLH_HEADER, -1, &date) == CURLHE_OK) {
    answer.date = std::max<std::int64_t>(0, curl_getdate(date->value, nullptr));
  }
  impl_->give_back(curl);
  if (code != CURLE_OK) return std::unexpected(failure(code, call, text));
  answer.status = static_cast<int>(status);
  return answer;
}

struct StreamCall::Impl {
  CURLM* multi = nullptr;
  std::chrono::milliseconds silence{0};  // 0: nobody asks.
  std::function<bool()> go_on;
  std::atomic<bool> cancelled{false};
  std::vector<std::pair<std::string, std::string>> headers;  // Of the last answer.

  void keep_headers(CURL* curl) {
    headers.clear();
    for (curl_header* each = nullptr; headers.size() < kHeadersMax &&
                                      (each = curl_easy_nextheader(curl, CURLH_HEADER, -1, each)) != nullptr;)
      headers.emplace_back(each->name, each->value);
  }
};

StreamCall::StreamCall() : impl_(std::make_unique<Impl>()) {
  init_curl();
  impl_->multi = curl_multi_init();
}
StreamCall::~StreamCall() { curl_multi_cleanup(impl_->multi); }

std::string StreamCall::header(std::string_view name) const {
  for (const auto& [known, value] : impl_->headers) {
    const auto same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
    if (std::ranges::equal(known, name, same)) return value;
  }
  return {};
}

void StreamCall::cancel() {
  impl_->cancelled.store(true);
  curl_multi_wakeup(impl_->multi);
}

void StreamCall::on_silence(std::chrono::milliseconds after, std::function<bool()> go_on) {
  impl_->silence = after;
  impl_->go_on = std::move(go_on);
}

std::expected<int, TransportError> StreamCall::run(const Call& call,
                                                   const std::function<bool(std::string_view)>& on_data,
                                                   bool whole) {
  CURL* curl = curl_easy_init();
  HeaderList headers;
  auto heard = std::chrono::steady_clock::now();
  const std::function<bool(std::string_view)> hear = [&](std::string_view bytes) {
    heard = std::chrono::steady_clock::now();
    return on_data(bytes);
  };
  Sink sink{nullptr, &hear};
  ErrorText text{};
  prepare(curl, call, headers, sink, text);
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
    if (ended) break;
    if (impl_->go_on && std::chrono::steady_clock::now() - heard >= impl_->silence) {
      sink.refused = !impl_->go_on();
      if (sink.refused) break;
      heard = std::chrono::steady_clock::now();
    }
    const auto poll = impl_->go_on ? std::min<std::int64_t>(kPollMs, impl_->silence.count()) : kPollMs;
    curl_multi_poll(impl_->multi, nullptr, 0, static_cast<int>(poll), nullptr);
  }
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  impl_->keep_headers(curl);
  curl_multi_remove_handle(impl_->multi, curl);
  curl_easy_cleanup(curl);
  if (impl_->cancelled.load() || sink.refused) return 0;
  if (code != CURLE_OK) return std::unexpected(failure(code, call, text));
  return static_cast<int>(status);
}

}  // namespace ringshift::http
