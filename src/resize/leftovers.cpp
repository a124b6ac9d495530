#include "resize/leftovers.h"

#include <algorithm>
#include <span>
#include <thread>

#include "base/encoding.h"
#include "resize/lost.h"
#include "transfer/steps.h"

namespace ringshift::resize {

using protocol::resp::Value;
using topology::Member;

namespace {

constexpr std::string_view kLeftoverScanCount = "1000";
constexpr std::size_t kDropBatch = 100;
constexpr std::size_t kExampleBytes = 200;
constexpr base::Duration kWaitMax = std::chrono::milliseconds(50);  // Between two questions to go_on().

// KEYS[1] is the stamp; this step's, whatever the state of its gate (a source's may be closed or open).
constexpr std::string_view kDropScript =
    "local s = redis.call('GET', KEYS[1]) "
    "if s ~= ARGV[1] and s ~= ARGV[2] and s ~= ARGV[3] then return -1 end "
    "local n = 0 "
    "for i = 2, #KEYS do n = n + redis.call('UNLINK', KEYS[i]) end "
    "return n";

}  // namespace

Leftovers::Leftovers(Members& members, std::shared_ptr<const topology::Snapshot> snapshot,
                     topology::SliceSet slices, std::function<bool()> go_on)
    : members_(members),
      snapshot_(std::move(snapshot)),
      slices_(std::move(slices)),
      go_on_(std::move(go_on)),
      looks_(kKeysPerSecond, std::chrono::steady_clock::now()) {}

Result<LeftoverCount> Leftovers::measure() {
  LeftoverCount count;
  const topology::Topology& topology = snapshot_->topology();
  for (const Member& source : without_lost(topology.spec.members, topology.resize->lost)) {
    const Status scanned = scan(source, count, [&](const Keys& keys) { return look(source, keys, count); });
    if (!scanned) return std::unexpected(scanned.error());
    if (count.stopped) break;
  }
  return count;
}

Result<LeftoverCount> Leftovers::drop(TokenBucket& rate) {
  LeftoverCount count;
  const topology::Topology& topology = snapshot_->topology();
  for (const Member& source : without_lost(topology.spec.members, topology.resize->lost)) {
    while (true) {
      const std::uint64_t before = count.keys;
      const Result<std::string> run_id = members_.run_id(source);
      if (!run_id) return std::unexpected(run_id.error());
      const Status scanned = scan(source, count, [&](const Keys& keys) -> Status {
        for (std::span<const std::string> rest = keys; !rest.empty() && !count.gated && !count.stopped;) {
          const auto batch = rest.first(std::min(rest.size(), kDropBatch));
          rest = rest.subspan(batch.size());
          if (!wait_for(rate, batch.size())) {
            count.stopped = true;
            return {};
          }
          if (Status done = unlink(source, Keys(batch.begin(), batch.end()), count); !done) return done;
        }
        return {};
      });
      if (!scanned) return std::unexpected(scanned.error());
      if (count.stopped || count.gated) return count;
      const Result<std::string> still = members_.run_id(source);
      if (!still) return std::unexpected(still.error());
      const auto stamped = topology.fence.run_ids.find(source.id);
      if (*still != *run_id || stamped == topology.fence.run_ids.end() || stamped->second != *still) {
        count.gated = true;  // It restarted, and may have brought keys back.
        return count;
      }
      if (count.keys == before) break;
    }
  }
  return count;
}

Status Leftovers::scan(const Member& source, LeftoverCount& count,
                       const std::function<Status(const Keys&)>& each) {
  const topology::MemberIndex self = snapshot_->index_of(source.id);
  std::string cursor = "0";
  do {
    const Result<Value> page = members_.call(source, {"SCAN", cursor, "COUNT", kLeftoverScanCount});
    if (!page) return std::unexpected(page.error());
    if (page->items.size() != 2)
      return fail(ErrorKind::internal, "member " + source.id + ": SCAN answered what is no page");
    cursor = page->items[0].text;
    Keys moving;
    for (const Value& key : page->items[1].items) {
      if (key.text.starts_with(transfer::kReservedPrefix)) continue;
      if (snapshot_->owner_before(key.text) != self || snapshot_->owner_after(key.text) == self) continue;
      if (topology::contains(slices_, snapshot_->slice(key.text))) moving.push_back(key.text);
    }
    count.keys += moving.size();
    if (!moving.empty()) {
      if (Status done = each(moving); !done) return done;
    }
    if (count.gated || count.stopped) return {};
    if (!wait_for(looks_, page->items[1].items.size())) count.stopped = true;
  } while (cursor != "0" && !count.stopped);
  return {};
}

Status Leftovers::look(const Member& source, const Keys& keys, LeftoverCount& count) {
  const Result<backend::SyncClient*> client = members_.client(source);
  if (!client) return std::unexpected(client.error());
  std::string commands;
  for (const std::string& key : keys) protocol::resp::append_command(commands, {"PTTL", key});
  const Result<std::vector<Value>> replies = (*client)->pipeline(commands, keys.size());
  if (!replies) return std::unexpected(replies.error());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::int64_t ttl = (*replies)[i].integer;
    if ((*replies)[i].is_error()) return fail(ErrorKind::retryable, (*replies)[i].text);
    if (ttl > 0) count.longest_ttl_ms = std::max(count.longest_ttl_ms, static_cast<std::uint64_t>(ttl));
    if (ttl != -1) continue;
    ++count.without_ttl;
    if (count.examples.size() < LeftoverCount::kExamples)
      count.examples.push_back(base::printable(keys[i], kExampleBytes));
  }
  return {};
}

Status Leftovers::unlink(const Member& source, const Keys& keys, LeftoverCount& count) {
  const topology::Fence& fence = snapshot_->topology().fence;
  const std::string key_count = std::to_string(keys.size() + 1);
  const std::string stamps[] = {transfer::closed_stamp(fence, source.id),
                                transfer::open_stamp(fence, source.id),
                                transfer::done_stamp(fence, source.id)};
  std::vector<std::string_view> words = {"EVAL", kDropScript, key_count, transfer::kStampKey};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), std::begin(stamps), std::end(stamps));
  std::string command;
  protocol::resp::append_command(command, words);
  const Result<Value> reply = members_.call_raw(source, command);
  if (!reply) return std::unexpected(reply.error());
  if (reply->integer < 0) {
    count.gated = true;
  } else {
    count.dropped += static_cast<std::uint64_t>(reply->integer);
  }
  return {};
}

bool Leftovers::wait_for(TokenBucket& rate, std::size_t keys) {
  while (go_on_()) {
    const base::TimePoint now = std::chrono::steady_clock::now();
    const base::Duration wait = rate.wait(now);
    if (wait <= base::Duration::zero()) {
      rate.spend(static_cast<double>(keys), now);
      return true;
    }
    std::this_thread::sleep_for(std::min(wait, kWaitMax));
  }
  return false;
}

}  // namespace ringshift::resize
