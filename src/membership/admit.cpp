#include "membership/admit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/encoding.h"
#include "coord/membership_keys.h"

namespace ringshift::membership {
namespace {

constexpr std::size_t kIdShown = 64;
constexpr std::chrono::seconds kConfirmPatience{10};

}  // namespace

Result<topology::Member> admissible(const Report& report, std::string_view id) {
  const auto found =
      std::ranges::find_if(report.candidates, [&](const Candidate& one) { return one.member.id == id; });
  if (found == report.candidates.end()) {
    return fail(ErrorKind::not_found, fmt::format("{} is no candidate: see 'ringshift member candidates'",
                                                  base::printable(id, kIdShown)));
  }
  if (!found->why_not.empty()) {
    return fail(ErrorKind::stale, fmt::format("{}: {}; 'ringshift member add {} {}' adds it nevertheless", id,
                                              found->why_not, id, found->member.address));
  }
  if (found->state == discovery::InstanceState::unhealthy)
    return fail(ErrorKind::stale, fmt::format("{} is unhealthy: see what its agent says", id));
  return found->member;
}

Result<Report> read_report(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                           std::string_view cluster) {
  const auto discovery = coordinator.get(coord::discovery_key(keys));
  if (!discovery) return std::unexpected(discovery.error());
  if (!*discovery) {
    return fail(ErrorKind::not_found,
                fmt::format("cluster '{}' has no discovery: its members are what operators make them. Give "
                            "it one by a spec's block 'discovery' ('ringshift member policy FILE')",
                            cluster));
  }
  const auto report = coordinator.get(coord::membership_key(keys));
  if (!report) return std::unexpected(report.error());
  if (!*report) {
    return fail(
        ErrorKind::not_found,
        fmt::format("no controller of cluster '{}' has looked for instances yet: is one running?", cluster));
  }
  return parse_report((*report)->value);
}

std::string confirmed_of(std::string_view json) {
  const auto word = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!word.is_object()) return "";
  const auto what = word.find("what");
  return what != word.end() && what->is_string() ? what->get<std::string>() : "";
}

Status confirm_held(coord::Coordinator& coordinator, const coord::ClusterKeys& keys, const Report& report,
                    std::string_view by) {
  if (!report.held)
    return fail(ErrorKind::stale, "the list of the source is not held: there is nothing to confirm");
  const std::string key = coord::confirm_key(keys);
  const std::string word = nlohmann::json({{"by", by}, {"what", report.trouble}})
                               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  // Leased: it must not be there for the next list when we are interrupted.
  const auto lease = coordinator.grant(kConfirmPatience);
  if (!lease) return std::unexpected(lease.error());
  if (const auto put = coordinator.put(key, word, *lease); !put) return std::unexpected(put.error());
  const auto until = std::chrono::steady_clock::now() + kConfirmPatience;
  while (std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const auto left = coordinator.get(key);
    if (!left) return std::unexpected(left.error());
    if (*left) continue;
    const auto kv = coordinator.get(coord::membership_key(keys));
    if (!kv) return std::unexpected(kv.error());
    const auto now = *kv ? parse_report((*kv)->value) : Result<Report>(Report{});
    if (now && now->held)
      return fail(ErrorKind::stale, fmt::format("the source shows another list by now: {}", now->trouble));
    return {};
  }
  static_cast<void>(coordinator.revoke(*lease));
  return fail(ErrorKind::retryable, "no controller took it up: is one running?");
}

Status DrainMarks::set(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                       const std::vector<std::string>& ids, bool drained, std::string_view by) {
  using Kind = coord::Op::Kind;
  std::vector<coord::Op> ops, before;
  for (const std::string& id : ids) {
    const std::string key = coord::drained_key(keys, id);
    const auto there = coordinator.get(key);
    if (!there) return std::unexpected(there.error());
    if (there->has_value() == drained) continue;
    const nlohmann::json mark = {{"by", by}};
    ops.push_back({drained ? Kind::put : Kind::remove, key, drained ? mark.dump() : "", 0});
    before.push_back({drained ? Kind::remove : Kind::put, key, drained ? "" : (*there)->value, 0});
  }
  if (ops.empty()) return {};
  const auto done = coordinator.transact({}, ops);
  if (!done) return std::unexpected(done.error());
  before_ = std::move(before);
  return {};
}

void DrainMarks::undo(coord::Coordinator& coordinator) {
  if (!before_.empty()) static_cast<void>(coordinator.transact({}, before_));
  before_.clear();
}

}  // namespace ringshift::membership
