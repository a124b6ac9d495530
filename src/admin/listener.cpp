#include "admin/listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "admin/process.h"

namespace ringshift::admin {
namespace {

constexpr std::string_view kListenerText = "text/plain; charset=utf-8";
constexpr const char* kKeptHeaders[] = {"Authorization", "Content-Type", "Accept-Language", "Accept"};

std::string host_of_header(std::string_view header) {
  if (header.starts_with('[')) return std::string(header.substr(1, header.find(']') - 1));
  return std::string(header.substr(0, header.find(':')));
}

// The reply of a GET without its body, and with its length.
class HeadDeferred final : public http::Deferred {
 public:
  explicit HeadDeferred(std::unique_ptr<http::Deferred> inner) : inner_(std::move(inner)) {}
  void add_header(const std::string& name, const std::string& value) override {
    inner_->add_header(name, value);
  }
  void reply(int status, std::string_view content_type, std::string_view body) override {
    inner_->add_header("Content-Length", std::to_string(body.size()));
    inner_->reply(status, content_type, "");
  }

 private:
  std::unique_ptr<http::Deferred> inner_;
};

class HeadExchange final : public http::Exchange {
 public:
  explicit HeadExchange(http::Exchange& exchange) : exchange_(exchange) {}
  void reply(int status, std::string_view content_type, std::string_view body) override {
    exchange_.add_header("Content-Length", std::to_string(body.size()));
    exchange_.reply(status, content_type, "");
  }
  void add_header(const std::string& name, const std::string& value) override {
    exchange_.add_header(name, value);
  }
  std::unique_ptr<http::Stream> stream(std::string_view content_type) override {
    return exchange_.stream(content_type);
  }
  std::unique_ptr<http::Deferred> defer() override {
    return std::make_unique<HeadDeferred>(exchange_.defer());
  }

 private:
  http::Exchange& exchange_;
};

}  // namespace

struct Listener::Impl {
  struct PathEntry {
    std::string path;
    std::map<std::string, http::Handler> methods;

    [[nodiscard]] bool matches(std::string_view asked) const {
      return path.ends_with('/') ? asked.starts_with(path) : asked == path;
    }
  };

  Options options;

  std::mutex mutex;
  // Guarded by mutex:
  std::vector<std::shared_ptr<const PathEntry>> table;  // By length, the longest path first.
  std::vector<Collector> collectors;
  std::vector<std::function<Status()>> conditions;

  struct Job {
    std::uint64_t id = 0;
    http::Request request;
    SlowHandler handler;
  };
  std::mutex work_mutex;
  std::condition_variable work_there;
  // Guarded by work_mutex:
  std::deque<Job> jobs;
  bool stopping = false;
  std::vector<std::thread> workers;  // Started with the first slow handler, under `mutex`.

  // Of the server's thread:
  std::map<std::uint64_t, std::unique_ptr<http::Deferred>> waiting;
  std::uint64_t next_id = 0;

  std::unique_ptr<http::Server> http;  // Last: its thread uses all above.

  ~Impl() {
    {
      const std::lock_guard lock(work_mutex);
      stopping = true;
      jobs.clear();
    }
    work_there.notify_all();
    for (std::thread& worker : workers) worker.join();
    http.reset();
    waiting.clear();  // Their connections are gone.
  }

  void put(std::string method, std::string path, http::Handler handler);
  void handle(const http::Request& request, http::Exchange& exchange);
  void dispatch(const http::Request& request, const std::string& method, http::Exchange& exchange);
  void not_found(const http::Request& request, http::Exchange& exchange);
  void metrics(http::Exchange& exchange);
  void readiness(http::Exchange& exchange);
  void queue(const http::Request& request, http::Exchange& exchange, const SlowHandler& handler);
  void work();
  [[nodiscard]] std::optional<std::string> foreign(const http::Request& request) const;
};

void Listener::Impl::put(std::string method, std::string path, http::Handler handler) {
  const std::lock_guard lock(mutex);
  auto entry = std::make_shared<PathEntry>();
  entry->path = path;
  const auto found = std::ranges::find(table, path, [](const auto& one) { return one->path; });
  if (found != table.end()) entry->methods = (*found)->methods;
  entry->methods[std::move(method)] = std::move(handler);
  if (found != table.end()) {
    *found = std::move(entry);
    return;
  }
  const auto at =
      std::ranges::find_if(table, [&](const auto& one) { return one->path.size() < path.size(); });
  table.insert(at, std::move(entry));
}

// Why a browser must not be answered; nullopt for everybody else.
std::optional<std::string> Listener::Impl::foreign(const http::Request& request) const {
  const std::optional<std::string> host = request.header("Host");
  if (host && !http::is_loopback(host_of_header(*host))) {
    return fmt::format("this port answers requests to a loopback address only, not to '{}'", *host);
  }
  const std::optional<std::string> origin = request.header("Origin");
  if (origin && (!host || *origin != "http://" + *host)) {
    return fmt::format("this port answers pages of its own only, not those of '{}'", *origin);
  }
  return std::nullopt;
}

void Listener::Impl::handle(const http::Request& request, http::Exchange& exchange) {
  exchange.add_header("X-Content-Type-Options", "nosniff");
  if (const auto why = foreign(request)) return exchange.reply(403, kListenerText, *why + "\n");
  if (request.method == "HEAD") {
    HeadExchange head(exchange);
    return dispatch(request, "GET", head);
  }
  dispatch(request, request.method, exchange);
}

void Listener::Impl::dispatch(const http::Request& request, const std::string& method,
                              http::Exchange& exchange) {
  std::shared_ptr<const PathEntry> entry;
  {
    const std::lock_guard lock(mutex);
    const auto found =
        std::ranges::find_if(table, [&](const auto& one) { return one->matches(request.path); });
    if (found != table.end()) entry = *found;
  }
  if (!entry) return not_found(request, exchange);
  const auto handler = entry->methods.find(method);
  if (handler != entry->methods.end()) return handler->second(request, exchange);
  std::string allowed;
  for (const auto& [name, ignored] : entry->methods) {
    allowed += (allowed.empty() ? "" : ", ") + (name == "GET" ? "GET, HEAD" : name);
  }
  exchange.add_header("Allow", allowed);
  exchange.reply(405, kListenerText,
                 fmt::format("{} is not for {}: use {}\n", method, request.path, allowed));
}

void Listener::Impl::not_found(const http::Request& request, http::Exchange& exchange) {
  std::string known;
  {
    const std::lock_guard lock(mutex);
    for (const auto& entry : table) known += (known.empty() ? "" : ", ") + entry->path;
  }
  exchange.reply(404, kListenerText, fmt::format("nothing is at {}: there are {}\n", request.path, known));
}

void Listener::Impl::metrics(http::Exchange& exchange) {
  std::vector<Collector> all;
  {
    const std::lock_guard lock(mutex);
    all = collectors;
  }
  telemetry::Exposition page;
  for (const Collector& collector : all) collector(page);
  exchange.reply(200, telemetry::Exposition::kContentType, page.text());
}

void Listener::Impl::readiness(http::Exchange& exchange) {
  std::vector<std::function<Status()>> all;
  {
    const std::lock_guard lock(mutex);
    all = conditions;
  }
  if (all.empty()) return exchange.reply(503, kListenerText, "starting\n");
  std::string missing;
  for (const auto& condition : all) {
    if (const Status holds = condition(); !holds) missing += holds.error().message + "\n";
  }
  if (!missing.empty()) return exchange.reply(503, kListenerText, missing);
  exchange.reply(200, kListenerText, "ready\n");
}

void Listener::Impl::queue(const http::Request& request, http::Exchange& exchange,
                           const SlowHandler& handler) {
  Job job{++next_id, request, handler};
  // The raw request may be gone when the handler asks.
  std::map<std::string, std::string> kept;
  for (const char* name : kKeptHeaders) {
    if (auto value = request.header(name)) kept.emplace(name, std::move(*value));
  }
  job.request.header = [kept = std::move(kept)](const std::string& name) -> std::optional<std::string> {
    const auto found = kept.find(name);
    return found == kept.end() ? std::nullopt : std::optional(found->second);
  };
  {
    const std::lock_guard lock(work_mutex);
    if (jobs.size() >= kQueued) {
      exchange.add_header("Retry-After", "1");
      return exchange.reply(503, kListenerText,
                            fmt::format("{} requests wait already: try again soon\n", kQueued));
    }
    jobs.push_back(std::move(job));
  }
  waiting.emplace(next_id, exchange.defer());
  work_there.notify_one();
}

void Listener::Impl::work() {
  while (true) {
    std::unique_lock lock(work_mutex);
    work_there.wait(lock, [this] { return stopping || !jobs.empty(); });
    if (stopping) return;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    auto answer = std::make_shared<Answer>(job.handler(job.request));
    http->post([this, id = job.id, answer] {
      const auto found = waiting.find(id);
      if (found == waiting.end()) return;
      for (const auto& [name, value] : answer->headers) found->second->add_header(name, value);
      found->second->reply(answer->status, answer->content_type, answer->body);
      waiting.erase(found);
    });
  }
}

Listener::Listener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() = default;

Result<std::unique_ptr<Listener>> Listener::start(const Options& options) {
  if (!http::is_loopback(options.host)) {
    return fail(
        ErrorKind::denied,
        fmt::format("{} {}:{}: the admin port listens on loopback only, since whoever reaches it reads "
                    "everything: use 127.0.0.1, and a tunnel or a proxy of yours for other machines",
                    options.flag, options.host, options.port));
  }
  auto impl = std::make_unique<Impl>();
  Impl* const self = impl.get();
  self->options = options;
  self->put("GET", "/metrics", [self](const http::Request&, http::Exchange& e) { self->metrics(e); });
  self->put("GET", "/healthz",
            [](const http::Request&, http::Exchange& e) { e.reply(200, kListenerText, "ok\n"); });
  self->put("GET", "/readyz", [self](const http::Request&, http::Exchange& e) { self->readiness(e); });
  self->collectors.emplace_back(collect_process);
  http::ServerOptions server;
  server.host = options.host;
  server.port = options.port;
  server.flag = options.flag;
  auto listening = http::Server::start(
      server,
      [self](const http::Request& request, http::Exchange& exchange) { self->handle(request, exchange); });
  if (!listening) return fail(listening.error().kind, "the admin port: " + listening.error().message);
  self->http = std::move(*listening);
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

void Listener::add(std::string method, std::string path, http::Handler handler) {
  impl_->put(std::move(method), std::move(path), std::move(handler));
}

void Listener::add_slow(std::string method, std::string path, SlowHandler handler) {
  {
    const std::lock_guard lock(impl_->mutex);
    while (impl_->workers.size() < kWorkers) {
      impl_->workers.emplace_back([self = impl_.get()] { self->work(); });
    }
  }
  impl_->put(std::move(method), std::move(path),
             [self = impl_.get(), handler = std::move(handler)](const http::Request& request,
                                                                http::Exchange& exchange) {
               self->queue(request, exchange, handler);
             });
}

void Listener::collect(Collector collector) {
  const std::lock_guard lock(impl_->mutex);
  impl_->collectors.push_back(std::move(collector));
}

void Listener::ready_if(std::function<Status()> condition) {
  const std::lock_guard lock(impl_->mutex);
  impl_->conditions.push_back(std::move(condition));
}

std::string Listener::url() const {
  const std::string& host = impl_->options.host;
  return host.find(':') == std::string::npos ? fmt::format("http://{}:{}", host, impl_->http->port())
                                             : fmt::format("http://[{}]:{}", host, impl_->http->port());
}

http::Server& Listener::server() noexcept { return *impl_->http; }

}  // namespace ringshift::admin
