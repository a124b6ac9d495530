#include "resize/mover.h"

#include <fmt/format.h>

#include <span>

#include "backend/sync_client.h"
#include "base/encoding.h"
#include "resize/lost.h"
#include "resize/members.h"

namespace ringshift::resize {

using backend::SyncClient;
using protocol::resp::Value;
using topology::KeyState;
using topology::MemberIndex;

namespace {

constexpr std::string_view kScanCount = "1000";
constexpr std::size_t kBigKeysListed = 100;
constexpr std::size_t kKeyBytesShown = 200;  // A key may be any bytes, and half a gigabyte long.
constexpr std::chrono::milliseconds kPauseBetweenPasses{20};  // For others' claims to end.

}  // namespace

struct Mover::Source {
  MemberIndex index = 0;
  const topology::Member* member = nullptr;
  std::unique_ptr<SyncClient> connection;
  std::map<MemberIndex, std::unique_ptr<SyncClient>> destinations;
  transfer::TokenSource tokens;
};

Mover::Mover(std::shared_ptr<const topology::Snapshot> snapshot, Options options)
    : snapshot_(std::move(snapshot)), options_(std::move(options)) {
  // Keys come from A's members, or from B's in a rollback.
  const topology::Topology& topology = snapshot_->topology();
  // Nothing is asked of those that are lost.
  const auto members = without_lost(
      topology.resize->rollback ? topology.resize->members : topology.spec.members, topology.resize->lost);
  running_ = members.size();
  threads_.reserve(members.size());
  for (const topology::Member& member : members) {
    threads_.emplace_back([this, index = snapshot_->index_of(member.id)] { work(index); });
  }
}

Mover::~Mover() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void Mover::stop() {
  stopping_ = true;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool Mover::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return running_ == 0; });
}

Mover::Outcome Mover::outcome() const {
  const std::lock_guard lock(mutex_);
  return outcome_;
}

std::string Mover::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

Mover::Progress Mover::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

void Mover::work(MemberIndex index) {
  Source source;
  source.index = index;
  source.member = &snapshot_->members()[index];
  std::string error;
  const Outcome outcome = run_source(source, error);
  const std::lock_guard lock(mutex_);
  --running_;
  // The first thing that went wrong ends the others and is what is told.
  if (outcome != Outcome::clean && outcome_ == Outcome::clean) {
    outcome_ = outcome;
    error_ = error;
    stopping_ = true;
  }
  changed_.notify_all();
}

Mover::Outcome Mover::run_source(Source& source, std::string& error) {
  backend::SyncOptions sync;
  sync.name = options_.name;
  sync.access = options_.access;
  auto connected = SyncClient::connect(source.member->address, sync);
  if (!connected) {
    error = fmt::format("member {}: {}", source.member->id, connected.error().message);
    return Outcome::unreachable;
  }
  source.connection = std::move(*connected);
  while (!stopping_) {
    std::uint64_t found = 0;
    const Result<Value> before = source.connection->call({"INFO", "server"});
    if (!before) {
      error = fmt::format("member {}: {}", source.member->id, before.error().message);
      return Outcome::unreachable;
    }
    if (const Outcome outcome = pass(source, found, error); outcome != Outcome::clean) return outcome;
    if (stopping_) break;
    const Result<Value> after = source.connection->call({"INFO", "server"});
    if (!after) {
      error = fmt::format("member {}: {}", source.member->id, after.error().message);
      return Outcome::unreachable;
    }
    if (info_field(before->text, "run_id") != info_field(after->text, "run_id")) return Outcome::restarted;
    if (found == 0) return Outcome::clean;
    if (!pause(kPauseBetweenPasses)) break;
  }
  return Outcome::stopped;
}

Mover::Outcome Mover::pass(Source& source, std::uint64_t& found, std::string& error) {
  std::string cursor = "0";
  do {
    if (stopping_) return Outcome::stopped;
    const Result<Value> page = source.connection->call({"SCAN", cursor, "COUNT", kScanCount});
    if (!page || page->items.size() != 2) {
      error = fmt::format("member {}: SCAN: {}", source.member->id, page ? page->text : page.error().message);
      return Outcome::unreachable;
    }
    cursor = page->items[0].text;
    std::map<MemberIndex, std::vector<std::string>> moving;
    for (const Value& key : page->items[1].items) {
      if (key.text.starts_with(transfer::kReservedPrefix)) continue;
      const topology::Route route = snapshot_->route(key.text);
      if (route.state == KeyState::dual && route.source == source.index)
        moving[route.member].push_back(key.text);
    }
    for (const auto& [to, keys] : moving) {
      found += keys.size();
      if (const Outcome outcome = move_keys(source, to, keys, error); outcome != Outcome::clean)
        return outcome;
    }
  } while (cursor != "0");
  return Outcome::clean;
}

Mover::Outcome Mover::move_keys(Source& source, MemberIndex to, const std::vector<std::string>& keys,
                                std::string& error) {
  const topology::Member& member = snapshot_->members()[to];
  std::unique_ptr<SyncClient>& destination = source.destinations[to];
  if (destination == nullptr) {
    backend::SyncOptions sync;
    sync.name = options_.name;
    sync.access = options_.access;
    auto connected = SyncClient::connect(member.address, sync);
    if (!connected) {
      error = fmt::format("member {}: {}", member.id, connected.error().message);
      return Outcome::unreachable;
    }
    destination = std::move(*connected);
  }
  transfer::BatchMover batch(*source.connection, *destination,
                             transfer::open_stamp(snapshot_->topology().fence, member.id), source.tokens);
  std::span<const std::string> rest = keys;
  while (!rest.empty()) {
    const std::size_t count = std::min<std::size_t>(rest.size(), options_.batch_keys);
    if (!wait_for_tokens(count)) return Outcome::stopped;
    const Result<transfer::BatchResult> result = batch.move(rest.first(count));
    rest = rest.subspan(count);
    if (!result) {
      error = fmt::format("moving from {} to {}: {}", source.member->id, member.id, result.error().message);
      return Outcome::unreachable;
    }
    book(source, to, *result);
    if (result->gated) {
      error = fmt::format("member {} does not let transfers in", member.id);
      return Outcome::gated;
    }
    if (!result->error.empty()) {
      error = fmt::format("moving from {} to {}: {}", source.member->id, member.id, result->error);
      return Outcome::failed;
    }
  }
  return Outcome::clean;
}

bool Mover::wait_for_tokens(std::size_t keys) {
  while (!stopping_) {
    const base::TimePoint now = std::chrono::steady_clock::now();
    const base::Duration wait = std::max(options_.keys->wait(now), options_.bytes->wait(now));
    if (wait <= base::Duration::zero()) {
      options_.keys->spend(static_cast<double>(keys), now);
      return true;
    }
    if (!pause(wait)) return false;
  }
  return false;
}

void Mover::book(const Source& source, MemberIndex to, const transfer::BatchResult& result) {
  if (result.bytes != 0)
    options_.bytes->spend(static_cast<double>(result.bytes), std::chrono::steady_clock::now());
  const std::lock_guard lock(mutex_);
  progress_.moved += result.moved;
  progress_.bytes += result.bytes;
  if (result.moved != 0) progress_.pairs[{source.member->id, snapshot_->members()[to].id}] += result.moved;
  for (const auto& [key, size] : result.big) {
    if (progress_.big_keys.size() < kBigKeysListed)
      progress_.big_keys.push_back(base::printable(key, kKeyBytesShown));
  }
}

bool Mover::pause(base::Duration duration) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, duration, [this] { return stopping_.load(); });
  return !stopping_;
}

}  // namespace ringshift::resize
