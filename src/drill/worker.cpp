#include "drill/worker.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>

#include "base/encoding.h"
#include "drill/cached_copy.h"

namespace ringshift::drill {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Value = Client::Value;

constexpr milliseconds kTimeout{5000};  // Above any request timeout of a proxy.
constexpr milliseconds kReconnectAfter{50};
constexpr std::uint64_t kBatchesPerProbe = 4;  // Every so many pipelines carry one probe.
constexpr std::size_t kPendingPerBatch = 4;
constexpr std::size_t kMaxPending = 10'000;

}  // namespace

std::string register_key(std::size_t index) { return fmt::format("probe:register:{}", index); }
std::string counter_key(std::size_t index) { return fmt::format("probe:counter:{}", index); }

double absent_share(const LoadOptions& options) noexcept {
  const double gets = options.pipeline - 1.0 / static_cast<double>(kBatchesPerProbe);
  const double updates = 1.0 / options.batches_per_update;
  return updates / (gets + updates);
}

void Shared::judge(Verdict verdict, std::string_view key, std::string_view detail) {
  checked.fetch_add(1, std::memory_order_relaxed);
  if (verdict == Verdict::good) return;
  (verdict == Verdict::lost ? lost : stale).fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (examples_.size() < kMaxExamples) {
    examples_.push_back(
        fmt::format("{} {}: {}", verdict == Verdict::lost ? "lost write of" : "stale read of", key, detail));
  }
}

std::vector<std::string> Shared::examples() const {
  const std::lock_guard lock(mutex_);
  return examples_;
}

Worker::Worker(Shared& shared, std::size_t index, Origin::Session session)
    : shared_(shared),
      index_(index),
      session_(std::move(session)),
      ledger_(objects_of(shared.options) / shared.options.threads),
      zipf_(ledger_.size(), shared.options.zipf_exponent, shared.options.seed * 1000 + index),
      random_(shared.options.seed * 2000 + index) {}

bool Worker::connect() {
  if (client_) return true;
  const auto now = steady_clock::now();
  if (now < next_attempt_) return false;
  next_attempt_ = now + kReconnectAfter;
  const auto& addresses = shared_.options.addresses;
  Result<Client> client = Client::connect(addresses[index_ % addresses.size()], kTimeout);
  if (!client) return false;
  client_.emplace(std::move(*client));
  return true;
}

void Worker::run(const std::stop_token& stop) {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // Wake within about a microsecond of the schedule, not 50.
  const LoadOptions& options = shared_.options;
  const auto interval = std::chrono::duration_cast<base::Duration>(
      std::chrono::duration<double>(options.pipeline * options.threads / options.requests_per_second));
  base::TimePoint next = steady_clock::now() + interval * (index_ + 1) / options.threads;
  while (!stop.stop_requested()) {
    std::this_thread::sleep_until(next);
    batch(next);
    next += interval;
    const base::TimePoint now = steady_clock::now();
    if (now > next + interval) {
      const auto missed = (now - next) / interval;
      next += missed * interval;
      shared_.recorder.count(index_, Event::skipped, now,
                             static_cast<std::uint32_t>(missed) * options.pipeline);
    }
  }
}

std::size_t Worker::sample_key() { return zipf_.next(); }

void Worker::choose() {
  requests_.clear();
  const LoadOptions& options = shared_.options;
  if (batches_ % kBatchesPerProbe == 0) {
    const std::uint64_t pick = random_();
    const std::size_t own = (pick >> 8) % (kRegisters / options.threads) * options.threads + index_;
    switch (pick % 4) {
      case 0:
        requests_.push_back({Kind::register_set, own, 0});
        break;
      case 1:
        requests_.push_back({Kind::increment, (pick >> 8) % kCounters, 0});
        break;
      default:
        requests_.push_back({Kind::register_get, (pick >> 8) % kRegisters, 0});
        break;
    }
  }
  while (requests_.size() < options.pipeline) requests_.push_back({Kind::object_get, sample_key(), 0});
}

void Worker::append(Request& request) {
  switch (request.kind) {
    case Kind::object_get:
      client_->append({"GET", object_key(id_of(request.key))});
      break;
    case Kind::register_get:
      request.value = shared_.registers[request.key].floor();
      client_->append({"GET", register_key(request.key)});
      break;
    case Kind::register_set:
      request.value = shared_.registers[request.key].next();
      client_->append({"SET", register_key(request.key), std::to_string(request.value)});
      break;
    case Kind::increment:
      request.value = shared_.counters[request.key].floor();
      client_->append({"INCR", counter_key(request.key)});
      break;
  }
}

// One scheduled pipeline: reads and probes; then the SETs and DELs that follow from them.
void Worker::batch(base::TimePoint scheduled) {
  ++batches_;
  Recorder& recorder = shared_.recorder;
  const LoadOptions& options = shared_.options;
  if (!connect()) {
    // The application goes to the origin for every read that the cache does not take.
    choose();
    const base::TimePoint now = steady_clock::now();
    for (const Request& request : requests_) {
      recorder.count(index_, Event::error, now);
      if (request.kind == Kind::object_get) {
        recorder.count(index_, Event::get, now);
        refill(request.key, false, now);
      }
    }
    return;
  }
  choose();
  for (Request& request : requests_) append(request);
  recorder.count(index_, Event::request, steady_clock::now(), static_cast<std::uint32_t>(requests_.size()));
  Status alive = client_->flush();
  for (const Request& request : requests_) {
    Result<Value> value = alive ? client_->read() : Result<Value>(std::unexpected(alive.error()));
    if (value) {
      recorder.latency(index_, client_->arrived() - scheduled);
      answer(request, *value, client_->arrived());
    } else {
      alive = std::unexpected(value.error());
      no_answer(request, steady_clock::now());
    }
  }
  if (!alive) client_.reset();
  if (batches_ % options.batches_per_update == 0) update_one();
  flush_changes();
}

Worker::Outcome Worker::outcome_of(const Value& value) {
  if (!value.is_error()) return Outcome::done;
  // The proxy's promise: these were not executed. A member's own refusal (OOM, ERR, ...) was not, either.
  return value.text.starts_with("TIMEOUT") ? Outcome::unknown : Outcome::not_executed;
}

void Worker::answer(const Request& request, const Value& value, base::TimePoint when) {
  const Outcome outcome = outcome_of(value);
  if (request.kind == Kind::object_get) return answer_object(request, value, when);
  if (outcome == Outcome::unknown) return no_answer(request, when);
  if (outcome == Outcome::not_executed) {
    shared_.recorder.count(index_, Event::error, when);
    return;
  }
  switch (request.kind) {
    case Kind::register_set:
      shared_.registers[request.key].acknowledged(request.value);
      shared_.acknowledged.fetch_add(1, std::memory_order_relaxed);
      break;
    case Kind::register_get: {
      const auto number = base::parse_u64(value.text);
      const Verdict verdict =
          shared_.registers[request.key].read(request.value, !value.is_null(), number.value_or(0));
      shared_.judge(verdict, register_key(request.key),
                    fmt::format("answer '{}', acknowledged before {}", value.is_null() ? "nil" : value.text,
                                request.value));
      break;
    }
    default:
      shared_.counters[request.key].incremented(request.value, static_cast<std::uint64_t>(value.integer));
      shared_.acknowledged.fetch_add(1, std::memory_order_relaxed);
      break;
  }
}

void Worker::answer_object(const Request& request, const Value& value, base::TimePoint when) {
  Recorder& recorder = shared_.recorder;
  recorder.count(index_, Event::get, when);
  if (value.is_error()) {
    recorder.count(index_, Event::error, when);
    refill(request.key, false, when);
    return;
  }
  judge_object(request.key, value);
  if (value.is_null()) {
    refill(request.key, true, when);
  } else {
    recorder.count(index_, Event::hit, when);
  }
}

void Worker::judge_object(std::size_t key, const Value& value) {
  const std::uint64_t id = id_of(key);
  if (value.is_null()) {
    shared_.judge(ledger_.miss(key), object_key(id),
                  "answer nil, but a SET was acknowledged and no DEL was sent since");
    return;
  }
  const std::optional<CachedCopy> cached = parse_copy(value.text);
  const Verdict verdict = cached && cached->id == id ? ledger_.hit(key, cached->version) : Verdict::stale;
  if (verdict == Verdict::good) {  // By far the usual case: no text is made for it.
    shared_.checked.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  shared_.judge(verdict, object_key(id),
                fmt::format("answer '{}', while the origin has version {} and the cached copy was {}",
                            value.text.substr(0, 24), ledger_.origin_version(key),
                            ledger_.expected_present(key) ? "written" : "deleted"));
}

void Worker::no_answer(const Request& request, base::TimePoint when) {
  shared_.recorder.count(index_, Event::error, when);
  switch (request.kind) {
    case Kind::object_get:
      shared_.recorder.count(index_, Event::get, when);
      refill(request.key, false, when);
      return;
    case Kind::register_get:
      return;
    case Kind::register_set:
      shared_.registers[request.key].outcome_unknown();
      break;
    case Kind::increment:
      shared_.counters[request.key].outcome_unknown();
      break;
  }
  shared_.unknown.fetch_add(1, std::memory_order_relaxed);
}

// Reads the origin; `allowed` says whether the cache may be filled with what it gives.
void Worker::refill(std::size_t key, bool allowed, base::TimePoint when) {
  shared_.recorder.count(index_, Event::origin_read, when);
  const Result<Object> object = session_.get(id_of(key));
  if (!object) {
    shared_.recorder.count(index_, Event::error, when);
    return;
  }
  // An invalidation is still owed for this key: a fill now could be undone by it, in any order.
  if (!allowed || std::ranges::find(pending_deletes_, key) != pending_deletes_.end()) return;
  changes_.push_back({key, true});
  values_.push_back(cache_value(id_of(key), *object));
}

// The SETs of a pipeline come before its DELs, and a key read in this pipeline is not updated in it.
void Worker::update_one() {
  std::size_t key = sample_key();
  const auto busy = [this](std::size_t k) {
    return std::ranges::any_of(requests_,
                               [k](const Request& r) { return r.kind == Kind::object_get && r.key == k; });
  };
  while (busy(key)) key = sample_key();
  const Result<std::uint32_t> version = session_.update(id_of(key));
  shared_.recorder.count(index_, Event::origin_update, steady_clock::now());
  if (!version) {
    shared_.recorder.count(index_, Event::error, steady_clock::now());
    return;
  }
  ledger_.updated(key, *version);
  if (std::ranges::find(pending_deletes_, key) == pending_deletes_.end()) changes_.push_back({key, false});
}

void Worker::flush_changes() {
  for (std::size_t i = 0; i < kPendingPerBatch && !pending_deletes_.empty(); ++i) {
    changes_.push_back({pending_deletes_.front(), false});
    pending_deletes_.pop_front();
  }
  if (changes_.empty()) return;
  const base::TimePoint sent = steady_clock::now();
  if (client_) {
    std::size_t value = 0;
    for (const Change& change : changes_) {
      const std::string key = object_key(id_of(change.key));
      if (change.fill) {
        client_->append({"SET", key, values_[value++]});
      } else {
        client_->append({"DEL", key});
      }
    }
    shared_.recorder.count(index_, Event::request, sent, static_cast<std::uint32_t>(changes_.size()));
  }
  const bool was_sent = client_.has_value();
  bool alive = was_sent && client_->flush().has_value();
  for (const Change& change : changes_) {
    if (!was_sent) {
      settle(change, Outcome::not_executed);
      continue;
    }
    const Result<Value> value = alive ? client_->read() : fail(ErrorKind::retryable, "");
    alive = value.has_value();
    if (value) shared_.recorder.latency(index_, client_->arrived() - sent);
    settle(change, value ? outcome_of(*value) : Outcome::unknown);
  }
  if (!alive) client_.reset();
  changes_.clear();
  values_.clear();
}

void Worker::settle(const Change& change, Outcome outcome) {
  if (outcome == Outcome::done) {
    shared_.acknowledged.fetch_add(1, std::memory_order_relaxed);
    if (change.fill) {
      ledger_.set_acknowledged(change.key);
    } else {
      ledger_.deleted_acknowledged(change.key);
    }
    return;
  }
  shared_.recorder.count(index_, Event::error, steady_clock::now());
  if (outcome == Outcome::unknown) {
    shared_.unknown.fetch_add(1, std::memory_order_relaxed);
    ledger_.outcome_unknown(change.key);
  }
  // Until a DEL is acknowledged, the old copy may be seen: the ledger's floor has not moved.
  if (!change.fill) {
    if (pending_deletes_.size() < kMaxPending) {
      pending_deletes_.push_back(change.key);
    } else {
      ledger_.outcome_unknown(change.key);
    }
  }
}

std::uint64_t Worker::clouded() const {
  std::uint64_t count = 0;
  for (std::size_t key = 0; key < ledger_.size(); ++key) count += ledger_.clouded(key) ? 1 : 0;
  return count;
}

}  // namespace ringshift::drill
