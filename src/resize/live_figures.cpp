#include "resize/live_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "base/encoding.h"
#include "coord/router_record.h"
#include "protocol/resp/value.h"
#include "resize/members.h"
#include "resize/observer.h"
#include "transfer/steps.h"

namespace ringshift::resize {
namespace {

using protocol::resp::Value;
using topology::Member;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kSampleMin = 10, kSampleMax = 250;  // Of one member.
constexpr std::size_t kFailuresNamed = 8;  // Then no more members are asked: each may take a second.
constexpr std::chrono::milliseconds kPoll{100};

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

struct Lookups {
  double hits = 0, misses = 0;
  [[nodiscard]] double all() const { return hits + misses; }
};

double info_number(std::string_view info, std::string_view field) {
  return static_cast<double>(base::parse_u64(info_field(info, field)).value_or(0));
}

Lookups lookups_of(std::string_view stats) {
  return {info_number(stats, "keyspace_hits"), info_number(stats, "keyspace_misses")};
}

// What is known of one member while it is measured.
struct Reading {
  const Member* member = nullptr;
  bool has_keys = false;  // It is in force: what the new spec adds has nothing of ours.
  plan::MemberFigures figures;
  double dataset_bytes = 0;
  double sampled_bytes = 0;
  std::size_t sampled_keys = 0;
  Lookups before, ever, during;
  Clock::time_point at;
};

Status read_first(Members& members, Reading& reading) {
  const Member& member = *reading.member;
  const auto stats = members.call(member, {"INFO", "stats"});
  if (!stats) return std::unexpected(stats.error());
  const auto memory = members.call(member, {"INFO", "memory"});
  if (!memory) return std::unexpected(memory.error());
  reading.figures.id = member.id;
  reading.figures.used_memory = info_number(memory->text, "used_memory");
  reading.figures.max_memory = info_number(memory->text, "maxmemory");
  reading.dataset_bytes = info_number(memory->text, "used_memory_dataset");
  if (!reading.has_keys) return {};
  reading.ever = lookups_of(stats->text);
  reading.figures.ops_per_second = info_number(stats->text, "instantaneous_ops_per_sec");
  const auto count = members.key_count(member);
  if (!count) return std::unexpected(count.error());
  const auto stamp = members.call(member, {"EXISTS", transfer::kStampKey});
  if (!stamp) return std::unexpected(stamp.error());
  reading.figures.keys = std::max(0.0, static_cast<double>(*count) - static_cast<double>(stamp->integer));
  return {};
}

// Random keys and what they take; a member that forbids MEMORY USAGE gives none, which is no failure.
Status sample(Members& members, Reading& reading, std::size_t want) {
  if (reading.figures.keys.value_or(0) <= 0) return {};
  const auto client = members.client(*reading.member);
  if (!client) return std::unexpected(client.error());
  const auto about = [&](const Error& error) {
    return fail(error.kind, fmt::format("member {} ({}): {}", reading.member->id, reading.member->address,
                                        error.message));
  };
  std::string commands;
  for (std::size_t i = 0; i < want; ++i) protocol::resp::append_command(commands, {"RANDOMKEY"});
  const auto keys = (*client)->pipeline(commands, want);
  if (!keys) return about(keys.error());
  commands.clear();
  std::size_t asked = 0;
  for (const Value& key : *keys) {
    if (key.is_null() || key.is_error() || key.text.starts_with(transfer::kReservedPrefix)) continue;
    protocol::resp::append_command(commands, {"MEMORY", "USAGE", key.text});
    ++asked;
  }
  if (asked == 0) return {};
  const auto sizes = (*client)->pipeline(commands, asked);
  if (!sizes) return about(sizes.error());
  for (const Value& size : *sizes) {
    if (size.type != Value::Type::integer) continue;  // It expired meanwhile, or the command is forbidden.
    reading.sampled_bytes += static_cast<double>(size.integer);
    ++reading.sampled_keys;
  }
  return {};
}

Status begin_window(Members& members, Reading& reading) {
  const auto stats = members.call(*reading.member, {"INFO", "stats"});
  if (!stats) return std::unexpected(stats.error());
  reading.before = lookups_of(stats->text);
  reading.at = Clock::now();
  return {};
}

// Rates from here on: lookups a second.
Status end_window(Members& members, Reading& reading) {
  const auto stats = members.call(*reading.member, {"INFO", "stats"});
  if (!stats) return std::unexpected(stats.error());
  reading.ever = lookups_of(stats->text);
  const double seconds = std::max(1e-3, seconds_between(reading.at, Clock::now()));
  // A counter that fell was reset: by CONFIG RESETSTAT, or with its server.
  reading.during.hits = std::max(0.0, reading.ever.hits - reading.before.hits) / seconds;
  reading.during.misses = std::max(0.0, reading.ever.misses - reading.before.misses) / seconds;
  return {};
}

// Runs `step` for each member; all failures in one message.
template <class Step>
Status for_each(std::vector<Reading>& readings, const Step& step) {
  std::vector<std::string> failures;
  for (Reading& reading : readings) {
    if (const Status done = step(reading); !done) failures.push_back(done.error().message);
    if (failures.size() == kFailuresNamed) break;
  }
  if (failures.empty()) return {};
  return fail(
      ErrorKind::retryable,
      fmt::format("--live needs an answer of every member: {}; start them, or give the figures by flags",
                  fmt::join(failures, "; ")));
}

// Two reports of one router, at the times when we first saw them.
struct RouterRate {
  coord::Revision revision = 0;
  coord::RouterRecord first, last;
  Clock::time_point first_at, last_at;
  int changes = 0;
};

// Watches the routers' records for the window. A router reports once a second, so the time between two of its
// reports is known to a poll; the record that was there at the start has no known time and does not count.
Lookups watch_routers(coord::Coordinator& coordinator, const coord::ClusterKeys& keys) {
  std::map<std::string, RouterRate> routers;
  const auto end = Clock::now() + kWindow;
  for (bool first = true; Clock::now() < end; first = false, std::this_thread::sleep_for(kPoll)) {
    const auto range = coordinator.list(keys.routers());
    if (!range) continue;  // The registry helps here and is not needed: the members count as well.
    for (const coord::KeyValue& kv : range->kvs) {
      const auto record = coord::parse_router_record(kv.value);
      RouterRate& router = routers[kv.key];
      if (!record || router.revision == kv.mod_revision) continue;
      const bool known = router.revision != 0 || !first;
      router.revision = kv.mod_revision;
      if (!known) continue;
      router.last = *record;
      router.last_at = Clock::now();
      if (router.changes++ == 0) router.first = router.last, router.first_at = router.last_at;
    }
  }
  Lookups all;
  for (const auto& [name, router] : routers) {
    if (router.changes < 2 || router.last.hits < router.first.hits ||
        router.last.misses < router.first.misses)
      continue;
    const double seconds = std::max(1e-3, seconds_between(router.first_at, router.last_at));
    all.hits += static_cast<double>(router.last.hits - router.first.hits) / seconds;
    all.misses += static_cast<double>(router.last.misses - router.first.misses) / seconds;
  }
  return all;
}

// The mean over keys, not over members: one with ten times the keys counts ten times.
void add_size(const std::vector<Reading>& readings, LiveFigures& out) {
  double weighted = 0, weight = 0, dataset = 0;
  for (const Reading& reading : readings) {
    if (!reading.has_keys) continue;
    dataset += reading.dataset_bytes;
    out.sampled_keys += reading.sampled_keys;
    if (reading.sampled_keys == 0) continue;
    weighted += *reading.figures.keys * reading.sampled_bytes / static_cast<double>(reading.sampled_keys);
    weight += *reading.figures.keys;
  }
  if (weight > 0) {
    out.value_bytes = weighted / weight;
  } else if (out.keys > 0) {
    out.value_bytes = dataset / out.keys;
  }
}

void add_traffic(const std::vector<Reading>& readings, const Lookups& routers, LiveFigures& out) {
  Lookups members, ever;
  for (const Reading& reading : readings) {
    if (!reading.has_keys) continue;
    members.hits += reading.during.hits;
    members.misses += reading.during.misses;
    ever.hits += reading.ever.hits;
    ever.misses += reading.ever.misses;
  }
  constexpr double kAlike = 0.9;  // The two windows are not the same one.
  const bool by_routers = routers.all() > 0 && routers.all() >= kAlike * members.all();
  const Lookups& chosen = by_routers ? routers : members;
  out.traffic_source = by_routers ? "routers" : "members";
  out.lookups_per_second = chosen.all();
  const auto enough = static_cast<double>(kLookupsThatTell);
  const double in_window = chosen.all() * std::chrono::duration<double>(kWindow).count();
  if (in_window >= enough) {
    out.hit_rate = chosen.hits / chosen.all();
  } else if (ever.all() >= enough) {
    out.hit_rate = ever.hits / ever.all();
  }
}

}  // namespace

namespace {

std::vector<Reading> readings_of(const topology::Spec& from, const topology::Spec& to) {
  std::vector<Reading> readings;
  readings.reserve(from.members.size() + to.members.size());
  for (const Member& member : from.members) readings.push_back({&member, true, {}, 0, 0, 0, {}, {}, {}, {}});
  for (const Member& member : to.members) {
    if (std::ranges::find(from.members, member.id, &Member::id) != from.members.end()) continue;
    readings.push_back({&member, false, {}, 0, 0, 0, {}, {}, {}, {}});
  }
  return readings;
}

std::size_t sample_of_each(const topology::Spec& from) {
  return std::clamp(kSampledKeys / from.members.size(), kSampleMin, kSampleMax);
}

LiveFigures add_up(const std::vector<Reading>& readings) {
  LiveFigures out;
  for (const Reading& reading : readings) {
    out.members.push_back(reading.figures);
    out.keys += reading.figures.keys.value_or(0);
  }
  add_size(readings, out);
  return out;
}

}  // namespace

Result<LiveFigures> glance(const topology::Spec& from, const topology::Spec& to,
                           std::shared_ptr<const backend::MemberAccess> access) {
  std::vector<Reading> readings = readings_of(from, to);
  Members members(std::string(kObserverName), std::move(access));
  for (Reading& reading : readings) {
    if (Status read = read_first(members, reading); !read) return std::unexpected(read.error());
    if (Status sampled = sample(members, reading, sample_of_each(from)); !sampled)
      return std::unexpected(sampled.error());
  }
  LiveFigures out = add_up(readings);
  Lookups ever;
  for (const Reading& reading : readings) ever.hits += reading.ever.hits, ever.misses += reading.ever.misses;
  out.traffic_source = "members, ever";
  if (ever.all() >= static_cast<double>(kLookupsThatTell)) out.hit_rate = ever.hits / ever.all();
  return out;
}

Result<LiveFigures> measure(const topology::Spec& from, const topology::Spec& to,
                            coord::Coordinator* coordinator, const coord::ClusterKeys& keys,
                            std::shared_ptr<const backend::MemberAccess> access) {
  std::vector<Reading> readings = readings_of(from, to);
  // A name of ours: a resize that starts meanwhile does not take us for a stranger.
  Members members(std::string(kObserverName), std::move(access));
  const std::size_t share = sample_of_each(from);
  const auto begin = [&](Reading& reading) -> Status {
    if (Status read = read_first(members, reading); !read) return read;
    if (Status sampled = sample(members, reading, share); !sampled) return sampled;
    return begin_window(members, reading);
  };
  if (const Status begun = for_each(readings, begin); !begun) return std::unexpected(begun.error());
  Lookups routers;
  if (coordinator != nullptr) {
    routers = watch_routers(*coordinator, keys);
  } else {
    std::this_thread::sleep_for(kWindow);
  }
  const auto end = [&](Reading& reading) { return end_window(members, reading); };
  if (const Status ended = for_each(readings, end); !ended) return std::unexpected(ended.error());

  LiveFigures out = add_up(readings);
  add_traffic(readings, routers, out);
  return out;
}

}  // namespace ringshift::resize
