#include "resize/mover.h"

#include <fmt/format.h>

#include <algorithm>

#include "resize/lost.h"
#include "resize/mover_source.h"

namespace ringshift::resize {

using topology::MemberIndex;

MoverShared::MoverShared(std::shared_ptr<const topology::Snapshot> s, Mover::Options o)
    : snapshot(std::move(s)),
      options(std::move(o)),
      batches(options.limits.move_batches_in_all),
      memory(options.limits.move_memory_bytes) {}

bool MoverShared::pause(base::Duration duration) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, duration, [this] { return stopping.load(); });
  return !stopping;
}

void MoverShared::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
    changed.notify_all();
  }
  batches.wake();
  memory.wake();
}

Mover::Mover(std::shared_ptr<const topology::Snapshot> snapshot, Options options)
    : shared_(std::make_unique<MoverShared>(std::move(snapshot), std::move(options))) {
  // Keys come from A's members, or from B's in a rollback.
  const topology::Topology& topology = shared_->snapshot->topology();
  // Nothing is asked of those that are lost.
  const auto members = without_lost(
      topology.resize->rollback ? topology.resize->members : topology.spec.members, topology.resize->lost);
  shared_->running = members.size();
  threads_.reserve(members.size());
  for (const topology::Member& member : members) {
    threads_.emplace_back([this, index = shared_->snapshot->index_of(member.id)] { work(index); });
  }
}

Mover::~Mover() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void Mover::stop() { shared_->stop(); }

void Mover::prefer(const std::vector<std::string>& keys) {
  const std::lock_guard lock(shared_->mutex);
  for (const std::string& key : keys) {
    if (shared_->hot.size() >= kHotKeysMax) return;
    if (shared_->hot_known.insert(key).second) shared_->hot.push_back(key);
  }
}

void Mover::hold_back_for_origin(bool over) { shared_->origin_over = over; }

bool Mover::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, patience, [this] { return shared_->running == 0; });
}

Mover::Outcome Mover::outcome() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->outcome;
}

std::string Mover::error() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->error;
}

Mover::Progress Mover::progress() const {
  const std::lock_guard lock(shared_->mutex);
  Progress out = shared_->progress;
  for (const auto& [source, keys] : shared_->waiting) {
    for (const BigKey& key : keys) {
      if (out.waiting.size() < kBigKeysListed) out.waiting.push_back(key);
    }
  }
  for (const auto& [source, count] : shared_->waiting_keys) out.waiting_keys += count;
  const auto configured = static_cast<double>(shared_->options.limits.move_keys_per_second);
  for (const auto& [source, rate] : shared_->rates) {
    out.rate += rate.first;
    if (!rate.second.empty()) out.held_back.push_back(rate.second);
  }
  out.rate = shared_->rates.empty() ? configured : std::min(out.rate, configured);
  return out;
}

std::uint64_t Mover::most_payload_held() const { return shared_->memory.most_held(); }

void Mover::work(MemberIndex index) {
  std::string error;
  Outcome outcome = Outcome::clean;
  {
    MoverSource source(*shared_, index);
    outcome = source.run(error);
  }  // Its lanes have ended: what they moved is counted.
  const bool ends_all = outcome != Outcome::clean && outcome != Outcome::unreachable &&
                        outcome != Outcome::big_keys && outcome != Outcome::stopped;
  {
    const std::lock_guard lock(shared_->mutex);
    --shared_->running;
    shared_->rates.erase(index);
    // What ends all is told before what does not: a member that is away, a big key, an end that was asked
    // for.
    const auto weight = [](Outcome one) {
      switch (one) {
        case Outcome::clean:
          return 0;
        case Outcome::big_keys:
          return 1;
        case Outcome::stopped:
          return 2;
        case Outcome::unreachable:
          return 3;
        default:
          return 4;
      }
    };
    if (weight(outcome) > weight(shared_->outcome)) {
      shared_->outcome = outcome;
      shared_->error = error;
    }
    shared_->changed.notify_all();
  }
  if (ends_all) shared_->stop();
}

}  // namespace ringshift::resize
