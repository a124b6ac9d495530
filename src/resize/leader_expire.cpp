// --mode expire: the phases of every resize, but nobody moves keys (RESIZE.md, "Not moving at all"). Reads
// find the old copy, writes pull their key first, and all others run out where they are.
//
// After HOLD nobody writes moving keys on OLD (I2), so the longest time to live found there then is when the
// last of them is gone; a step ends at that time or at its deadline. What is there still is moved or dropped,
// by a pass that proves OLD empty of the slices, before the gate closes and NEW is published (I10). The
// clock only says when to begin with that: a wrong one makes a step longer or the rest larger.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "resize/leader.h"
#include "resize/leftovers.h"
#include "resize/lost.h"

namespace ringshift::resize {

using base::LogLevel;

namespace {

constexpr std::chrono::milliseconds kExpiryTick{250};
constexpr std::uint64_t kExpiryMarginMs = 100;  // Redis' own clock ticks, and a TTL is rounded.

std::uint64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

}  // namespace

Status Leader::measure_before_start(const topology::Topology& next, const Request& request) {
  auto snapshot = topology::Snapshot::compile(
      next, {coord::kRegistryEpoch, static_cast<std::uint64_t>(topology_revision_)});
  if (!snapshot) return std::unexpected(snapshot.error());
  Leftovers leftovers(members_, *snapshot, {{0, topology::kSliceCount}}, may_lead_);
  const Result<LeftoverCount> count = leftovers.measure();
  if (!count) return std::unexpected(count.error());
  if (count->stopped) return fail(ErrorKind::stale, "the lock was lost while keys were counted");
  base::log(LogLevel::info, "{} keys would move, {} of them without a time to live, the longest has {} ms",
            count->keys, count->without_ttl, count->longest_ttl_ms);
  if (count->without_ttl != 0 && request.rest.empty()) {
    return fail(ErrorKind::invalid,
                fmt::format("{} of the {} keys that move have no time to live and would never run out, for "
                            "example {}: say --move-rest or --drop, or resize without --mode expire",
                            count->without_ttl, count->keys, fmt::join(count->examples, ", ")));
  }
  checkpoint_->expire = true;
  checkpoint_->rest = request.rest;
  checkpoint_->deadline_seconds = request.deadline_seconds;
  checkpoint_->keys_without_ttl = count->without_ttl;
  checkpoint_->keys_without_ttl_examples = count->examples;
  return {};
}

// In DUAL: whether the rest may be moved or dropped now. Waits a little when not.
Result<bool> Leader::step_expired() {
  const topology::Resize& resize = *topology_->resize;
  const std::uint64_t had_their_turn = topology::count(topology::unite(resize.done, resize.active));
  const std::function<bool()> go_on = [this] {
    tell(false);
    return may_lead_() && !request_waits();
  };
  // A HOLD that is repeated changes nothing: times to live on OLD only get shorter.
  if (checkpoint_->expire_slices != had_their_turn) {
    auto snapshot = topology::Snapshot::compile(
        *topology_, {coord::kRegistryEpoch, static_cast<std::uint64_t>(topology_revision_)});
    if (!snapshot) return std::unexpected(snapshot.error());
    Leftovers leftovers(members_, *snapshot, resize.active, go_on);
    const Result<LeftoverCount> count = leftovers.measure();
    if (!count) return std::unexpected(count.error());
    if (count->stopped) return false;
    const std::uint64_t longest = count->longest_ttl_ms == 0 ? 0 : count->longest_ttl_ms + kExpiryMarginMs;
    checkpoint_->expire_until_ms = unix_ms() + std::min(longest, checkpoint_->deadline_seconds * 1000);
    checkpoint_->expire_slices = had_their_turn;
    if (Status saved = save_checkpoint(); !saved) return std::unexpected(saved.error());
    base::log(LogLevel::info, "resize {}: {} keys run out within {} ms, {} have no time to live", resize.id,
              count->keys, longest, count->without_ttl);
  }
  const auto now = std::chrono::steady_clock::now();
  if (expiry_seen_of_ != had_their_turn) {
    expiry_seen_of_ = had_their_turn;
    expiry_seen_at_ = now;
  }
  // A clock that was set back must not make it longer than its deadline.
  const bool too_long = now - expiry_seen_at_ >= std::chrono::seconds(checkpoint_->deadline_seconds);
  if (too_long || unix_ms() >= checkpoint_->expire_until_ms) return true;
  tell(false);
  static_cast<void>(view_.wait(kExpiryTick, [this] { return request_waits() || !may_lead_(); }));
  return false;
}

Status Leader::drop_rest() {
  auto snapshot = topology::Snapshot::compile(
      *topology_, {coord::kRegistryEpoch, static_cast<std::uint64_t>(topology_revision_)});
  if (!snapshot) return std::unexpected(snapshot.error());
  key_rate_->set_rate(static_cast<double>(limits_now().move_keys_per_second),
                      std::chrono::steady_clock::now());
  Leftovers leftovers(members_, *snapshot, topology_->resize->active, [this] {
    tell(false);
    return may_lead_() && !request_waits();
  });
  const Result<LeftoverCount> count = leftovers.drop(*key_rate_);
  if (!count) return std::unexpected(count.error());
  if (count->dropped != 0) {
    base::log(LogLevel::info, "resize {}: {} keys dropped", topology_->resize->id, count->dropped);
    checkpoint_->keys_dropped += count->dropped;
    if (Status saved = save_checkpoint(); !saved) return saved;
  }
  if (count->stopped) return {};
  return after_mover(count->gated ? Mover::Outcome::gated : Mover::Outcome::clean, "");
}

}  // namespace ringshift::resize
