#include "drill/load.h"

#include <fmt/format.h>

#include <thread>

#include "base/encoding.h"
#include "drill/worker.h"

namespace ringshift::drill {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kProgressEvery{50};
constexpr unsigned kMaxThreads = static_cast<unsigned>(kRegisters);
constexpr unsigned kMaxPipeline = 1024;
constexpr milliseconds kProbeTimeout{5000};

class RealLoad final : public Load {
 public:
  explicit RealLoad(LoadOptions options) : shared_(std::move(options), steady_clock::now()) {}
  ~RealLoad() override { stop(); }

  Status add_workers(Origin& origin) {
    for (std::size_t i = 0; i < shared_.options.threads; ++i) {
      Result<Origin::Session> session = origin.session();
      if (!session) return std::unexpected(session.error());
      workers_.push_back(std::make_unique<Worker>(shared_, i, std::move(*session)));
    }
    return {};
  }

  Status fill(const Progress& progress) override {
    return on_all(progress, [](Worker& worker) { return worker.fill(); });
  }

  void start() override {
    for (auto& worker : workers_) {
      threads_.emplace_back([&worker](const std::stop_token& stop) { worker->run(stop); });
    }
  }

  void stop() override {
    for (auto& thread : threads_) thread.request_stop();
    threads_.clear();  // Joins.
  }

  Status verify(const Progress& progress) override {
    Status read = on_all(progress, [](Worker& worker) { return worker.verify(); });
    if (!read) return read;
    if (shared_.cancelled.load()) return {};
    return verify_probes();
  }

  Verdicts verdicts() const override {
    Verdicts v;
    v.lost_writes = shared_.lost.load() + lost_increments_;
    v.stale_reads = shared_.stale.load() + excess_increments_;
    v.reads_checked = shared_.checked.load();
    v.writes_acknowledged = shared_.acknowledged.load();
    v.unknown_outcomes = shared_.unknown.load();
    v.examples = shared_.examples();
    if (threads_.empty()) {  // The ledgers belong to running threads.
      for (const auto& worker : workers_) v.unverified_keys += worker->clouded();
    }
    return v;
  }

  Recorder& recorder() noexcept override { return shared_.recorder; }

 private:
  // Runs `work` on a thread for each worker; reports the first failure.
  template <class Work>
  Status on_all(const Progress& progress, Work work) {
    shared_.progress = 0;
    shared_.cancelled = false;
    const std::uint64_t total = objects_of(shared_.options);
    std::vector<Status> results(workers_.size());
    std::atomic<std::size_t> finished{0};
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back([&, i] {
        results[i] = work(*workers_[i]);
        ++finished;
      });
    }
    while (finished < workers_.size()) {
      std::this_thread::sleep_for(kProgressEvery);
      if (progress && !progress(shared_.progress.load(), total)) shared_.cancelled = true;
    }
    threads.clear();
    for (Status& result : results) {
      if (!result) return result;
    }
    return {};
  }

  // The registers' and counters' final values, against every acknowledged write of the whole run.
  Status verify_probes() {
    Result<Client> client = Client::connect(shared_.options.addresses.front(), kProbeTimeout);
    if (!client) return std::unexpected(client.error());
    for (std::size_t i = 0; i < kRegisters; ++i) {
      const Result<Client::Value> value = client->call({"GET", register_key(i)});
      if (!value || value->is_error()) return unreadable(register_key(i), value);
      const Register& probe = shared_.registers[i];
      const std::uint64_t number = base::parse_u64(value->text).value_or(0);
      shared_.judge(probe.read(probe.floor(), !value->is_null(), number), register_key(i),
                    fmt::format("finally '{}', acknowledged before {}", value->text, probe.floor()));
    }
    lost_increments_ = excess_increments_ = 0;
    for (std::size_t i = 0; i < kCounters; ++i) {
      const Result<Client::Value> value = client->call({"GET", counter_key(i)});
      if (!value || value->is_error()) return unreadable(counter_key(i), value);
      const std::uint64_t number = base::parse_u64(value->text).value_or(0);
      lost_increments_ += shared_.counters[i].lost(number);
      excess_increments_ += shared_.counters[i].excess(number);
    }
    return {};
  }

  static Status unreadable(const std::string& key, const Result<Client::Value>& value) {
    return fail(ErrorKind::retryable,
                fmt::format("cannot read {} back: {}", key, value ? value->text : value.error().message));
  }

  Shared shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint64_t lost_increments_ = 0, excess_increments_ = 0;  // As of the last verify().
  std::vector<std::jthread> threads_;                          // Last: they use all of the above.
};

Status check(const LoadOptions& o) {
  if (o.addresses.empty()) return fail(ErrorKind::invalid, "the load has no proxy address");
  if (o.threads < 1 || o.threads > kMaxThreads) {
    return fail(ErrorKind::invalid, fmt::format("{} load threads: choose 1 to {}", o.threads, kMaxThreads));
  }
  if (o.pipeline < 2 || o.pipeline > kMaxPipeline) {
    return fail(ErrorKind::invalid,
                fmt::format("pipelines of {} requests: choose 2 to {}", o.pipeline, kMaxPipeline));
  }
  if (o.objects < 100 * o.threads) {
    return fail(ErrorKind::invalid, fmt::format("{} objects are too few for {} threads: choose at least {}",
                                                o.objects, o.threads, 100 * o.threads));
  }
  if (!(o.requests_per_second >= 1) || !(o.zipf_exponent > 0) || o.batches_per_update < 1) {
    return fail(ErrorKind::invalid, fmt::format("rate {} and Zipf exponent {}: both must be positive",
                                                o.requests_per_second, o.zipf_exponent));
  }
  return {};
}

}  // namespace

std::uint64_t objects_of(const LoadOptions& options) noexcept {
  return (options.objects + options.threads - 1) / options.threads * options.threads;
}

std::string object_key(std::uint64_t id) { return "object:" + std::to_string(id); }

Result<std::unique_ptr<Load>> Load::create(LoadOptions options, Origin& origin) {
  if (Status valid = check(options); !valid) return std::unexpected(valid.error());
  auto load = std::make_unique<RealLoad>(std::move(options));
  if (Status added = load->add_workers(origin); !added) return std::unexpected(added.error());
  return load;
}

}  // namespace ringshift::drill
