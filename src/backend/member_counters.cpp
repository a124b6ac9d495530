#include "backend/member_counters.h"

#include <algorithm>

namespace ringshift::backend {

using protocol::resp::Traffic;

namespace {

// How many elements of an MGET's reply are values, and how many are none. Stops at what is no such reply.
struct Elements {
  std::uint64_t values = 0, nils = 0;
};
Elements elements_of(std::string_view raw) noexcept {
  Elements out;
  if (raw.empty() || raw[0] != '*') return out;
  std::size_t at = raw.find('\n') + 1;
  while (at + 2 < raw.size() && at != 0) {
    if (raw[at] == '_' || (raw[at] == '$' && raw[at + 1] == '-')) {
      ++out.nils;
      at = raw.find('\n', at) + 1;
      continue;
    }
    if (raw[at] != '$') break;
    std::size_t size = 0;
    for (++at; at < raw.size() && raw[at] != '\r'; ++at)
      size = size * 10 + static_cast<std::size_t>(raw[at] - '0');
    ++out.values;
    at += 2 + size + 2;
  }
  return out;
}

}  // namespace

void MemberSums::add(const MemberSums& other) noexcept {
  static constexpr std::uint64_t MemberSums::* kCounts[] = {
      &MemberSums::reads,        &MemberSums::writes,          &MemberSums::others,
      &MemberSums::read_hits,    &MemberSums::read_misses,     &MemberSums::write_hits,
      &MemberSums::write_misses, &MemberSums::unsent,          &MemberSums::unknown,
      &MemberSums::overloaded,   &MemberSums::timeouts,        &MemberSums::error_replies,
      &MemberSums::connects,     &MemberSums::reconnects,      &MemberSums::connect_failures,
      &MemberSums::bytes_out,    &MemberSums::bytes_in,        &MemberSums::steps,
      &MemberSums::pools,        &MemberSums::pools_connected, &MemberSums::micros};
  for (const auto count : kCounts) this->*count += other.*count;
  in_flight += other.in_flight;
  unsent_bytes += other.unsent_bytes;
  connections += other.connections;
  for (std::size_t i = 0; i < times.size(); ++i) times[i] += other.times[i];
}

void MemberCounters::look_at(Traffic traffic, std::string_view raw) noexcept {
  if (raw[0] == '-') return bump(errors_[index(traffic)]);
  switch (traffic) {
    case Traffic::get:
    case Traffic::get_write:
    case Traffic::get_if_there:
      if (is_nil(raw)) bump(nils_[index(traffic)]);
      return;
    case Traffic::read_if_exists:
    case Traffic::mget_if_exists:
      if (!raw.starts_with(":1")) bump(nils_[index(traffic)]);
      return;
    case Traffic::mget: {
      const Elements elements = elements_of(raw);
      bump(mget_hits_, elements.values);
      bump(mget_misses_, elements.nils);
      return;
    }
    default:
      return;
  }
}

void MemberCounters::failed(Traffic traffic, Failure::Kind kind, bool timed_out) noexcept {
  if (traffic == Traffic::none) return;
  bump(failures_[static_cast<std::size_t>(kind)]);
  if (timed_out) bump(timeouts_);
}

void MemberCounters::add_to(MemberSums& sums) const noexcept {
  const auto of = [](const Count& count) { return count.load(std::memory_order_relaxed); };
  // What is taken away is read first: a difference of a moment is never below zero.
  struct Kind {
    std::uint64_t nils, errors, answers;
    [[nodiscard]] std::uint64_t hits() const { return answers - nils - errors; }
  };
  const auto kind = [&](Traffic traffic) {
    const std::uint64_t nils = of(nils_[index(traffic)]), errors = of(errors_[index(traffic)]);
    return Kind{nils, errors, std::max(at(traffic), nils + errors)};
  };
  const Kind get = kind(Traffic::get), get_write = kind(Traffic::get_write), mget = kind(Traffic::mget);
  // A "no" of these is the answer to nobody.
  const Kind maybe_get = kind(Traffic::get_if_there), maybe_read = kind(Traffic::read_if_exists),
             maybe_mget = kind(Traffic::mget_if_exists);
  const std::uint64_t maybes = maybe_get.answers - maybe_get.nils + maybe_read.answers - maybe_read.nils +
                               maybe_mget.answers - maybe_mget.nils;
  sums.reads += at(Traffic::read) + get.answers + mget.answers + maybes;
  sums.writes += at(Traffic::write) + get_write.answers;
  sums.others += at(Traffic::other);
  sums.steps += at(Traffic::none) + maybe_get.nils + maybe_read.nils + maybe_mget.nils;
  sums.read_hits += get.hits() + maybe_get.hits() + maybe_mget.hits() + of(mget_hits_);
  sums.read_misses += get.nils + of(mget_misses_);
  sums.write_hits += get_write.hits();
  sums.write_misses += get_write.nils;
  for (std::size_t i = index(Traffic::other); i < kKinds; ++i) sums.error_replies += of(errors_[i]);
  sums.unsent += of(failures_[static_cast<std::size_t>(Failure::Kind::unsent)]);
  sums.unknown += of(failures_[static_cast<std::size_t>(Failure::Kind::unknown)]);
  sums.overloaded += of(failures_[static_cast<std::size_t>(Failure::Kind::overloaded)]);
  sums.timeouts += of(timeouts_);
  sums.connects += of(connects_);
  sums.reconnects += of(reconnects_);
  sums.connect_failures += of(connect_failures_);
  sums.bytes_out += of(bytes_out_);
  sums.bytes_in += of(bytes_in_);
  sums.micros += of(micros_);
  sums.in_flight += in_flight_.load(std::memory_order_relaxed);
  sums.unsent_bytes += unsent_.load(std::memory_order_relaxed);
  sums.connections += connections_.load(std::memory_order_relaxed);
  ++sums.pools;
  sums.pools_connected += serves_.load(std::memory_order_relaxed) ? 1 : 0;
  times_.add_to(sums.times);
}

// ---- MemberBoard ----

std::shared_ptr<MemberCounters> MemberBoard::join(std::string_view member) {
  auto counters = std::make_shared<MemberCounters>();
  const std::lock_guard lock(mutex_);
  settle();
  entries_[std::string(member)].pools.push_back(counters);
  return counters;
}

void MemberBoard::settle() const {
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    std::erase_if(entry.pools, [&](const std::shared_ptr<MemberCounters>& counters) {
      if (counters.use_count() != 1) return false;
      std::atomic_thread_fence(std::memory_order_acquire);  // After the last word of who let go of it.
      MemberSums sums;
      counters->add_to(sums);
      sums.in_flight = sums.unsent_bytes = sums.connections = 0;
      sums.pools = sums.pools_connected = 0;
      entry.left.add(sums);
      return true;
    });
    if (!entry.pools.empty()) {
      ++it;
      continue;
    }
    gone_.add(entry.left);
    it = entries_.erase(it);
  }
}

std::map<std::string, MemberSums, std::less<>> MemberBoard::members() const {
  std::map<std::string, MemberSums, std::less<>> out;
  const std::lock_guard lock(mutex_);
  settle();
  for (const auto& [id, entry] : entries_) {
    MemberSums& sums = out[id];
    sums = entry.left;
    for (const auto& counters : entry.pools) counters->add_to(sums);
  }
  return out;
}

MemberSums MemberBoard::all() const {
  const std::lock_guard lock(mutex_);
  settle();
  MemberSums sums = gone_;
  for (const auto& [id, entry] : entries_) {
    sums.add(entry.left);
    for (const auto& counters : entry.pools) counters->add_to(sums);
  }
  return sums;
}

}  // namespace ringshift::backend
