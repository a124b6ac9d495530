// What the leader tells the mover (rates, hot keys, whether the origin is asked too often), and what becomes
// of keys that are above the limit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/encoding.h"
#include "base/log.h"
#include "coord/router_record.h"
#include "resize/leader.h"
#include "resize/lost.h"

namespace ringshift::resize {

namespace {

constexpr std::chrono::milliseconds kSteerInterval{500};
constexpr std::chrono::milliseconds kBigKeysLook{5000};  // Clients may write, delete or expire them.
constexpr std::size_t kBigKeysNamed = 3;                 // In last_error; the status has more.
constexpr std::size_t kBigKeyNameShown = 100;

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576);
}

}  // namespace

Mover::Options Leader::mover_options() {
  const topology::Limits limits = limits_now();
  const base::TimePoint now = std::chrono::steady_clock::now();
  key_rate_->set_rate(static_cast<double>(limits.move_keys_per_second), now);
  byte_rate_->set_rate(static_cast<double>(limits.move_bytes_per_second), now);
  Mover::Options options;
  options.name = connection_name_;
  options.limits = limits;
  options.keys = key_rate_.get();
  options.bytes = byte_rate_.get();
  options.access = options_.member_access;
  options.big_key_limit = checkpoint_->big_key_limit;
  options.verify = transfer::verify_by_name(checkpoint_->verify).value_or(transfer::Verify::counts);
  return options;
}

// Routers tell about once a second which keys are asked for most; those of this step move first. The mover
// ignores what does not move.
void Leader::steer(Mover& mover, bool now_please) {
  const auto now = std::chrono::steady_clock::now();
  if (!now_please && now - steered_at_ < kSteerInterval) return;
  steered_at_ = now;
  std::map<std::string, std::uint64_t> heat;
  for (const auto& [id, kv] : view_.under(keys_.routers())) {
    const auto record = coord::parse_router_record(kv.value);
    if (!record) continue;
    for (const auto& [key, count] : record->moving_keys) heat[key] += count;
  }
  std::vector<std::pair<std::uint64_t, std::string>> order;
  order.reserve(heat.size());
  for (const auto& [key, count] : heat) order.emplace_back(count, key);
  std::ranges::sort(order, std::ranges::greater{});
  std::vector<std::string> keys;
  keys.reserve(order.size());
  for (auto& [count, key] : order) keys.push_back(std::move(key));
  mover.prefer(keys);
  mover.hold_back_for_origin(origin_is_over());
}

bool Leader::origin_is_over() {
  const std::uint64_t limit = topology_->spec.limits.origin_misses_per_second;
  if (limit == 0) return false;
  const auto now = std::chrono::steady_clock::now();
  feed_origin(now);
  const std::optional<double> rate = origin_.rate(now, {});
  return rate && *rate > static_cast<double>(limit);
}

void Leader::note_progress(const Mover::Progress& progress) {
  status_.rate_in_force = std::round(progress.rate);
  status_.held_back = progress.held_back;
  status_.retries = progress.retries;
  status_.big_keys_waiting = progress.waiting_keys;
  status_.waiting_big_keys.clear();
  for (const BigKey& key : progress.waiting) {
    status_.waiting_big_keys.push_back(
        {base::printable(key.key, kBigKeyNameShown), key.bytes, key.from, key.to});
  }
}

// `wait` unless the operator said otherwise: nothing of a big key happens behind his back. But a client's
// write pulls it all the same; so does its expiry, or a DEL, end the waiting.
Status Leader::after_big_keys() {
  std::string names;
  for (std::size_t i = 0; i < std::min(kBigKeysNamed, status_.waiting_big_keys.size()); ++i) {
    const WaitingKey& key = status_.waiting_big_keys[i];
    names += fmt::format("{}'{}' ({}, {} to {})", i == 0 ? "" : ", ", key.key, mebibytes(key.bytes), key.from,
                         key.to);
  }
  if (status_.big_keys_waiting > kBigKeysNamed)
    names += fmt::format(" and {} more", status_.big_keys_waiting - kBigKeysNamed);
  std::uint64_t most = 0;
  for (const WaitingKey& key : status_.waiting_big_keys) most = std::max(most, key.bytes);
  if (checkpoint_->big_key_policy == "refuse" && !topology_->resize->rollback &&
      check_back(*topology_, checkpoint_->lost, checkpoint_->opened)) {
    base::log(base::LogLevel::warning, "resize {}: big keys {}: rolling back", topology_->resize->id, names);
    checkpoint_->rollback = true;
    checkpoint_->big_key_limit = ~std::uint64_t{0} >> 1;  // What clients pulled meanwhile must go back.
    status_.last_error = fmt::format("rolled back: above limits.big_key_bytes ({}) are {}",
                                     mebibytes(topology_->spec.limits.big_key_bytes), names);
    return save_checkpoint();
  }
  status_.last_error = fmt::format(
      "all has moved but what is above limits.big_key_bytes ({}): {}; 'ringshift resize big-keys move "
      "--limit "
      "{}MiB' moves them (each blocks its two members for about {} ms), or delete them, or wait until they "
      "expire or are written",
      mebibytes(topology_->spec.limits.big_key_bytes), names, most / 1048576 + 1, most / 1048576 * 2 + 1);
  tell(true);
  static_cast<void>(view_.wait(kBigKeysLook, [this] { return request_waits() || !may_lead_(); }));
  return check_stamps();
}

Status Leader::change_big_keys(const Request& request) {
  const std::string policy = request.big_keys.empty() ? "wait" : request.big_keys;
  if (policy != "move" && policy != "wait" && policy != "refuse") {
    return fail(ErrorKind::invalid, fmt::format("big keys: '{}' is none of move, wait, refuse", policy));
  }
  if (policy != "move" && request.big_key_limit != 0) {
    return fail(ErrorKind::invalid, fmt::format("big keys: a limit goes with 'move', not with '{}'", policy));
  }
  checkpoint_->big_key_policy = policy;
  checkpoint_->big_key_limit = policy != "move"             ? 0
                               : request.big_key_limit != 0 ? request.big_key_limit
                                                            : ~std::uint64_t{0} >> 1;
  return {};
}

}  // namespace ringshift::resize
