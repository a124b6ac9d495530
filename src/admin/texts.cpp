// The smaller schemas of docs/openapi.yaml, of plain values.
#include <algorithm>

#include "admin/picture.h"
#include "resize/controls.h"

namespace ringshift::admin {

std::string decision_text(std::string_view resize_id, const resize::Decision& decision) {
  return Object()
      .add("resize", string_json(resize_id))
      .add("at", string_json(resize::local_time(decision.at)))
      .add("at_ms", whole(decision.at))
      .add("event", string_json(decision.event))
      .add("text", string_json(decision.text))
      .add("by", string_json(decision.by))
      .text();
}

std::optional<std::string> log_text(const resize::LoggedResizes& logs, std::string_view id) {
  const auto log = id != "last"   ? logs.find(std::string(id))
                   : logs.empty() ? logs.end()
                                  : std::prev(logs.end());
  if (log == logs.end()) return std::nullopt;
  std::vector<std::string> entries;
  const std::size_t first =
      log->second.size() - std::min<std::size_t>(log->second.size(), resize::kDecisionsKept);
  for (std::size_t i = first; i < log->second.size(); ++i)
    entries.push_back(decision_text(log->first, log->second[i]));
  return Object().add("resize", string_json(log->first)).add("entries", list(entries)).text();
}

std::string audit_text(const AuditEntry& entry) {
  return Object()
      .add("id", string_json(entry.id))
      .add("at_ms", whole(entry.at_ms))
      .add("who", string_json(entry.who))
      .add("action", string_json(entry.action))
      .add("subject", string_json(entry.subject))
      .add("from", string_json(entry.from))
      .add("to", string_json(entry.to))
      .add("result", string_json(entry.result))
      .text();
}

std::string point_text(const SeriesPoint& point) {
  return Object()
      .add("at_ms", whole(point.at_ms))
      .add("qps", figure(point.qps))
      .add("hit_rate", share(point.hit_rate))
      .add("misses_per_second", figure(point.misses_per_second))
      .add("origin_qps", figure(point.origin_qps))
      .add("p99_ms", figure(point.p99_ms))
      .add("errors_per_second", figure(point.errors_per_second))
      .add("clients", figure(point.clients))
      .add("keys_per_second", figure(point.keys_per_second))
      .add("share_done", figure(point.share_done))
      .text();
}

std::string mark_text(const SeriesMark& mark) {
  return Object()
      .add("at_ms", whole(mark.at_ms))
      .add("resize", string_json(mark.resize))
      .add("event", string_json(mark.event))
      .add("step", whole(mark.step))
      .add("phase", string_json(mark.phase))
      .add("text", string_json(mark.text))
      .text();
}

std::string series_text(const State& state, std::int64_t since_ms) {
  using Column = std::optional<double> SeriesPoint::*;
  const std::pair<const char*, Column> columns[] = {{"qps", &SeriesPoint::qps},
                                                    {"misses_per_second", &SeriesPoint::misses_per_second},
                                                    {"origin_qps", &SeriesPoint::origin_qps},
                                                    {"p99_ms", &SeriesPoint::p99_ms},
                                                    {"errors_per_second", &SeriesPoint::errors_per_second},
                                                    {"clients", &SeriesPoint::clients},
                                                    {"keys_per_second", &SeriesPoint::keys_per_second},
                                                    {"share_done", &SeriesPoint::share_done}};
  std::vector<std::string> at, hit_rate, marks;
  const auto first =
      std::ranges::find_if(*state.points, [&](const auto& point) { return point.at_ms > since_ms; });
  for (auto it = first; it != state.points->end(); ++it) {
    at.push_back(whole(it->at_ms));
    hit_rate.push_back(share(it->hit_rate));
  }
  Object out;
  out.add("at_ms", list(at)).add("hit_rate", list(hit_rate));
  for (const auto& [name, column] : columns) {
    std::vector<std::string> values;
    values.reserve(at.size());
    for (auto it = first; it != state.points->end(); ++it) values.push_back(figure((*it).*column));
    out.add(name, list(values));
  }
  for (const SeriesMark& mark : *state.marks) {
    if (mark.at_ms > since_ms) marks.push_back(mark_text(mark));
  }
  return Object()
      .add("interval_ms", whole(std::int64_t{Series::kInterval}))
      .add("columns", out.text())
      .add("marks", list(marks))
      .text();
}

std::string members_text(const State& state) {
  std::string out = "{" + state.members_head + ",\"members\":[";
  bool first = true;
  for (const auto& [id, text] : *state.members) {
    if (!std::exchange(first, false)) out += ',';
    out += text;
  }
  return out + "]}";
}

std::string past_text(const PastTopology& past, coord::Revision current) {
  const topology::Version version{coord::kRegistryEpoch, static_cast<std::uint64_t>(past.revision)};
  return Object()
      .add("revision", whole(past.revision))
      .add("version", string_json(topology::to_string(version)))
      .add("digest", string_json(past.digest))
      .add("in_force", truth(past.revision == current))
      .add("members", whole(std::uint64_t{past.members}))
      .add("algorithm", string_json(past.algorithm))
      .add("resize", past.resize)
      .add("changes", string_list(past.changes))
      .add("seen_at_ms", past.seen_at_ms ? whole(*past.seen_at_ms) : std::string(kNull))
      .text();
}

}  // namespace ringshift::admin
