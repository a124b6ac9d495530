#include "discovery/guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace ringshift::discovery {

using base::Duration;
using base::TimePoint;

void GuardRules::saw(const std::vector<Instance>& all, TimePoint now) {
  const bool again = troubled_since_.has_value();
  troubled_since_.reset();
  if (passed_ && *passed_ == all) {
    ++equal;
    if (pending_) ++merged;
    pending_.reset();
    held_.reset();
    behind_since_.reset();
    return;
  }
  if (pending_ && *pending_ == all) {
    ++equal;
    if (held_ && again) held_->since = now;  // Nobody knows what was between.
    return;
  }
  if (pending_) ++merged;
  if (!pending_) first_pending_ = now;
  last_pending_ = now;
  pending_ = all;
  auto suspicious = suspicion(all, now);
  if (suspicious && !held_) ++holds;
  if (suspicious && !behind_since_) behind_since_ = now;
  if (!suspicious) behind_since_.reset();
  if (held_ && !suspicious) first_pending_ = now;
  held_ = std::move(suspicious);
}

std::optional<GuardRules::Held> GuardRules::suspicion(const std::vector<Instance>& all, TimePoint now) const {
  Held held{all.size(), {}, before_.size(), now};
  for (const std::string& id : before_)
    if (!std::ranges::binary_search(all, id, {}, &Instance::id)) held.missing.push_back(id);
  // Nothing seen, and nothing expected: an empty list that follows an empty one is equal, and never comes
  // here.
  const bool suspicious = all.empty() || 2 * held.missing.size() > held.of;
  return suspicious ? std::optional(held) : std::nullopt;
}

std::string GuardRules::Held::text() const {
  std::string text = fmt::format("shows {} instance{}", seen, seen == 1 ? "" : "s");
  if (missing.empty()) return text;
  const auto named = std::span(missing).first(std::min(missing.size(), kIdsNamed));
  return fmt::format("{}, without {} of the {} before ({}{})", text, missing.size(), of,
                     fmt::join(named, ", "), named.size() < missing.size() ? ", ..." : "");
}

void GuardRules::troubled(TimePoint now) {
  if (!troubled_since_) troubled_since_ = now;
}

bool GuardRules::confirm(TimePoint now) {
  if (!held_) return false;
  held_.reset();
  first_pending_ = now;
  return true;
}

std::optional<TimePoint> GuardRules::due() const {
  if (!pending_) return std::nullopt;
  if (held_) {
    if (troubled_since_) return std::nullopt;
    return held_->since + confirm_after_;
  }
  const TimePoint settled = std::min(last_pending_ + kQuiet, first_pending_ + kWindow);
  return passed_ ? std::max(settled, passed_at_ + kWindow) : settled;
}

std::optional<std::vector<Instance>> GuardRules::take(TimePoint now) {
  const auto when = due();
  if (!when || now < *when) return std::nullopt;
  passed_ = std::move(pending_);
  before_.clear();
  for (const Instance& instance : *passed_) before_.push_back(instance.id);
  pending_.reset();
  held_.reset();
  behind_since_.reset();
  passed_at_ = now;
  ++passed;
  return passed_;
}

std::optional<Duration> GuardRules::age(TimePoint now) const {
  if (!passed_) return std::nullopt;
  std::optional<TimePoint> since = troubled_since_;
  if (behind_since_ && (!since || *behind_since_ < *since)) since = behind_since_;
  return since ? now - *since : Duration{0};
}

Guard::Guard(Sink& next, Duration confirm_after, std::vector<std::string> expected)
    : next_(next), rules_(confirm_after, std::move(expected)) {
  thread_ = std::thread([this] { run(); });
}

Guard::~Guard() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Guard::instances(const std::vector<Instance>& all) {
  {
    const std::lock_guard lock(mutex_);
    const bool was_held = rules_.held().has_value();
    rules_.saw(all, std::chrono::steady_clock::now());
    last_trouble_.clear();
    if (const auto& held = rules_.held(); held && !was_held && troubles_.size() < kTroublesMax) {
      troubles_.push_back(
          {ErrorKind::stale,
           fmt::format("the source {}: held until that stays so or an operator confirms it", held->text())});
    }
  }
  wake_.notify_all();
}

void Guard::trouble(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    rules_.troubled(std::chrono::steady_clock::now());
    last_trouble_ = why.message;
    if (troubles_.size() < kTroublesMax) troubles_.push_back(why);
  }
  wake_.notify_all();
}

bool Guard::confirm() {
  bool was = false;
  {
    const std::lock_guard lock(mutex_);
    was = rules_.confirm(std::chrono::steady_clock::now());
  }
  wake_.notify_all();
  return was;
}

Guard::State Guard::state() const {
  const std::lock_guard lock(mutex_);
  const TimePoint now = std::chrono::steady_clock::now();
  State state{rules_.size(), rules_.age(now), rules_.held(), Duration{0},  rules_.passed,
              rules_.equal,  rules_.merged,   rules_.holds,  last_trouble_};
  if (state.held) state.held_for = now - state.held->since;
  return state;
}

void Guard::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!troubles_.empty()) {
      const Error why = std::move(troubles_.front());
      troubles_.pop_front();
      lock.unlock();
      next_.trouble(why);
      lock.lock();
      continue;
    }
    if (const auto list = rules_.take(std::chrono::steady_clock::now())) {
      lock.unlock();
      next_.instances(*list);
      lock.lock();
      continue;
    }
    if (const auto due = rules_.due()) {
      wake_.wait_until(lock, *due);
    } else {
      wake_.wait(lock);
    }
  }
}

}  // namespace ringshift::discovery
