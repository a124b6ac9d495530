#include "drill/app.h"

#include <fmt/format.h>

#include <map>

#include "base/encoding.h"
#include "drill/app_thread.h"
#include "drill/cached_copy.h"
#include "drill/client.h"
#include "drill/dice.h"

namespace ringshift::drill {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kFillStream = 4, kTtlStream = 5;
constexpr double kTtlSpread = 0.1;
constexpr std::size_t kBulk = 256;      // Commands in one pipeline.
constexpr std::size_t kChunk = 20'000;  // Keys between two looks at the progress.
constexpr milliseconds kBulkTimeout{10'000};
constexpr std::size_t kShownExamples = 8;
constexpr milliseconds kShortestTtl{1};

// Sends commands about keys to where the cache says, in pipelines, and hands out the answers.
class BulkWire {
 public:
  using Answered = std::function<void(std::uint64_t key, const Client::Value&)>;

  BulkWire(const Cache& cache, Answered answered) : cache_(cache), answered_(std::move(answered)) {}

  Status add(std::uint64_t key, const std::string& name, std::initializer_list<std::string_view> command) {
    const std::string address = cache_.address_of(name);
    auto found = pipes_.find(address);
    if (found == pipes_.end()) {
      Result<Client> client = Client::connect(address, kBulkTimeout);
      if (!client) return std::unexpected(client.error());
      found = pipes_.emplace(address, Pipe{std::move(*client), {}}).first;
    }
    found->second.client.append(command);
    found->second.keys.push_back(key);
    return found->second.keys.size() < kBulk ? Status{} : finish(found->second);
  }

  Status finish() {
    for (auto& [address, pipe] : pipes_) {
      if (Status done = finish(pipe); !done) return done;
    }
    return {};
  }

 private:
  struct Pipe {
    Client client;
    std::vector<std::uint64_t> keys;
  };

  Status finish(Pipe& pipe) {
    if (Status sent = pipe.client.flush(); !sent) return sent;
    for (const std::uint64_t key : pipe.keys) {
      const Result<Client::Value> value = pipe.client.read();
      if (!value) return std::unexpected(value.error());
      if (value->is_error()) return fail(ErrorKind::retryable, value->text);
      answered_(key, *value);
    }
    pipe.keys.clear();
    return {};
  }

  const Cache& cache_;
  const Answered answered_;
  std::map<std::string, Pipe> pipes_;
};

}  // namespace

App::App(AppOptions options, const Workload& workload, Cache& cache, OriginPool& pool)
    : options_(options),
      workload_(workload),
      cache_(cache),
      pool_(pool),
      ledger_(workload.keys()),
      probes_(std::make_unique<Probes>()) {}

App::~App() { stop(); }

Ttl App::ttl_of(std::uint64_t key, std::uint64_t turn) const {
  Dice dice(options_.seed, kTtlStream + key, turn);
  const double factor = 1 - kTtlSpread + 2 * kTtlSpread * dice.unit();
  return std::max(kShortestTtl,
                  Ttl(static_cast<Ttl::rep>(static_cast<double>(options_.ttl.count()) * factor)));
}

Status App::fill(const Progress& progress) {
  std::map<std::uint64_t, base::TimePoint> until;  // Of what is under way: a pipeline for each address.
  BulkWire wire(cache_, [this, &until](std::uint64_t key, const Client::Value&) {
    ledger_.filled(key, until[key]);
    until.erase(key);
    acknowledged_.fetch_add(1, std::memory_order_relaxed);
  });
  const double rate = options_.requests_per_second * (1 - 1.0 / kSlotsPerProbe);
  for (std::uint64_t key = 0; key < workload_.keys(); ++key) {
    if (key % kChunk == 0 && progress && !progress(key, workload_.keys())) return {};
    Dice dice(options_.seed, kFillStream, key);
    const Ttl ttl = ttl_of(key, 0);
    const double seconds = std::chrono::duration<double>(ttl).count();
    const Standing there =
        standing(rate * workload_.reads_share(key), rate * workload_.updates_share(key), seconds);
    if (dice.unit() >= there.present) continue;
    const auto left =
        std::max(kShortestTtl, Ttl(static_cast<Ttl::rep>(1000 * (seconds - there.age(dice.unit())))));
    const std::size_t bytes = workload_.body_bytes(key);
    const std::string body = bytes == 0 ? object_body(key) : object_body(key, bytes);
    const std::string name = workload_.name(key);
    until[key] = steady_clock::now() + left;
    if (Status sent = wire.add(
            key, name, {"SET", name, cache_value(key, {1, body}), "PX", std::to_string(left.count())});
        !sent) {
      return fail(sent.error().kind, "cannot fill the cache: " + sent.error().message);
    }
  }
  if (Status done = wire.finish(); !done)
    return fail(done.error().kind, "cannot fill the cache: " + done.error().message);
  return {};
}

void App::start(const Schedule& schedule, Timeline& timeline) {
  timeline_ = &timeline;
  next_ = 0;
  for (unsigned i = 0; i < options_.threads; ++i) {
    threads_.emplace_back(
        [this, schedule](const std::stop_token& stop) { Thread(*this).run(stop, schedule); });
  }
}

void App::stop() {
  for (auto& thread : threads_) thread.request_stop();
  threads_.clear();  // Joins.
}

void App::judge(Verdict verdict, base::TimePoint due, const std::function<std::string()>& what) {
  checked_.fetch_add(1, std::memory_order_relaxed);
  if (verdict == Verdict::good) return;
  (verdict == Verdict::lost ? lost_ : stale_).fetch_add(1, std::memory_order_relaxed);
  if (timeline_ != nullptr) timeline_->count(verdict == Verdict::lost ? Tally::lost : Tally::stale, due);
  const std::lock_guard lock(mutex_);
  if (examples_.size() < kShownExamples) examples_.push_back(what());
}

Status App::verify(const Progress& progress) {
  timeline_ = nullptr;  // What is found now belongs to no second.
  std::map<std::uint64_t, SharedLedger::Expectation> expected;
  BulkWire wire(cache_, [this, &expected](std::uint64_t key, const Client::Value& value) {
    const SharedLedger::Expectation before = expected[key];
    expected.erase(key);
    Verdict verdict = Verdict::good;
    if (value.is_null()) {
      verdict = ledger_.miss(key, before, steady_clock::now());
    } else {
      const std::optional<CachedCopy> copy = parse_copy(value.text);
      verdict = copy && copy->id == key ? ledger_.hit(key, before, copy->version) : Verdict::stale;
    }
    judge(verdict, {}, [&] {
      return fmt::format("{} {} at the end", verdict == Verdict::lost ? "lost write of" : "stale copy of",
                         workload_.name(key));
    });
  });
  for (std::uint64_t key = 0; key < workload_.keys(); ++key) {
    if (key % kChunk == 0 && progress && !progress(key, workload_.keys())) return {};
    // Also what should not be there: a copy that was deleted must not have come back.
    const std::string name = workload_.name(key);
    expected[key] = ledger_.before_read(key);
    if (Status sent = wire.add(key, name, {"GET", name}); !sent)
      return fail(sent.error().kind, "cannot read the cache back: " + sent.error().message);
  }
  if (Status done = wire.finish(); !done)
    return fail(done.error().kind, "cannot read the cache back: " + done.error().message);
  return verify_probes(*cache_.client());
}

Status App::verify_probes(CacheClient& client) {
  using Outcome = CacheClient::Outcome;
  lost_increments_ = excess_increments_ = 0;
  for (std::size_t i = 0; i < kAppRegisters; ++i) {
    Register& probe = probes_->registers[i];
    const CacheClient::Answer answer = client.get(Probes::register_key(i), kForEver);
    if (answer.outcome != Outcome::done && answer.outcome != Outcome::absent)
      return fail(ErrorKind::retryable, answer.text);
    const std::uint64_t floor = probe.floor();
    Verdict verdict =
        probe.read(floor, answer.outcome == Outcome::done, base::parse_u64(answer.text).value_or(0));
    if (verdict == Verdict::lost && probes_->lost_at[i].exchange(floor) == floor) verdict = Verdict::good;
    judge(verdict, {}, [&] {
      return fmt::format("{} is not what was acknowledged, at the end", Probes::register_key(i));
    });
  }
  for (std::size_t i = 0; i < kAppCounters; ++i) {
    const CacheClient::Answer answer = client.get(Probes::counter_key(i), kForEver);
    if (answer.outcome != Outcome::done && answer.outcome != Outcome::absent)
      return fail(ErrorKind::retryable, answer.text);
    const std::uint64_t value = base::parse_u64(answer.text).value_or(0);
    lost_increments_ += probes_->counters[i].lost(value);
    excess_increments_ += probes_->counters[i].excess(value);
  }
  return {};
}

Verdicts App::verdicts() const {
  Verdicts v;
  v.lost_writes = lost_ + lost_increments_;
  v.stale_reads = stale_ + excess_increments_;
  v.reads_checked = checked_;
  v.writes_acknowledged = acknowledged_;
  v.unknown_outcomes = unknown_;
  v.unverified_keys = ledger_.clouded();
  const std::lock_guard lock(mutex_);
  v.examples = examples_;
  return v;
}

}  // namespace ringshift::drill
