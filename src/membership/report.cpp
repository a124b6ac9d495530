#include "membership/report.h"

#include <nlohmann/json.hpp>

namespace ringshift::membership {
namespace {

using discovery::InstanceState;
using nlohmann::json;

const char* state_name(InstanceState state) {
  switch (state) {
    case InstanceState::ready:
      return "ready";
    case InstanceState::unhealthy:
      return "unhealthy";
    case InstanceState::draining:
      return "draining";
  }
  return "?";
}

InstanceState state_by_name(const std::string& name) {
  if (name == "ready") return InstanceState::ready;
  return name == "draining" ? InstanceState::draining : InstanceState::unhealthy;
}

json json_of_candidate(const Candidate& candidate) {
  json out = {{"id", candidate.member.id},
              {"address", candidate.member.address},
              {"state", state_name(candidate.state)},
              {"weight", candidate.member.weight},
              {"zone", candidate.member.zone},
              {"host", candidate.member.host}};
  out["why_not"] = candidate.why_not;
  out["waits_for"] = candidate.waits_for;
  return out;
}

}  // namespace

std::string to_json(const Report& report) {
  json candidates = json::array(), gone = json::array();
  for (const Candidate& candidate : report.candidates) candidates.push_back(json_of_candidate(candidate));
  for (const auto& one : report.gone) gone.push_back({{"id", one.id}, {"waits_for", one.waits_for}});
  json out = {{"source", report.source},
              {"trouble", report.trouble},
              {"last_error", report.last_error},
              {"admit", report.admit_auto ? "auto" : "manual"},
              {"seen", report.seen}};
  out["candidates"] = std::move(candidates);
  out["candidates_more"] = report.candidates_more;
  out["gone"] = std::move(gone);
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
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
    for (const json& one : document.at("candidates")) {
      Candidate candidate;
      candidate.member.id = one.at("id").get<std::string>();
      candidate.member.address = one.at("address").get<std::string>();
      candidate.member.weight = one.at("weight").get<double>();
      candidate.member.zone = one.at("zone").get<std::string>();
      candidate.member.host = one.at("host").get<std::string>();
      candidate.state = state_by_name(one.at("state").get<std::string>());
      candidate.why_not = one.at("why_not").get<std::string>();
      candidate.waits_for = one.at("waits_for").get<std::string>();
      report.candidates.push_back(std::move(candidate));
    }
    for (const json& one : document.at("gone"))
      report.gone.push_back({one.at("id").get<std::string>(), one.at("waits_for").get<std::string>()});
  } catch (const json::exception&) {
    return broken();
  }
  return report;
}

}  // namespace ringshift::membership
