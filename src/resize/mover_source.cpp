// The mover's scanning thread of one source: what is there, how big it is, what goes into which batch.
#include "resize/mover_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/sync_client.h"
#include "base/encoding.h"
#include "base/log.h"
#include "protocol/resp/value.h"
#include "resize/members.h"

namespace ringshift::resize {

using backend::SyncClient;
using protocol::resp::Value;
using topology::KeyState;
using topology::MemberIndex;

namespace {

constexpr std::string_view kPageCount = "1000";
constexpr std::size_t kMeasuredAtOnce = 100;      // Keys in one script: a source is not kept longer.
constexpr std::uint64_t kSmallBytes = 16U << 10;  // Below it a size does not matter.
constexpr std::chrono::milliseconds kPauseBetweenPasses{20};  // For others' claims to end.
constexpr std::chrono::milliseconds kPauseMax{1000};
constexpr std::chrono::milliseconds kBigKeyPatience{60000};  // A DUMP of half a gigabyte, and its way.
constexpr std::string_view kBigKeyClaimMs = "60000";         // As long as that.

// ARGV: the least size to tell. Answers {place, bytes, place, bytes, ...}. Five elements of a collection are
// measured, as MEMORY USAGE does unless told otherwise: O(1) for each key.
constexpr std::string_view kMeasureScript =
    "local r={} for i,k in ipairs(KEYS) do local m=redis.call('MEMORY','USAGE',k,'SAMPLES','5') "
    "if m and m>=tonumber(ARGV[1]) then r[#r+1]=i r[#r+1]=m end end return r";

}  // namespace

MoverSource::MoverSource(MoverShared& shared, MemberIndex index)
    : shared_(shared),
      index_(index),
      lanes_wanted_(std::max<std::uint32_t>(shared.options.limits.move_batches_in_flight, 1)),
      rate_(static_cast<double>(shared.options.limits.move_keys_per_second),
            std::chrono::steady_clock::now()),
      governor_(static_cast<double>(shared.options.limits.move_keys_per_second),
                shared.options.limits.move_latency_ms),
      random_(std::random_device{}()) {}

MoverSource::~MoverSource() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  for (std::thread& lane : lanes_) lane.join();
  if (probe_.joinable()) probe_.join();
}

bool MoverSource::connect_scan() {
  while (!over()) {
    auto connected = dial(index_, std::chrono::milliseconds(3000));
    if (connected) {
      scan_ = std::move(*connected);
      return true;
    }
    failed_at(index_, connected.error().message);
  }
  return false;
}

Result<std::string> MoverSource::run_id() {
  const Result<Value> info = scan_->call({"INFO", "server"});
  if (!info) return std::unexpected(info.error());
  return std::string(info_field(info->text, "run_id"));
}

Mover::Outcome MoverSource::run(std::string& error) {
  if (connect_scan()) start_probe();
  while (!over()) {
    if (scan_ == nullptr && !connect_scan()) break;
    const Outcome outcome = pass();
    if (outcome == Outcome::unreachable) {  // The connection broke: again, from the start.
      scan_.reset();
      continue;
    }
    if (over()) break;
    if (outcome != Outcome::stopped) conclude(outcome, "");
  }
  const std::lock_guard lock(mutex_);
  if (!verdict_) return Outcome::stopped;
  error = verdict_->second;
  return verdict_->first;
}

// `unreachable`: begin again. `stopped`: there is more to do, or over() says why not.
Mover::Outcome MoverSource::pass() {
  found_ = left_out_ = 0;
  big_.clear();
  const std::uint64_t moved_before = moved_;
  const Result<std::string> before = run_id();
  if (!before) {
    failed_at(index_, before.error().message);
    return Outcome::unreachable;
  }
  // A pass that began before a restart proves nothing about what came back from a dump.
  if (!run_id_.empty() && run_id_ != *before) return Outcome::restarted;
  run_id_ = *before;
  std::string cursor = "0";
  do {
    take_hot_keys();
    std::vector<std::string> keys;
    if (!scan_page(cursor, keys)) {
      finish_batches();
      return Outcome::unreachable;
    }
    sort_in(keys, true);
    if (over()) return Outcome::stopped;
  } while (cursor != "0");
  finish_batches();
  move_big_keys();
  if (over()) return Outcome::stopped;
  const Result<std::string> after = run_id();
  if (!after) {
    failed_at(index_, after.error().message);
    return Outcome::unreachable;
  }
  if (*after != run_id_) return Outcome::restarted;
  tell_waiting();
  if (found_ == 0) return big_.empty() ? Outcome::clean : Outcome::big_keys;
  base::Duration rest = kPauseBetweenPasses;
  {
    std::unique_lock lock(mutex_);
    bool all_given_up = left_out_ == found_ && !trouble_.empty();
    std::string error;
    for (const auto& [member, trouble] : trouble_) {
      if (trouble.failures == 0) continue;
      all_given_up = all_given_up && trouble.failures >= kTriesMax;
      error = trouble.error;
      if (moved_ == moved_before)
        rest = std::max(rest, trouble.not_before - std::chrono::steady_clock::now());
    }
    if (all_given_up && !error.empty()) {
      if (!verdict_) verdict_.emplace(Outcome::unreachable, error);
      return Outcome::stopped;
    }
  }
  static_cast<void>(shared_.pause(std::min<base::Duration>(rest, kPauseMax)));
  return Outcome::stopped;
}

bool MoverSource::scan_page(std::string& cursor, std::vector<std::string>& keys) {
  Result<Value> page = scan_->call({"SCAN", cursor, "COUNT", kPageCount});
  if (!page || page->items.size() != 2) {
    failed_at(index_, fmt::format("SCAN: {}", page ? page->text : page.error().message));
    return false;
  }
  answered(index_);
  cursor = page->items[0].text;
  keys.reserve(page->items[1].items.size());
  for (Value& key : page->items[1].items) keys.push_back(std::move(key.text));
  return true;
}

// What clients ask for most moves first: then most of their reads take one round trip again.
void MoverSource::take_hot_keys() {
  std::vector<std::string> keys;
  {
    const std::lock_guard lock(shared_.mutex);
    if (hot_seen_.size() == shared_.hot.size()) return;
    for (const std::string& key : shared_.hot) {
      if (hot_seen_.insert(key).second) keys.push_back(key);
    }
  }
  sort_in(keys, false);
  for (auto& [to, batch] : packing_) push(std::exchange(batch, Batch{to, {}, 0}));
}

void MoverSource::sort_in(const std::vector<std::string>& keys, bool scanned) {
  std::vector<std::string> moving;
  std::vector<MemberIndex> to;
  for (const std::string& key : keys) {
    if (key.starts_with(transfer::kReservedPrefix)) continue;
    const topology::Route route = shared_.snapshot->route(key);
    if (route.state != KeyState::dual || route.source != index_) continue;
    moving.push_back(key);
    to.push_back(route.member);
  }
  if (moving.empty()) return;
  const std::vector<std::uint64_t> sizes = measure(moving, scanned ? kSmallBytes : 1);
  const base::TimePoint now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < moving.size() && !over(); ++i) {
    if (!scanned && can_measure_ && sizes[i] == 0) continue;  // A hot key that is not here, or no more.
    if (sizes[i] > shared_.options.limits.big_key_bytes) {
      const auto same = [&](const auto& one) { return one.second.key == moving[i]; };
      if (!scanned || std::ranges::any_of(big_, same)) continue;  // SCAN may name a key twice.
      big_.emplace_back(to[i], BigKey{std::move(moving[i]), sizes[i], id(index_), id(to[i])});
      continue;
    }
    found_ += scanned ? 1 : 0;
    bool waits = false;
    {
      const std::lock_guard lock(mutex_);
      const auto trouble = trouble_.find(to[i]);
      waits = trouble != trouble_.end() && trouble->second.failures != 0 &&
              (trouble->second.failures >= kTriesMax || now < trouble->second.not_before);
    }
    if (waits) {
      left_out_ += scanned ? 1 : 0;  // For the next pass: the others of this source go on.
    } else {
      add(to[i], std::move(moving[i]), sizes[i]);
    }
  }
}

// 0 for what has less than `smallest` bytes, or is not there, and where the member does not say: it may not
// allow MEMORY USAGE.
std::vector<std::uint64_t> MoverSource::measure(const std::vector<std::string>& keys,
                                                std::uint64_t smallest) {
  std::vector<std::uint64_t> sizes(keys.size(), 0);
  const std::string least = std::to_string(smallest);
  for (std::size_t first = 0; first < keys.size() && can_measure_ && !over(); first += kMeasuredAtOnce) {
    const std::size_t count = std::min(kMeasuredAtOnce, keys.size() - first);
    const std::string number = std::to_string(count);
    std::vector<std::string_view> arguments = {"EVAL", kMeasureScript, number};
    for (std::size_t i = 0; i < count; ++i) arguments.push_back(keys[first + i]);
    arguments.push_back(least);
    const Result<Value> reply = scan_->call(arguments);
    if (!reply) break;  // SCAN will say so.
    if (reply->is_error()) {
      base::log(base::LogLevel::warning, "member {}: keys are not measured: {}", id(index_), reply->text);
      can_measure_ = false;
    }
    for (std::size_t i = 0; i + 1 < reply->items.size(); i += 2) {
      const auto place = static_cast<std::size_t>(reply->items[i].integer);
      if (place == 0 || place > count) continue;
      sizes[first + place - 1] = static_cast<std::uint64_t>(reply->items[i + 1].integer);
    }
  }
  return sizes;
}

void MoverSource::add(MemberIndex to, std::string key, std::uint64_t bytes) {
  Batch& batch = packing_.try_emplace(to, Batch{to, {}, 0}).first->second;
  // A batch's payload is copied in rounds of kBatchBytesMax anyway: one that fits is one round.
  if (!batch.keys.empty() && batch.bytes + bytes > transfer::kBatchBytesMax)
    push(std::exchange(batch, Batch{to, {}, 0}));
  batch.keys.push_back(std::move(key));
  batch.bytes += bytes;
  if (batch.keys.size() >= shared_.options.limits.move_batch_keys)
    push(std::exchange(batch, Batch{to, {}, 0}));
}

void MoverSource::push(Batch batch) {
  if (batch.keys.empty()) return;
  start_lanes();
  std::unique_lock lock(mutex_);
  while (queue_.size() >= kBatchesAhead && !verdict_ && !shared_.stopping)
    changed_.wait_for(lock, std::chrono::milliseconds(50));
  queue_.push_back(std::move(batch));
  changed_.notify_all();
}

void MoverSource::finish_batches() {
  for (auto& [to, batch] : packing_) push(std::exchange(batch, Batch{to, {}, 0}));
  std::unique_lock lock(mutex_);
  while ((!queue_.empty() || at_work_ != 0) && !verdict_ && !shared_.stopping)
    changed_.wait_for(lock, std::chrono::milliseconds(50));
}

// One at a time, when everything else of this pass has moved, over connections that wait longer.
void MoverSource::move_big_keys() {
  if (big_.empty() || shared_.options.big_key_limit == 0) return;
  Lane lane;
  lane.patience = kBigKeyPatience;
  lane.claim_ms = kBigKeyClaimMs;
  std::vector<std::pair<MemberIndex, BigKey>> left;
  for (auto& [to, big] : big_) {
    if (big.bytes > shared_.options.big_key_limit || over()) {
      left.emplace_back(to, std::move(big));
      continue;
    }
    ++found_;  // The next pass sees whether it has moved.
    base::log(base::LogLevel::info, "moving big key '{}' ({:.1f} MiB) from {} to {}",
              base::printable(big.key, 200), static_cast<double>(big.bytes) / 1048576, big.from, big.to);
    move_batch(lane, Batch{to, {big.key}, big.bytes});
  }
  big_ = std::move(left);
}

void MoverSource::tell_waiting() {
  const std::lock_guard lock(shared_.mutex);
  std::vector<BigKey>& waiting = shared_.waiting[index_];
  waiting.clear();
  for (const auto& [to, big] : big_) {
    if (waiting.size() < Mover::kBigKeysListed) waiting.push_back(big);
  }
  shared_.waiting_keys[index_] = big_.size();
}

}  // namespace ringshift::resize
