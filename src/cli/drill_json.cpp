#include <nlohmann/json.hpp>

#include "cli/drill_report.h"

namespace ringshift::cli::drilling {
namespace {

using Json = nlohmann::ordered_json;

const char* scenario_name(Scenario scenario) {
  switch (scenario) {
    case Scenario::grow:
      return "grow";
    case Scenario::remove:
      return "remove";
    case Scenario::kill:
      return "kill";
    case Scenario::reweight:
      break;
  }
  return "reweight";
}

const char* judged_name(drill::Judged judged) {
  switch (judged) {
    case drill::Judged::kept:
      return "kept";
    case drill::Judged::broken:
      return "broken";
    case drill::Judged::unjudged:
      break;
  }
  return "not judged";
}

// Columns instead of rows: a tenth of the size, and what a chart wants.
Json series_json(const Outcome& outcome) {
  Json hit_rate = Json::array(), origin = Json::array(), origin_p99 = Json::array(), p99 = Json::array(),
       errors = Json::array(), timeouts = Json::array(), lost = Json::array(), stale = Json::array(),
       late = Json::array(), requests = Json::array();
  for (const drill::Second& s : outcome.seconds) {
    hit_rate.push_back(s.hit_rate());
    origin.push_back(s.origin_asked);
    origin_p99.push_back(s.origin_p99_ms);
    p99.push_back(s.p99_ms);
    errors.push_back(s.errors);
    timeouts.push_back(s.origin_timeouts);
    lost.push_back(s.lost);
    stale.push_back(s.stale);
    late.push_back(s.late);
    requests.push_back(s.requests);
  }
  return {{"first_second", -static_cast<long>(outcome.change)},
          {"requests", requests},
          {"hit_rate", hit_rate},
          {"origin_qps", origin},
          {"origin_p99_ms", origin_p99},
          {"origin_timeouts", timeouts},
          {"p99_ms", p99},
          {"errors", errors},
          {"lost_writes", lost},
          {"stale_reads", stale},
          {"late", late}};
}

Json outcome_json(const Report& report, const Outcome& o) {
  const Figures f = report.figures(o);
  Json j;
  j["name"] = o.name;
  j["hit_rate_steady"] = f.steady.hit_rate;
  j["hit_rate_min_1s"] = f.hit_rate_min;
  j["origin_qps_steady"] = f.steady.origin_qps;
  j["origin_qps_mean_during"] = f.during.origin_qps;
  j["origin_qps_max_1s"] = f.origin_max;
  j["recovery_seconds"] = f.recovery.seconds;
  j["keys_moved"] = o.keys_moved;
  j["lost_writes"] = o.verdicts.lost_writes;
  j["stale_reads"] = o.verdicts.stale_reads;
  j["p99_ms_before"] = f.p99_before;
  j["p99_ms_during"] = f.p99_during;
  j["p99_ms_after"] = f.p99_after;
  // What is needed to judge the figures above.
  j["complete"] = o.complete();
  j["error"] = o.complete() ? Json(nullptr) : Json(o.error);
  j["recovered"] = f.recovery.recovered;
  j["change_seconds"] = o.change_seconds;
  j["hit_rate_standard_error_1s"] = drill::standard_error(f.steady.hit_rate, f.steady.gets_per_second);
  j["hit_rate_during"] = f.during.hit_rate;
  j["hit_rate_after"] = f.after.hit_rate;
  j["hit_rate_min_1s_after"] = f.after.hit_rate_min;
  j["origin_qps_max_1s_after"] = f.after.origin_max;
  j["origin_p99_ms_before"] = f.origin_p99_before;
  j["origin_p99_ms_during"] = f.origin_p99_during;
  j["origin_p99_ms_after"] = f.origin_p99_after;
  j["origin_timeouts"] = f.rest.origin_timeouts;
  j["errors_before"] = f.steady.errors;
  j["errors"] = f.rest.errors;
  j["requests_shed"] = f.rest.shed;
  j["cache_errors"] = f.rest.cache_errors;
  j["requests"] = f.rest.requests;
  j["keys_live"] = o.keys_live;
  j["keys_changed_owner"] = o.keys_changed_owner;
  j["keys_copied"] = o.keys_copied;
  j["keys_misplaced"] = o.keys_misplaced;
  j["move_rate"] = o.move_rate;
  j["hold_ms_max"] = o.hold_ms_max;
  j["reads_checked"] = o.verdicts.reads_checked;
  j["writes_acknowledged"] = o.verdicts.writes_acknowledged;
  j["unknown_outcomes"] = o.verdicts.unknown_outcomes;
  j["unverified_keys"] = o.verdicts.unverified_keys;
  j["cpu_others"] = o.quiet.others;
  j["cpu_stolen"] = o.quiet.stolen;
  j["examples"] = o.verdicts.examples;
  j["series"] = series_json(o);
  return j;
}

}  // namespace

std::string json(const Report& report) {
  const Options& o = report.options;
  Json j;
  j["strategies"] = Json::array();
  for (const Outcome& outcome : report.outcomes) j["strategies"].push_back(outcome_json(report, outcome));
  j["control"] = report.control ? outcome_json(report, *report.control) : Json(nullptr);
  j["noisy"] = !report.noise.empty();
  j["noise"] = report.noise;
  j["promises"] = Json::array();
  for (const drill::Promise& promise : report.promises()) {
    j["promises"].push_back(
        {{"name", promise.name}, {"verdict", judged_name(promise.judged)}, {"text", promise.text}});
  }
  j["sound"] = report.sound();
  j["interrupted"] = report.interrupted.empty() ? Json(nullptr) : Json(report.interrupted);
  j["change"] = change_in_words(o);
  j["scenario"] = scenario_name(o.scenario);
  j["from"] = o.from;
  j["to"] = o.to;
  j["during_seconds"] = report.during_seconds();
  j["before_seconds"] = o.before_seconds;
  j["seconds"] = o.seconds;
  j["seconds_in_all"] = report.seconds;
  j["load"] = {{"requests_per_second", o.app.requests_per_second},
               {"threads", o.app.threads},
               {"keys", o.zipf.keys},
               {"zipf_exponent", o.zipf.exponent},
               {"updates_share", o.zipf.updates},
               {"value_bytes", o.zipf.body_bytes},
               {"ttl_seconds", static_cast<double>(o.app.ttl.count()) / 1000},
               {"deadline_ms", o.app.deadline.count()},
               {"seed", o.app.seed},
               {"trace", o.trace.empty() ? Json(nullptr) : Json(o.trace)}};
  j["origin"] = {{"database", report.origin},
                 {"connections", o.pool.connections},
                 {"query_ms", o.pool.query.count()},
                 {"timeout_ms", o.pool.timeout.count()},
                 {"capacity_qps", o.pool.capacity()}};
  j["account"] = account(report);
  j["load_in_words"] = load_in_words(report);
  // Keys of a trace may be any bytes.
  return j.dump(2, ' ', true, Json::error_handler_t::replace);
}

}  // namespace ringshift::cli::drilling
