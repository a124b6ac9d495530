// The mover's lanes: each takes batches of one source and transfers them, over connections of its own.
#include <fmt/format.h>

#include "backend/sync_client.h"
#include "base/encoding.h"
#include "base/jitter.h"
#include "resize/mover_source.h"

namespace ringshift::resize {

using backend::SyncClient;
using topology::MemberIndex;

namespace {

constexpr std::size_t kKeyBytesShown = 200;  // A key may be any bytes, and half a gigabyte long.
constexpr std::chrono::milliseconds kRetryFirst{50};
constexpr std::chrono::milliseconds kRetryMax{1000};

// What passes by itself: the member loads its data, runs a long script, or has just become a replica.
bool passes_by_itself(std::string_view error) {
  for (const std::string_view code : {"LOADING ", "BUSY ", "MASTERDOWN ", "READONLY ", "NOREPLICAS "}) {
    if (error.starts_with(code)) return true;
  }
  return false;
}

}  // namespace

const std::string& MoverSource::id(MemberIndex member) const {
  return shared_.snapshot->members()[member].id;
}

bool MoverSource::over() const {
  const std::lock_guard lock(mutex_);
  return verdict_.has_value() || shared_.stopping;
}

void MoverSource::conclude(Outcome outcome, std::string error) {
  const std::lock_guard lock(mutex_);
  if (!verdict_) verdict_.emplace(outcome, std::move(error));
  changed_.notify_all();
}

Result<MoverSource::Client> MoverSource::dial(MemberIndex member, std::chrono::milliseconds patience) const {
  backend::SyncOptions sync;
  sync.name = shared_.options.name;
  sync.access = shared_.options.access;
  sync.request_timeout = patience;
  return SyncClient::connect(shared_.snapshot->members()[member].address, sync);
}

// Many lanes fail at once, and must not come back at once. A source that has
// failed too often is given up; a destination is left out until the pass has looked after the others.
void MoverSource::failed_at(MemberIndex member, const std::string& error) {
  base::Duration wait{};
  {
    const std::lock_guard lock(mutex_);
    Trouble& trouble = trouble_[member];
    const base::TimePoint now = std::chrono::steady_clock::now();
    trouble.error = fmt::format("member {}: {}", id(member), error);
    if (trouble.failures == 0 || now >= trouble.not_before) {  // Else it is what another lane has counted.
      ++trouble.failures;
      trouble.not_before =
          now + base::backoff<base::Duration>(kRetryFirst, kRetryMax, trouble.failures, random_);
    }
    wait = trouble.not_before - now;
    if (member == index_ && trouble.failures >= kTriesMax && !verdict_) {
      verdict_.emplace(Outcome::unreachable, trouble.error);
    }
    changed_.notify_all();
  }
  {
    const std::lock_guard lock(shared_.mutex);
    ++shared_.progress.retries;
  }
  if (member == index_) static_cast<void>(shared_.pause(wait));
}

void MoverSource::answered(MemberIndex member) {
  const std::lock_guard lock(mutex_);
  trouble_.erase(member);
}

void MoverSource::start_lanes() {
  while (lanes_.size() < lanes_wanted_) lanes_.emplace_back([this] { lane(); });
}

void MoverSource::lane() {
  Lane lane;
  while (true) {
    Batch batch;
    {
      std::unique_lock lock(mutex_);
      while (queue_.empty() && !closed_ && !verdict_ && !shared_.stopping)
        changed_.wait_for(lock, std::chrono::milliseconds(50));
      if (verdict_ || shared_.stopping || queue_.empty()) return;
      batch = std::move(queue_.front());
      queue_.pop_front();
      ++at_work_;
      changed_.notify_all();
    }
    move_batch(lane, batch);
    const std::lock_guard lock(mutex_);
    --at_work_;
    changed_.notify_all();
  }
}

bool MoverSource::prepare(Lane& lane, MemberIndex to) {
  for (const MemberIndex member : {index_, to}) {
    Client& client = member == index_ ? lane.source : lane.destinations[to];
    if (client != nullptr && client->connected()) continue;
    auto connected = dial(member, lane.patience);
    if (!connected) {
      failed_at(member, connected.error().message);
      return false;
    }
    client = std::move(*connected);
  }
  return true;
}

// A batch that fails is not tried again here: its keys are wherever they are, and the next pass finds them.
void MoverSource::move_batch(Lane& lane, const Batch& batch) {
  if (!prepare(lane, batch.to) || !wait_for_tokens(batch.keys.size())) return;
  // Of a payload there are two copies: as it came, and as it goes.
  const Budget::Hold memory(
      shared_.memory, 2 * std::max<std::uint64_t>(batch.bytes, transfer::kBatchBytesMax), shared_.stopping);
  const Budget::Hold one(shared_.batches, 1, shared_.stopping);
  if (!memory || !one || over()) return;
  SyncClient& source = *lane.source;
  SyncClient& destination = *lane.destinations[batch.to];
  const std::string stamp = transfer::open_stamp(shared_.snapshot->topology().fence, id(batch.to));
  transfer::BatchMover mover(source, destination, stamp, lane.tokens, shared_.options.verify, lane.claim_ms);
  const Result<transfer::BatchResult> result = mover.move(batch.keys);
  if (!result) {
    failed_at(source.connected() ? batch.to : index_, result.error().message);
    return;
  }
  book(batch.to, *result);
  const std::string pair = fmt::format("moving from {} to {}", id(index_), id(batch.to));
  if (result->gated)
    return conclude(Outcome::gated, fmt::format("member {} does not let transfers in", id(batch.to)));
  if (!result->mismatched.empty()) {
    return conclude(
        Outcome::mismatched,
        fmt::format("{}: the copy of key '{}' is not what the original is ({}); it was removed again, "
                    "and the original is in place",
                    pair, base::printable(result->mismatched.front().first, kKeyBytesShown),
                    result->mismatched.front().second));
  }
  if (!result->error.empty() && passes_by_itself(result->error)) return failed_at(batch.to, result->error);
  if (!result->error.empty()) return conclude(Outcome::failed, fmt::format("{}: {}", pair, result->error));
  answered(index_);
  answered(batch.to);
}

bool MoverSource::wait_for_tokens(std::size_t keys) {
  while (!over()) {
    const base::TimePoint now = std::chrono::steady_clock::now();
    const Mover::Options& options = shared_.options;
    const base::Duration wait =
        std::max({options.keys->wait(now), options.bytes->wait(now), rate_.wait(now)});
    if (wait <= base::Duration::zero()) {
      options.keys->spend(static_cast<double>(keys), now);
      rate_.spend(static_cast<double>(keys), now);
      return true;
    }
    // Not in one go: the rate may be set anew meanwhile.
    if (!shared_.pause(std::min<base::Duration>(wait, std::chrono::milliseconds(100)))) return false;
  }
  return false;
}

void MoverSource::book(MemberIndex to, const transfer::BatchResult& result) {
  if (result.bytes != 0)
    shared_.options.bytes->spend(static_cast<double>(result.bytes), std::chrono::steady_clock::now());
  moved_ += result.moved;
  const std::lock_guard lock(shared_.mutex);
  Mover::Progress& progress = shared_.progress;
  progress.moved += result.moved;
  progress.bytes += result.bytes;
  progress.verified += result.verified;
  if (result.moved != 0) {
    progress.pairs[{id(index_), id(to)}] += result.moved;
    progress.pair_bytes[{id(index_), id(to)}] += result.bytes;
  }
  for (const auto& [key, size] : result.big) {
    if (progress.big_keys.size() < Mover::kBigKeysListed)
      progress.big_keys.push_back(base::printable(key, kKeyBytesShown));
  }
}

}  // namespace ringshift::resize
