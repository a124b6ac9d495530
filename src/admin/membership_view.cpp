#include "admin/membership_view.h"

#include <vector>

#include "admin/json_text.h"
#include "discovery/instances.h"
#include "topology/discovery.h"

namespace ringshift::admin {
namespace {

using membership::Report;

std::string moment(std::int64_t unix_ms) { return unix_ms != 0 ? whole(unix_ms) : std::string(kNull); }

std::string candidate_object(const membership::Candidate& one) {
  return Object()
      .add("id", string_json(one.member.id))
      .add("address", string_json(one.member.address))
      .add("state", string_json(discovery::to_string(one.state)))
      .add("weight", share(one.member.weight))
      .add("zone", string_json(one.member.zone))
      .add("host", string_json(one.member.host))
      .add("admissible", truth(one.why_not.empty() && one.state != discovery::InstanceState::unhealthy))
      .add("why_not", string_json(one.why_not))
      .add("waits_for", string_json(one.waits_for))
      .add("code", string_json(one.code))
      .text();
}

std::string gone_object(const Report::GoneMember& one) {
  return Object()
      .add("id", string_json(one.id))
      .add("since_ms", moment(one.since_ms))
      .add("leaves_at_ms", moment(one.leaves_at_ms))
      .add("ejected", truth(one.ejected))
      .add("waits_for", string_json(one.waits_for))
      .add("code", string_json(one.code))
      .text();
}

std::string elsewhere_object(const membership::Elsewhere& one) {
  return Object()
      .add("id", string_json(one.id))
      .add("member_address", string_json(one.member_address))
      .add("instance_address", string_json(one.instance_address))
      .text();
}

std::string change_object(const Report& report) {
  const Report::Change& change = report.last_change;
  if (change.member.empty()) return std::string(kNull);
  return Object()
      .add("member", string_json(change.member))
      .add("joins", truth(change.joins))
      .add("at_ms", whole(change.at_ms))
      .add("error", string_json(report.last_error))
      .text();
}

std::string rules_object(const std::optional<topology::DiscoverySpec>& rules) {
  if (!rules) return std::string(kNull);
  return Object()
      .add("source", string_json(rules->source.kind))
      .add("admit", string_json(rules->admit_auto ? "auto" : "manual"))
      .add("cooldown_seconds", share(static_cast<double>(rules->cooldown.count()) / 1000))
      .add("remove_after_seconds", rules->remove.after.count() == 0
                                       ? std::string(kNull)
                                       : share(static_cast<double>(rules->remove.after.count()) / 1000))
      .add("at_most", whole(std::uint64_t{rules->remove.at_most}))
      .add("floor", whole(std::uint64_t{rules->remove.floor}))
      .text();
}

const char* source_state(const Report& report) {
  if (report.held) return "held";
  return report.trouble.empty() ? "ok" : "trouble";
}

template <class T, class Make>
std::string objects(const std::vector<T>& all, Make make) {
  std::vector<std::string> out;
  for (const T& one : all) out.push_back(make(one));
  return list(out);
}

}  // namespace

std::string membership_text(std::string_view discovery, const std::optional<Report>& report) {
  std::optional<topology::DiscoverySpec> rules;
  if (!discovery.empty()) {
    if (auto parsed = topology::parse_discovery(discovery, "discovery")) rules = *std::move(parsed);
  }
  const Report told = report.value_or(Report{});
  return Object()
      .add("active", truth(!discovery.empty()))
      .add("reported", truth(report.has_value()))
      .add("rules", rules_object(rules))
      .add("source", Object()
                         .add("name", string_json(told.source))
                         .add("state", string_json(report ? source_state(told) : "unknown"))
                         .add("error", string_json(told.trouble))
                         .add("since_ms", moment(told.trouble_since_ms))
                         .text())
      .add("cooldown_until_ms", moment(told.cooldown_until_ms))
      .add("last_change", change_object(told))
      .add("candidates", objects(told.candidates, candidate_object))
      .add("candidates_more", whole(told.candidates_more))
      .add("gone", objects(told.gone, gone_object))
      .add("elsewhere", objects(told.elsewhere, elsewhere_object))
      .text();
}

}  // namespace ringshift::admin
