// What the leader tells operators.
#include <fmt/format.h>

#include <algorithm>

#include "coord/router_record.h"
#include "resize/leader.h"
#include "ringshift/diff.h"

namespace ringshift::resize {

namespace {
constexpr std::chrono::milliseconds kTellInterval{250};
}  // namespace

// Keys that routers moved for their clients' commands. Their counters run from the router's start; what they
// said when first seen is not ours.
void Leader::count_pulls() {
  for (const auto& [key, kv] : view_.under(keys_.routers())) {
    const auto record = coord::parse_router_record(kv.value);
    if (!record) continue;
    const auto [keys, new_router] = pulls_seen_.try_emplace(key, record->keys_pulled);
    const auto [bytes, ignored] = pulled_bytes_seen_.try_emplace(key, record->bytes_pulled);
    if (new_router || !checkpoint_) continue;
    if (record->keys_pulled > keys->second) checkpoint_->keys_moved += record->keys_pulled - keys->second;
    if (record->bytes_pulled > bytes->second)
      checkpoint_->bytes_moved += record->bytes_pulled - bytes->second;
    keys->second = record->keys_pulled;
    bytes->second = record->bytes_pulled;
  }
}

void Leader::estimate_keys_to_move(const topology::Spec& from, const topology::Spec& to) {
  const Result<topology::Diff> diff = topology::diff(from, to);
  const Result<topology::Shares> shares = topology::shares(from);
  if (!diff || !shares) return;
  double keys = 0;
  for (std::size_t i = 0; i < from.members.size(); ++i) {
    const Result<std::uint64_t> count = members_.key_count(from.members[i]);
    if (!count || shares->shares[i] <= 0) continue;
    for (const topology::PairShare& pair : diff->pairs) {
      if (pair.from != from.members[i].id) continue;
      const double leaving = static_cast<double>(*count) * pair.share / shares->shares[i];
      keys += leaving;
      checkpoint_->pairs[{pair.from, pair.to}].expected = static_cast<std::uint64_t>(leaving);
    }
  }
  checkpoint_->keys_to_move = static_cast<std::uint64_t>(keys);
}

// Estimated. In a rollback what went over has to come back.
std::uint64_t Leader::left_of(const std::pair<std::string, std::string>& pair, const Pairs& pairs) const {
  if (!topology_ || !topology_->resize) return 0;
  const Checkpoint::Pair& of = pairs.at(pair);
  if (!topology_->resize->rollback) return of.expected - std::min(of.expected, of.moved);
  const auto there = pairs.find({pair.second, pair.first});
  return there == pairs.end() ? 0 : there->second.moved - std::min(there->second.moved, of.moved);
}

ResizeStatus Leader::current_status() {
  ResizeStatus status = status_;
  status.queued = queued_;
  if (topology_) status.version = fmt::format("{}.{}", coord::kRegistryEpoch, topology_revision_);
  if (!topology_ || !topology_->resize || !checkpoint_) {
    if (status.state != "finished" && status.state != "failed") status.state = "idle";
    if (!checkpoint_) return status;
  }
  status.keys_moved = checkpoint_->keys_moved + progress_.moved;
  status.bytes_moved = checkpoint_->bytes_moved + progress_.bytes;
  status.keys_to_move = std::max(checkpoint_->keys_to_move, status.keys_moved);
  status.keys_verified = checkpoint_->keys_verified + progress_.verified;
  status.fences = checkpoint_->fences;
  status.hold_ms_max = checkpoint_->hold_ms_max;
  status.steps = checkpoint_->steps.size();
  status.lost = checkpoint_->lost;
  status.origin_budget = checkpoint_->origin_budget;
  status.mode = checkpoint_->expire ? "expire" : "move";
  status.keys_without_ttl = checkpoint_->keys_without_ttl;
  status.keys_without_ttl_examples = checkpoint_->keys_without_ttl_examples;
  status.keys_dropped = checkpoint_->keys_dropped;
  auto pairs = checkpoint_->pairs;
  for (const auto& [pair, moved] : progress_.pairs) pairs[pair].moved += moved;
  for (const auto& [pair, bytes] : progress_.pair_bytes) pairs[pair].bytes += bytes;
  status.pairs.clear();
  for (const auto& [pair, of] : pairs)
    status.pairs.push_back({pair.first, pair.second, of.moved, of.bytes, left_of(pair, pairs)});
  auto big = checkpoint_->big_keys;
  big.insert(progress_.big_keys.begin(), progress_.big_keys.end());
  status.big_keys.assign(big.begin(), big.end());
  status.window = to_text(checkpoint_->window);
  status.abort_if = to_text(checkpoint_->abort_if);
  status.aborted = checkpoint_->aborted;
  const topology::Limits limits = limits_now();
  status.rate = limits.move_keys_per_second;
  status.byte_rate = limits.move_bytes_per_second;
  if (!checkpoint_->abort_if.empty()) {
    const RouterFigures& figures = abort_watch_.figures();
    status.hit_rate = figures.hit_rate;
    status.p99_ms = figures.p99_ms;
    status.origin_qps = figures.origin_qps;
  }
  if (!topology_->resize) return status;
  const topology::Resize& resize = *topology_->resize;
  const bool expiring = checkpoint_->expire && !resize.rollback && resize.phase == topology::Phase::dual;
  status.expire_until_ms = expiring ? checkpoint_->expire_until_ms : 0;
  status.id = resize.id;
  status.step = std::min(status.steps, next_step(checkpoint_->steps, resize.done) + 1);
  status.state = checkpoint_->paused                        ? "paused"
                 : checkpoint_->rollback || resize.rollback ? "rolling_back"
                 : checkpoint_->prepared                    ? "running"
                                                            : "preparing";
  const bool last = status.step == status.steps && resize.phase == topology::Phase::prep &&
                    topology::count(resize.done) == topology::kSliceCount;
  const bool waits = checkpoint_->paused || (checkpoint_->prepared && !last);
  status.waiting = waits ? waits_for() : "";
  status.waiting_until = status.waiting == "soak"     ? local_time(checkpoint_->soak_until)
                         : status.waiting == "window" ? local_time(opens_at(checkpoint_->window, unix_now()))
                                                      : "";
  switch (resize.phase) {
    case topology::Phase::prep:
      status.phase = resize.done.empty() ? "prep" : "new";
      break;
    case topology::Phase::hold:
      status.phase = "hold";
      break;
    case topology::Phase::dual:
      status.phase = "dual";
      break;
  }
  return status;
}

void Leader::tell(bool now_please) {
  const auto now = std::chrono::steady_clock::now();
  if (!now_please && now - told_at_ < kTellInterval) return;
  count_pulls();
  ResizeStatus status = current_status();
  const double seconds = std::chrono::duration<double>(now - moved_at_).count();
  if (checkpoint_ && seconds >= 1.0) {
    const std::uint64_t since = status.keys_moved - std::min(status.keys_moved, moved_before_);
    status_.keys_per_second = moved_before_ == 0 ? 0 : static_cast<double>(since) / seconds;
    moved_before_ = status.keys_moved;
    moved_at_ = now;
  }
  if (checkpoint_) {
    const double left = static_cast<double>(status.keys_to_move - status.keys_moved);
    status.keys_per_second = status_.keys_per_second;
    status.eta_seconds = status_.keys_per_second > 0 ? left / status_.keys_per_second : 0;
  }
  told_at_ = now;
  if (options_.figures) options_.figures->told(status, now);
  if (status == told_) return;
  if (write({{coord::Op::Kind::put, keys_.status(), to_json(status), 0}})) told_ = status;
}

}  // namespace ringshift::resize
