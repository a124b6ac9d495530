// `ringshift compare --articles`: the claims for people, and a ring in a Redis sorted set measured.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "backend/sync_client.h"
#include "cli/compare.h"
#include "drill/redis_fleet.h"
#include "drill/run_directory.h"
#include "hashing/xxh3.h"

namespace ringshift::cli::compare {
namespace {

using backend::SyncClient;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kKey = "ring";
constexpr std::size_t kCalls = 2000, kBatch = 100;

// Scores are doubles, whole up to 2^53: 32 bits of the hash keep every point exact.
std::uint64_t score_of(std::string_view name) { return hashing::xxh3(name) >> 32; }

struct ScoredPoint {
  std::uint64_t score = 0;
  std::string name;
};

std::vector<ScoredPoint> points_of(std::size_t members, std::uint32_t points) {
  std::vector<ScoredPoint> out;
  for (std::size_t member = 1; member <= members; ++member) {
    for (std::uint32_t i = 0; i < points; ++i) {
      std::string name = fmt::format("cache-{}#{}", member, i);
      out.push_back({score_of(name), std::move(name)});
    }
  }
  // As Redis sorts: by score, then by bytes.
  std::ranges::sort(out, [](const ScoredPoint& a, const ScoredPoint& b) {
    return std::pair{a.score, std::string_view(a.name)} < std::pair{b.score, std::string_view(b.name)};
  });
  return out;
}

const std::string& owner_of(const std::vector<ScoredPoint>& points, std::uint64_t score) {
  const auto found = std::ranges::lower_bound(points, score, {}, &ScoredPoint::score);
  return found == points.end() ? points.front().name : found->name;
}

Status store_ring(SyncClient& client, const std::vector<ScoredPoint>& points) {
  if (auto gone = client.call({"DEL", kKey}); !gone) return std::unexpected(gone.error());
  std::string commands;
  for (const ScoredPoint& point : points) {
    const std::string score = std::to_string(point.score);
    protocol::resp::append_command(commands, {"ZADD", kKey, score, point.name});
  }
  const auto replies = client.pipeline(commands, points.size());
  if (!replies) return std::unexpected(replies.error());
  return {};
}

void append_lookup(std::string& out, std::string_view key) {
  const std::string score = std::to_string(score_of(key));
  protocol::resp::append_command(out, {"ZRANGEBYSCORE", kKey, score, "+inf", "LIMIT", "0", "1"});
}

// Past the last point the answer is empty, and the first point owns: a second question, rarely.
Status check_answer(const protocol::resp::Value& answer, const std::vector<ScoredPoint>& points,
                    std::string_view key) {
  const std::string& ours = owner_of(points, score_of(key));
  const std::string& theirs = answer.items.empty() ? points.front().name : answer.items[0].text;
  if (theirs == ours && !answer.is_error()) return {};
  return fail(ErrorKind::internal, fmt::format("the ring in Redis gives {} and not {} for the key '{}'",
                                               answer.is_error() ? answer.text : theirs, ours, key));
}

Result<SortedSetCost> measure(SyncClient& client, std::size_t members, std::uint32_t points,
                              const KeySet& keys) {
  const auto ring = points_of(members, points);
  if (Status stored = store_ring(client, ring); !stored) return std::unexpected(stored.error());
  SortedSetCost cost;
  cost.points = points;
  const auto micros = [](Clock::time_point begin, std::size_t calls) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() /
           static_cast<double>(calls);
  };
  const std::size_t count = std::min(kCalls, keys.size());
  std::string command;
  auto begin = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    command.clear();
    append_lookup(command, keys[i]);
    const auto reply = client.pipeline(command, 1);
    if (!reply) return std::unexpected(reply.error());
    if (Status right = check_answer(reply->front(), ring, keys[i]); !right)
      return std::unexpected(right.error());
  }
  cost.call_us = micros(begin, count);
  begin = Clock::now();
  for (std::size_t i = 0; i < count; i += kBatch) {
    command.clear();
    const std::size_t batch = std::min(kBatch, count - i);
    for (std::size_t j = 0; j < batch; ++j) append_lookup(command, keys[i + j]);
    if (const auto replies = client.pipeline(command, batch); !replies)
      return std::unexpected(replies.error());
  }
  cost.pipelined_us = micros(begin, count);
  const auto usage = client.call({"MEMORY", "USAGE", kKey, "SAMPLES", "0"});
  if (!usage) return std::unexpected(usage.error());
  cost.bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, usage->integer));
  return cost;
}

}  // namespace

Result<std::vector<SortedSetCost>> sorted_set_costs(std::size_t members, const KeySet& keys) {
  auto directory = drill::RunDirectory::create_temporary();
  if (!directory) return std::unexpected(directory.error());
  drill::FleetOptions options;
  options.directory = directory->path();
  drill::RedisFleet fleet(options);
  const auto node = fleet.add();
  if (!node) return std::unexpected(node.error());
  auto client = SyncClient::connect(node->address);
  if (!client) return std::unexpected(client.error());
  std::vector<SortedSetCost> out;
  for (const std::uint32_t points : {160U, 1000U}) {
    auto cost = measure(**client, members, points, keys);
    if (!cost) return std::unexpected(cost.error());
    out.push_back(*cost);
  }
  return out;
}

std::string table(const ArticleReport& report) {
  std::string out = "What the articles say, and what their own experiments give:\n\n";
  for (const auto& claim : report.figures.claims) {
    out += fmt::format("{:<13} {}: {}\n", claim.article,
                       !claim.holds   ? "recorded"
                       : *claim.holds ? "holds"
                                      : "WRONG",
                       claim.claim);
    out += wrapped(std::string(14, ' ') + claim.truth, 14) + "\n";
  }
  out += fmt::format(
      "\nLook-ups on a ring of {} members, xxh3 of the key included (ns), and the ring's memory:\n\n",
      report.members);
  out += fmt::format("{:<24} {:>10} {:>10} {:>10} {:>10}   {:>9} {:>9} {:>9}\n", "points a member", "linear",
                     "binary", "std::map", "ringshift", "array", "std::map", "ringshift");
  for (const auto& each : report.lookups) {
    out +=
        fmt::format("{:<24} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}   {:>9} {:>9} {:>9}\n",
                    each.points == 1 ? "1 (no virtual nodes)" : std::to_string(each.points), each.linear_ns,
                    each.binary_ns, each.map_ns, each.ours_ns, short_bytes(each.array_bytes),
                    short_bytes(each.map_bytes), short_bytes(each.ours_bytes));
  }
  out += "\nHashes of one key (ns):";
  for (const auto& hash : report.hashes) out += fmt::format("  {} {:.1f}", hash.name, hash.ns);
  out += "\n\nThe ring kept in a Redis sorted set (ZRANGEBYSCORE ... LIMIT 0 1, over loopback):\n";
  if (!report.skipped.empty()) return out + "  skipped: " + report.skipped + "\n";
  for (const SortedSetCost& set : report.sorted_sets) {
    out += fmt::format("  {} points a member: {} a key one by one, {} in pipelines of {}; {} in Redis\n",
                       set.points, short_time(set.call_us), short_time(set.pipelined_us), kBatch,
                       short_bytes(set.bytes));
  }
  return out;
}

}  // namespace ringshift::cli::compare
