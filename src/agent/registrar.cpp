#include "agent/registrar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/jitter.h"
#include "base/log.h"

namespace ringshift::agent {

using base::LogLevel;
using coord::Compare;
using coord::Op;
using std::chrono::milliseconds;

Registrar::Registrar(coord::Coordinator& coordinator, Options options, std::function<std::string()> record)
    : coordinator_(coordinator),
      options_(std::move(options)),
      record_(std::move(record)),
      random_(std::random_device{}()),
      thread_([this] { work(); }) {}

Registrar::~Registrar() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
  if (lease_ == 0) return;
  if (answers_) {
    static_cast<void>(coordinator_.revoke(lease_));
  } else {  // Whoever ends us need not wait for somebody who does not answer.
    base::log(LogLevel::warning, "agent: {} stays until its lease ends: the registry does not answer",
              options_.key);
  }
}

void Registrar::changed() {
  const std::lock_guard lock(mutex_);
  due_ = true;
  wake_.notify_all();
}

bool Registrar::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool Registrar::registered() const {
  const std::lock_guard lock(mutex_);
  return registered_;
}

bool Registrar::drained() const {
  const std::lock_guard lock(mutex_);
  return drained_;
}

void Registrar::work() {
  const milliseconds every = std::chrono::duration_cast<milliseconds>(options_.lease_ttl) / 3;
  milliseconds pause = base::full_jitter(kFirstAttempt, random_);
  bool urgent = false;  // News may shorten the time between beats, never the pause after a failure.
  unsigned failures = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, pause, [&] { return stopping_ || (urgent && due_); });
      if (stopping_) return;
      due_ = false;
    }
    const Status done = beat();
    answers_ = done.has_value() || done.error().kind != ErrorKind::retryable;
    if (stopping()) return;
    const bool was = registered();
    if (done && !was) {
      base::log(LogLevel::info, "agent: registered as {}, lease {}", options_.key, lease_);
      told_.clear();
    } else if (!done && std::exchange(told_, done.error().message) != done.error().message) {
      base::log(LogLevel::warning, "agent: {}; trying again, for ever", done.error().message);
    }
    urgent = done.has_value();
    failures = done ? 0 : failures + 1;
    pause = done ? every : base::backoff(kFirstAttempt, kLongestPause, failures, random_);
    const std::lock_guard lock(mutex_);
    // One failed beat of a registry that is away says nothing of the record there.
    registered_ = done.has_value() || (registered_ && lease_ != 0);
    wake_.notify_all();
  }
}

Status Registrar::beat() {
  if (Status marked = read_mark(); !marked) return marked;
  if (stopping()) return {};
  if (lease_ != 0) {
    const auto left = coordinator_.keep_alive(lease_);
    if (left) return put();
    if (left.error().kind != ErrorKind::not_found) return std::unexpected(left.error());
    base::log(LogLevel::warning,
              "agent: the lease was lost (a pause of ours, or the registry's restart): again");
    lease_ = 0;
  }
  return take();
}

Status Registrar::read_mark() {
  const auto mark = coordinator_.get(options_.drained_key);
  if (!mark) return std::unexpected(mark.error());
  const std::lock_guard lock(mutex_);
  drained_ = mark->has_value();
  return {};
}

// The key, with a new lease.
Status Registrar::take() {
  const auto there = coordinator_.get(options_.key);
  if (!there) return std::unexpected(there.error());
  Compare condition{options_.key, Compare::Target::create_revision, 0};
  if (*there) {
    const coord::LeaseId lease = (*there)->lease;
    if (!ours_.contains(lease)) {
      return fail(
          ErrorKind::stale,
          lease == 0
              ? fmt::format("{} was written by hand, without a lease: remove it first", options_.key)
              : fmt::format("{} belongs to another agent (lease {}): two with one id, or the one before "
                            "us died within its lease; not overwritten",
                            options_.key, lease));
    }
    condition = {options_.key, Compare::Target::mod_revision, (*there)->mod_revision};
  }
  const auto granted = coordinator_.grant(options_.lease_ttl);
  if (!granted) return std::unexpected(granted.error());
  std::string record = record_();
  const auto taken = coordinator_.transact({condition}, {{Op::Kind::put, options_.key, record, *granted}});
  if (ours_.size() >= kLeasesKnown) ours_.erase(ours_.begin());
  ours_.insert(*granted);  // Also when the answer was lost: then the key may be ours.
  if (!taken || !*taken) {
    static_cast<void>(coordinator_.revoke(*granted));
    if (!taken) return std::unexpected(taken.error());
    return fail(ErrorKind::stale, fmt::format("{} changed while it was taken", options_.key));
  }
  lease_ = *granted;
  written_ = std::move(record);
  return {};
}

// What is new; or a look whether it is there still, since somebody may have removed it.
Status Registrar::put() {
  std::string record = record_();
  if (record == written_) {
    const auto there = coordinator_.get(options_.key);
    if (!there) return std::unexpected(there.error());
    if (*there && (*there)->lease == lease_) return {};
  } else {
    const auto put = coordinator_.transact({{options_.key, Compare::Target::lease, lease_}},
                                           {{Op::Kind::put, options_.key, record, lease_}});
    if (!put) return std::unexpected(put.error());
    if (*put) {
      written_ = std::move(record);
      return {};
    }
  }
  static_cast<void>(coordinator_.revoke(std::exchange(lease_, 0)));
  return take();
}

}  // namespace ringshift::agent
