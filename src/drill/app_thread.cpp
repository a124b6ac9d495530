#include "drill/app_thread.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include "base/encoding.h"
#include "drill/cached_copy.h"
#include "drill/dice.h"

namespace ringshift::drill {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kProbeStream = 3;
constexpr int kDeleteTries = 3;
constexpr milliseconds kDeleteAgainAfter{20};
constexpr milliseconds kLongestSleep{100};  // Between looks at whether to stop.

}  // namespace

void App::Thread::run(const std::stop_token& stop, const Schedule& schedule) {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // Wake within about a microsecond of the schedule, not 50.
  while (!stop.stop_requested()) {
    const std::uint64_t slot = app_.next_.fetch_add(1, std::memory_order_relaxed);
    const base::TimePoint due = schedule.due(slot);
    base::TimePoint now = steady_clock::now();
    while (now < due && !stop.stop_requested()) {
      std::this_thread::sleep_until(std::min<base::TimePoint>(due, now + kLongestSleep));
      now = steady_clock::now();
    }
    if (stop.stop_requested()) return;
    Timeline& timeline = *app_.timeline_;
    timeline.count(Tally::request, due);
    if (now - due > kLateAfter) timeline.count(Tally::late, due);
    if (now - due > app_.options_.deadline) {
      timeline.count(Tally::shed, due);
      timeline.count(Tally::error, due);
      timeline.answered(due, app_.options_.deadline);
      continue;
    }
    serve(slot, due);
  }
}

void App::Thread::serve(std::uint64_t slot, base::TimePoint due) {
  bool good = false;
  if (slot % kSlotsPerProbe == 0) {
    good = probe(slot, due);
  } else {
    const Request request = app_.workload_.at(slot - slot / kSlotsPerProbe - 1);
    good = request.update ? update(request.key, due) : read(request.key, slot, due);
  }
  if (!good) app_.timeline_->count(Tally::error, due);
  app_.timeline_->answered(due, steady_clock::now() - due);
}

void App::Thread::note(Outcome outcome, base::TimePoint due) {
  if (outcome != Outcome::failed && outcome != Outcome::unknown) return;
  app_.timeline_->count(Tally::cache_error, due);
  if (outcome == Outcome::unknown) app_.unknown_.fetch_add(1, std::memory_order_relaxed);
}

bool App::Thread::read(std::uint64_t key, std::uint64_t slot, base::TimePoint due) {
  const std::string name = app_.workload_.name(key);
  const Ttl ttl = app_.ttl_of(key, slot);
  const SharedLedger::Expectation expected = app_.ledger_.before_read(key);
  const CacheClient::Answer answer = client_->get(name, ttl);
  const base::TimePoint now = steady_clock::now();
  app_.timeline_->count(Tally::get, due);
  if (answer.outcome == Outcome::done) {
    app_.timeline_->count(Tally::hit, due);
    const std::optional<CachedCopy> copy = parse_copy(answer.text);
    const bool own = copy && copy->id == key;
    const Verdict verdict = own ? app_.ledger_.hit(key, expected, copy->version) : Verdict::stale;
    app_.judge(verdict, due, [&] {
      return fmt::format("stale read of {}: '{}', but version {} was invalidated before it was asked for",
                         name, answer.text.substr(0, 24), expected.floor - 1);
    });
    return true;
  }
  if (answer.outcome == Outcome::absent) {
    app_.judge(app_.ledger_.miss(key, expected, now), due, [&] {
      return fmt::format("lost write of {}: a copy was acknowledged with time to live left, and is gone",
                         name);
    });
  } else {
    app_.timeline_->count(Tally::cache_error, due);
  }
  return refill(key, name, ttl, answer.outcome == Outcome::absent, due);
}

// From the origin; `may_set` says whether the cache gets a copy.
bool App::Thread::refill(std::uint64_t key, const std::string& name, Ttl ttl, bool may_set,
                         base::TimePoint due) {
  Timeline& timeline = *app_.timeline_;
  const base::TimePoint asked = steady_clock::now();
  timeline.count(Tally::origin_asked, asked);
  std::optional<Object> object;
  {
    Result<OriginPool::Lease> lease = app_.pool_.take();
    if (!lease) {
      timeline.count(Tally::origin_timeout, asked);
      timeline.origin_answered(asked, steady_clock::now() - asked);
      return false;
    }
    Result<Object> read = lease->get(key);
    timeline.origin_answered(asked, steady_clock::now() - asked);
    if (!read) return false;
    object = std::move(*read);
  }
  if (!may_set) return true;
  const std::lock_guard guard(app_.ledger_.guard(key));
  if (!app_.ledger_.may_fill(key, object->version)) return true;  // Updated meanwhile: what we have is old.
  const base::TimePoint sent = steady_clock::now();
  const Outcome outcome = client_->set(name, cache_value(key, *object), ttl).outcome;
  note(outcome, due);
  if (outcome == Outcome::done) {
    app_.acknowledged_.fetch_add(1, std::memory_order_relaxed);
    app_.ledger_.filled(key, sent + ttl);
  } else if (outcome == Outcome::unknown) {
    app_.ledger_.outcome_unknown(key);
  }
  return true;
}

bool App::Thread::update(std::uint64_t key, base::TimePoint due) {
  Timeline& timeline = *app_.timeline_;
  std::unique_lock<std::mutex> guard;
  {
    Result<OriginPool::Lease> lease = app_.pool_.take();
    if (!lease) return false;
    guard = std::unique_lock(app_.ledger_.guard(key));
    const Result<std::uint32_t> version = lease->update(key);
    if (!version) return false;
    app_.ledger_.updated(key, *version);
    timeline.count(Tally::update, steady_clock::now());
  }
  // An invalidation that fails is tried again; one that fails for good leaves an old copy, which nobody can
  // blame the cache for: the ledger's floor rises with an acknowledged DEL alone.
  for (int attempt = 0; attempt < kDeleteTries; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kDeleteAgainAfter);
    const Outcome outcome = client_->del(app_.workload_.name(key)).outcome;
    note(outcome, due);
    if (outcome == Outcome::done) {
      app_.acknowledged_.fetch_add(1, std::memory_order_relaxed);
      app_.ledger_.deleted(key);
      return true;
    }
    if (outcome == Outcome::unknown) {
      app_.ledger_.outcome_unknown(key);
      return false;
    }
  }
  return false;
}

bool App::Thread::probe(std::uint64_t slot, base::TimePoint due) {
  Dice dice(app_.options_.seed, kProbeStream, slot);
  const std::uint64_t pick = dice.next();
  const std::size_t which = (pick >> 8) % kAppRegisters;
  switch (pick % 4) {
    case 0:
      return write_register(which, due);
    case 1:
      return increment((pick >> 8) % kAppCounters, due);
    default:
      return read_register(which, due);
  }
}

bool App::Thread::read_register(std::size_t i, base::TimePoint due) {
  Register& probe = app_.probes_->registers[i];
  const std::uint64_t floor = probe.floor();
  const CacheClient::Answer answer = client_->get(Probes::register_key(i), kForEver);
  note(answer.outcome, due);
  if (answer.outcome != Outcome::done && answer.outcome != Outcome::absent) return false;
  const std::uint64_t value = base::parse_u64(answer.text).value_or(0);
  Verdict verdict = probe.read(floor, answer.outcome == Outcome::done, value);
  // A value that is gone is gone for every reader until it is written anew: one loss.
  if (verdict == Verdict::lost && app_.probes_->lost_at[i].exchange(floor) == floor) verdict = Verdict::good;
  app_.judge(verdict, due, [&] {
    return fmt::format("{} {}: '{}', but {} was acknowledged before it was asked for",
                       verdict == Verdict::lost ? "lost write of" : "stale read of", Probes::register_key(i),
                       answer.outcome == Outcome::absent ? "nil" : answer.text, floor);
  });
  return true;
}

bool App::Thread::write_register(std::size_t i, base::TimePoint due) {
  const std::unique_lock writing(app_.probes_->writing[i], std::try_to_lock);
  if (!writing.owns_lock()) return read_register(i, due);
  Register& probe = app_.probes_->registers[i];
  const std::uint64_t value = probe.next();
  const Outcome outcome = client_->set(Probes::register_key(i), std::to_string(value), kForEver).outcome;
  note(outcome, due);
  if (outcome == Outcome::done) {
    probe.acknowledged(value);
    app_.acknowledged_.fetch_add(1, std::memory_order_relaxed);
  } else if (outcome == Outcome::unknown) {
    probe.outcome_unknown();
  }
  return outcome == Outcome::done;
}

bool App::Thread::increment(std::size_t i, base::TimePoint due) {
  Counter& counter = app_.probes_->counters[i];
  const std::uint64_t floor = counter.floor();
  const CacheClient::Answer answer = client_->increment(Probes::counter_key(i));
  note(answer.outcome, due);
  if (answer.outcome == Outcome::unknown) counter.outcome_unknown();
  if (answer.outcome != Outcome::done) return false;
  counter.incremented(floor, static_cast<std::uint64_t>(answer.integer));
  app_.acknowledged_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace ringshift::drill
