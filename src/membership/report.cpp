#include "membership/report.h"

#include <nlohmann/json.hpp>

#include "discovery/instances.h"

namespace ringshift::membership {
namespace {

using discovery::InstanceState;
using nlohmann::json;

InstanceState state_by_name(const std::string& name) {
  return discovery::parse_state(name).value_or(InstanceState::unhealthy);
}

json json_of_candidate(const Candidate& candidate) {
  json out = {{"id", candidate.member.id},
              {"address", candidate.member.address},
              {"state", discovery::to_string(candidate.state)},
              {"weight", candidate.member.weight},
              {"zone", candidate.member.zone},
              {"host", candidate.member.host}};
  out["why_not"] = candidate.why_not;
  out["waits_for"] = candidate.waits_for;
  out["code"] = candidate.code;
  return out;
}

Candidate candidate_of(const json& one) {
  Candidate candidate;
  candidate.member.id = one.at("id").get<std::string>();
  candidate.member.address = one.at("address").get<std::string>();
  candidate.member.weight = one.at("weight").get<double>();
  candidate.member.zone = one.at("zone").get<std::string>();
  candidate.member.host = one.at("host").get<std::string>();
  candidate.state = state_by_name(one.at("state").get<std::string>());
  candidate.why_not = one.at("why_not").get<std::string>();
  candidate.waits_for = one.at("waits_for").get<std::string>();
  candidate.code = one.value("code", "");
  return candidate;
}

Report::GoneMember gone_of(const json& one) {
  return {one.at("id").get<std::string>(),
          one.at("waits_for").get<std::string>(),
          one.value("code", ""),
          one.value("since_ms", std::int64_t{0}),
          one.value("leaves_at_ms", std::int64_t{0}),
          one.value("ejected", false)};
}

json json_of_gone(const Report::GoneMember& one) {
  return {{"id", one.id},
          {"waits_for", one.waits_for},
          {"code", one.code},
          {"since_ms", one.since_ms},
          {"leaves_at_ms", one.leaves_at_ms},
          {"ejected", one.ejected}};
}

json json_of_change(const Report::Change& change) {
  if (change.member.empty()) return nullptr;
  return {{"member", change.member}, {"joins", change.joins}, {"at_ms", change.at_ms}};
}

// What version 0.1.0's first reports did not have.
void read_newer_fields(const json& document, Report& report) {
  report.trouble_since_ms = document.value("trouble_since_ms", std::int64_t{0});
  report.held = document.value("held", false);
  report.cooldown_until_ms = document.value("cooldown_until_ms", std::int64_t{0});
  const json change = document.value("last_change", json());
  if (!change.is_null()) {
    report.last_change = {change.at("member").get<std::string>(), change.at("joins").get<bool>(),
                          change.at("at_ms").get<std::int64_t>()};
  }
  for (const json& one : document.value("elsewhere", json::array())) {
    report.elsewhere.push_back({one.at("id").get<std::string>(), one.at("member_address").get<std::string>(),
                                one.at("instance_address").get<std::string>()});
  }
}

}  // namespace

std::string to_json(const Report& report) {
  json candidates = json::array(), gone = json::array(), elsewhere = json::array();
  for (const Candidate& candidate : report.candidates) candidates.push_back(json_of_candidate(candidate));
  for (const auto& one : report.gone) gone.push_back(json_of_gone(one));
  for (const Elsewhere& one : report.elsewhere) {
    elsewhere.push_back(
        {{"id", one.id}, {"member_address", one.member_address}, {"instance_address", one.instance_address}});
  }
  json out = {{"source", report.source},
              {"trouble", report.trouble},
              {"trouble_since_ms", report.trouble_since_ms},
              {"held", report.held},
              {"last_error", report.last_error},
              {"admit", report.admit_auto ? "auto" : "manual"},
              {"cooldown_until_ms", report.cooldown_until_ms},
              {"seen", report.seen}};
  out["last_change"] = json_of_change(report.last_change);
  out["candidates"] = std::move(candidates);
  out["candidates_more"] = report.candidates_more;
  out["gone"] = std::move(gone);
  out["elsewhere"] = std::move(elsewhere);
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string essence(Report report) {
  report.trouble_since_ms = report.cooldown_until_ms = 0;
  for (Candidate& one : report.candidates) one.waits_for = one.code;
  for (Report::GoneMember& one : report.gone) {
    one.waits_for = one.code;
    one.since_ms = one.leaves_at_ms = 0;
  }
  return to_json(report);
}

Result<Report> parse_report(std::string_view text) {
  const auto broken = [] {
    return fail(ErrorKind::invalid, "the membership report in the registry is broken");
  };
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return broken();
  Report report;
  try {
    report.source = document.at("source").get<std::string>();
    report.trouble = document.at("trouble").get<std::string>();
    report.last_error = document.at("last_error").get<std::string>();
    report.admit_auto = document.at("admit").get<std::string>() == "auto";
    report.seen = document.at("seen").get<std::set<std::string>>();
    report.candidates_more = document.at("candidates_more").get<std::uint64_t>();
    for (const json& one : document.at("candidates")) report.candidates.push_back(candidate_of(one));
    for (const json& one : document.at("gone")) report.gone.push_back(gone_of(one));
    read_newer_fields(document, report);
  } catch (const json::exception&) {
    return broken();
  }
  return report;
}

}  // namespace ringshift::membership
