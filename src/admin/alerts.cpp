#include "admin/alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ringshift::admin {
namespace {

using Severity = Alert::Severity;

constexpr std::int64_t kRouterMayTakeMs = 3000;  // To apply a topology.
constexpr std::int64_t kOutageMayTakeMs = 3000, kElectionMayTakeMs = 3000;
constexpr std::int64_t kSourceMayTakeMs = 15'000;  // To answer.
constexpr double kMemoryFull = 0.9, kClientsFull = 0.9;
constexpr double kErrorsShare = 0.01, kErrorsPerSecond = 1;
constexpr double kHotShare = 0.2, kHotPerSecond = 100;

class Judge {
 public:
  explicit Judge(const AlertFacts& facts) : facts_(facts) {}

  std::vector<Alert> run() {
    registry();
    routers();
    members();
    traffic();
    resize();
    membership();
    return std::move(alerts_);
  }

 private:
  void add(Severity severity, const char* code, std::string subject, std::string text,
           std::vector<std::pair<std::string, double>> values = {}) {
    alerts_.push_back(
        {severity, code, std::move(subject), std::move(text), std::move(values), facts_.now_ms});
  }

  void registry() {
    if (!facts_.connected && facts_.now_ms - facts_.connection_since_ms >= kOutageMayTakeMs) {
      add(Severity::critical, "registry_unreachable", "",
          fmt::format(
              "The registry does not answer: {}. Traffic goes on; nothing can be changed, and what is shown "
              "here is as it was then.",
              facts_.connection_error));
      return;
    }
    if (!facts_.connected) return;
    if (!facts_.has_topology)
      add(Severity::critical, "no_topology", "", "The cluster has no topology yet: no router can serve it.");
    if (!facts_.has_controller && facts_.now_ms - facts_.controller_lost_ms >= kElectionMayTakeMs) {
      add(facts_.resize.state == "running" || facts_.resize.state == "rolling_back" ? Severity::critical
                                                                                    : Severity::warning,
          "no_controller", "", "No controller holds the lock: no resize starts or goes on.");
    }
    if (facts_.has_topology && facts_.routers.empty())
      add(Severity::critical, "no_router", "", "No router is connected to the registry.");
  }

  void routers() {
    for (const RouterFacts& router : facts_.routers) {
      if (router.other_digest) {
        add(Severity::critical, "router_other_digest", router.id,
            fmt::format("Router {} obeys another topology under the same version {}: stop it.", router.id,
                        facts_.version));
      } else if (!router.agrees && facts_.now_ms - facts_.topology_since_ms >= kRouterMayTakeMs) {
        add(Severity::warning, "router_behind", router.id,
            fmt::format("Router {} does not obey version {} yet.", router.id, facts_.version));
      }
      const coord::RouterRecord& record = *router.record;
      if (record.max_clients != 0 &&
          static_cast<double>(record.clients) >= kClientsFull * static_cast<double>(record.max_clients)) {
        add(Severity::warning, "clients_near_limit", router.id,
            fmt::format("Router {} has {} of {} clients.", router.id, record.clients, record.max_clients),
            {{"clients", static_cast<double>(record.clients)},
             {"limit", static_cast<double>(record.max_clients)}});
      }
      for (const auto& [member, why] : record.unreachable) {
        add(Severity::critical, "router_cannot_reach_member", member,
            fmt::format("Router {} has no connection to member {}: {}.", router.id, member, why));
        if (alerts_.size() > kAlertsMax) return;
      }
    }
  }

  void members() {
    for (const auto& [id, info] : facts_.members) {
      if (!info->error.empty()) {
        add(Severity::critical, "member_unreachable", id,
            fmt::format("Member {} does not answer: {}.", id, info->error));
        continue;
      }
      const auto used = static_cast<double>(info->memory_used.value_or(0));
      const auto most = static_cast<double>(info->memory_max.value_or(0));
      if (most > 0 && used >= kMemoryFull * most) {
        add(Severity::warning, "member_memory", id,
            fmt::format("Member {} uses {:.0f} % of its memory limit.", id, used / most * 100),
            {{"percent", used / most * 100}});
      }
      if (info->evicted_per_second.value_or(0) > 0) {
        add(Severity::warning, "member_evicting", id,
            fmt::format("Member {} evicts {:.3g} keys a second: it has no room left.", id,
                        *info->evicted_per_second),
            {{"per_second", *info->evicted_per_second}});
      }
    }
  }

  void traffic() {
    const double errors = facts_.errors_per_second.value_or(0), all = facts_.requests_per_second.value_or(0);
    if (errors >= kErrorsPerSecond && errors >= kErrorsShare * all) {
      add(Severity::warning, "errors", "",
          fmt::format("{:.3g} errors a second are {:.1f} % of all answers.", errors,
                      errors / std::max(errors, all) * 100),
          {{"per_second", errors}, {"percent", errors / std::max(errors, all) * 100}});
    }
    for (const HotKeyFacts& hot : facts_.hot_keys) {
      if (hot.share < kHotShare || hot.per_second < kHotPerSecond) continue;
      add(Severity::info, "hot_key", hot.key,
          fmt::format("Key {} alone gets {:.0f} % of all requests, and all of them go to one member.",
                      hot.key, hot.share * 100),
          {{"percent", hot.share * 100}});
    }
  }

  void resize() {
    const resize::ResizeStatus& status = facts_.resize;
    if (status.state == "failed") {
      add(Severity::critical, "resize_failed", status.id,
          fmt::format("Resize {} failed: {}.", status.id, status.last_error));
    }
    if (status.state != "running" && status.state != "preparing" && status.state != "rolling_back") return;
    const std::string waits = !status.waits_for.empty() ? status.waits_for : status.last_error;
    if (!waits.empty())
      add(Severity::warning, "resize_waits", status.id,
          fmt::format("Resize {} waits: {}.", status.id, waits));
    if (!status.held_back.empty()) {
      add(Severity::info, "resize_held_back", status.id,
          fmt::format("Resize {} moves slower than it may: {}.", status.id,
                      fmt::join(status.held_back, "; ")));
    }
    if (status.fences > 0) {
      add(Severity::warning, "resize_fenced", status.id,
          fmt::format("Resize {} cut {} connections of routers that did not acknowledge in time.", status.id,
                      status.fences),
          {{"connections", static_cast<double>(status.fences)}});
    }
    if (status.big_keys_waiting > 0) {
      add(Severity::warning, "resize_big_keys", status.id,
          fmt::format("Resize {} has {} big keys that wait for your word.", status.id,
                      status.big_keys_waiting),
          {{"keys", static_cast<double>(status.big_keys_waiting)}});
    }
  }

  // What the leading controller told; without one it is old.
  void membership() {
    if (facts_.membership == nullptr || !facts_.has_controller) return;
    const membership::Report& told = *facts_.membership;
    const bool old_enough = facts_.now_ms - told.trouble_since_ms >= kSourceMayTakeMs;
    if (!told.trouble.empty() && (told.held || old_enough)) {
      add(Severity::warning, told.held ? "discovery_held" : "discovery_trouble", "",
          fmt::format("The source of instances ({}) {}: {}. Nobody joins or leaves by policy meanwhile.",
                      told.source, told.held ? "is not believed" : "is in trouble", told.trouble));
    }
    // A resize that takes a member out is why its instance drains.
    const std::string& state = facts_.resize.state;
    const bool resizes =
        state == "preparing" || state == "running" || state == "paused" || state == "rolling_back";
    for (const auto& gone : told.gone) {
      if (resizes) break;
      add(Severity::warning, "member_gone", gone.id,
          fmt::format(
              "The instance of member {} is gone. {}.", gone.id,
              gone.waits_for.empty() ? "The member leaves now" : "The member stays: " + gone.waits_for));
    }
    for (const auto& one : told.elsewhere) {
      add(Severity::warning, "member_elsewhere", one.id,
          fmt::format("The instance of member {} is at {}; routers ask {}.", one.id, one.instance_address,
                      one.member_address));
    }
    if (!told.last_error.empty()) {
      add(Severity::warning, "policy_refused", told.last_change.member,
          fmt::format("{}. It is tried again after the cool-down.", told.last_error));
    }
  }

  const AlertFacts& facts_;
  std::vector<Alert> alerts_;
};

}  // namespace

std::vector<Alert> AlertBook::judge(const AlertFacts& facts) {
  std::vector<Alert> alerts = Judge(facts).run();
  std::ranges::stable_sort(alerts, {}, &Alert::severity);
  std::set<std::pair<std::string, std::string>> there;
  // Two routers that cannot reach one member are one matter.
  std::erase_if(alerts,
                [&](const Alert& alert) { return !there.insert({alert.code, alert.subject}).second; });
  if (alerts.size() > kAlertsMax) alerts.resize(kAlertsMax);
  for (Alert& alert : alerts)
    alert.since_ms = since_.try_emplace({alert.code, alert.subject}, facts.now_ms).first->second;
  std::erase_if(since_, [&](const auto& entry) { return !there.contains(entry.first); });
  return alerts;
}

const char* to_string(Alert::Severity severity) noexcept {
  switch (severity) {
    case Severity::critical:
      return "critical";
    case Severity::warning:
      return "warning";
    case Severity::info:
      return "info";
  }
  return "?";
}

}  // namespace ringshift::admin
