#include "doctor/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "backend/sync_client.h"
#include "base/encoding.h"
#include "transfer/steps.h"

namespace ringshift::doctor {
namespace {

using backend::SyncClient;
using protocol::resp::Value;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kConnect{1000}, kAnswer{3000};
constexpr std::size_t kAtATime = 16;
constexpr int kPings = 3;
constexpr int kAttempts = 3;

std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// A key of ours that nobody has.
std::string unused_key(std::string_view prefix) {
  std::random_device entropy;
  return fmt::format("{}doctor.{:08x}{:08x}", prefix, entropy(), entropy());
}

class Examination {
 public:
  Examination(MemberFacts& facts, SyncClient& client) : facts_(facts), client_(client) {}

  // The reply, also when it is an error; nullopt when the connection is gone.
  std::optional<Value> ask(std::initializer_list<std::string_view> arguments) {
    if (!facts_.unreachable.empty()) return std::nullopt;
    Result<Value> reply = client_.call(arguments);
    if (reply) return std::move(*reply);
    facts_.unreachable = reply.error().message;
    return std::nullopt;
  }

  // Notes it when the member does not let us do it. `harmless`: what an error says that proves that it does.
  std::optional<Value> need(std::string_view what, std::initializer_list<std::string_view> arguments,
                            std::string_view harmless = {}) {
    std::optional<Value> reply = ask(arguments);
    if (!reply || !reply->is_error()) return reply;
    if (!harmless.empty() && reply->text.find(harmless) != std::string::npos) return std::nullopt;
    if (refuses_all_writes(reply->text)) {
      if (facts_.write_refused.empty()) facts_.write_refused = reply->text;
    } else {
      facts_.refused.push_back({std::string(what), reply->text});
    }
    return std::nullopt;
  }

 private:
  MemberFacts& facts_;
  SyncClient& client_;
};

void measure_time(Examination& ask, MemberFacts& facts) {
  for (int i = 0; i < kPings; ++i) {
    const auto start = Clock::now();
    const std::int64_t before = unix_ms();
    const auto reply = ask.ask({"TIME"});
    if (!reply) return;
    const double took = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (i != 0 && took >= facts.round_trip_ms) continue;
    facts.round_trip_ms = took;
    if (reply->items.size() != 2) continue;  // Not allowed: then its clock is not known.
    const auto seconds = base::parse_u64(reply->items[0].text),
               micros = base::parse_u64(reply->items[1].text);
    if (!seconds || !micros) continue;
    const auto there = static_cast<std::int64_t>(*seconds * 1000 + *micros / 1000);
    facts.clock_ahead_ms = there - before - static_cast<std::int64_t>(took / 2);
  }
}

// Everything that transfers, stamps, barriers and the mover send.
void try_commands(Examination& ask, MemberFacts& facts) {
  const std::string ours = unused_key(transfer::kReservedPrefix), theirs = unused_key("");
  (void)ask.need("EVAL and DUMP", {"EVAL", "return {redis.call('DUMP',KEYS[1])}", "1", transfer::kStampKey});
  (void)ask.need("RESTORE", {"EVAL", "return redis.pcall('RESTORE',KEYS[1],'0','')", "1", ours},
                 "DUMP payload");
  (void)ask.need("SET", {"SET", ours, "1", "XX", "PX", "1"});
  (void)ask.need("UNLINK", {"UNLINK", ours});
  (void)ask.need("DEL", {"DEL", ours});
  (void)ask.need("PTTL", {"PTTL", ours});
  (void)ask.need("every key (~*)", {"EXISTS", theirs});
  if (const auto count = ask.need("DBSIZE", {"DBSIZE"}))
    facts.keys = static_cast<std::uint64_t>(count->integer);
  // No connection has this id, now or ever.
  (void)ask.need("CLIENT KILL", {"CLIENT", "KILL", "ID", "9223372036854775807"});
  if (const auto list = ask.need("CLIENT LIST", {"CLIENT", "LIST"})) {
    facts.clients = resize::parse_client_list(list->text);
  }
  if (auto stamp = ask.need("GET", {"GET", transfer::kStampKey})) facts.stamp = std::move(stamp->text);
}

void sample_keys(Examination& ask, MemberFacts& facts, const topology::Snapshot& snapshot) {
  const topology::MemberIndex self = snapshot.index_of(facts.member.id);
  std::string cursor = "0";
  for (int page = 0; page < kSamplePages; ++page) {
    const auto reply = ask.need("SCAN", {"SCAN", cursor, "COUNT", "1000"});
    if (!reply || reply->items.size() != 2) return;
    cursor = reply->items[0].text;
    for (const Value& key : reply->items[1].items) {
      if (key.text.starts_with(transfer::kReservedPrefix)) continue;
      ++facts.keys_sampled;
      // During a resize a key may be with either.
      if (snapshot.owner_before(key.text) == self || snapshot.owner_after(key.text) == self) continue;
      ++facts.keys_elsewhere;
      if (facts.examples.size() < kExamplesKept) facts.examples.push_back(key.text);
    }
    if (cursor == "0") return;
  }
}

}  // namespace

bool refuses_all_writes(std::string_view error) noexcept {
  for (const std::string_view word : {"OOM", "MISCONF", "READONLY", "NOREPLICAS", "LOADING", "MASTERDOWN"}) {
    if (error.starts_with(word) || error.find(fmt::format(" {} ", word)) != std::string_view::npos)
      return true;
  }
  return false;
}

namespace {

// `broke`: it was connected, and is not any more.
MemberFacts examine_once(const topology::Member& member, const topology::Snapshot* snapshot,
                         const std::shared_ptr<const backend::MemberAccess>& access, bool& broke) {
  MemberFacts facts;
  facts.member = member;
  backend::SyncOptions options;
  options.connect_timeout = kConnect;
  options.request_timeout = kAnswer;
  options.name = unused_key(transfer::kReservedPrefix);
  options.access = access;
  const auto client = SyncClient::connect(member.address, options);
  if (!client) {
    facts.unreachable = client.error().message;
    return facts;
  }
  Examination ask(facts, **client);
  if (const auto info = ask.ask({"INFO"}); info && info->is_error()) {
    facts.unreachable = info->text;  // NOAUTH, LOADING, NOPERM: nothing else will work either.
    return facts;
  } else if (info) {
    facts.info = info->text;
  }
  measure_time(ask, facts);
  try_commands(ask, facts);
  if (const auto save = ask.ask({"CONFIG", "GET", "save"}); save && save->items.size() == 2) {
    facts.save = save->items[1].text;
  }
  if (snapshot != nullptr) sample_keys(ask, facts, *snapshot);
  broke = !(*client)->connected();
  return facts;
}

}  // namespace

MemberFacts examine(const topology::Member& member, const topology::Snapshot* snapshot,
                    std::shared_ptr<const backend::MemberAccess> access) {
  MemberFacts facts;
  bool broke = true;
  // A resize's barrier kills connections that no router answers for, and this is one.
  for (int attempt = 0; broke && attempt < kAttempts; ++attempt) {
    broke = false;
    facts = examine_once(member, snapshot, access, broke);
  }
  return facts;
}

std::vector<MemberFacts> examine_all(const std::vector<topology::Member>& members,
                                     const topology::Snapshot* snapshot,
                                     const std::shared_ptr<const backend::MemberAccess>& access) {
  std::vector<MemberFacts> facts(members.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(kAtATime, members.size()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t mine = next++; mine < members.size(); mine = next++) {
        facts[mine] = examine(members[mine], snapshot, access);
      }
    });
  }
  threads.clear();  // Joins them.
  return facts;
}

}  // namespace ringshift::doctor
