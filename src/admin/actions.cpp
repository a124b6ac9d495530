#include "admin/actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "admin/answers.h"
#include "admin/audit.h"
#include "admin/json_text.h"
#include "base/encoding.h"
#include "base/log.h"
#include "coord/topology_changes.h"
#include "membership/admit.h"
#include "resize/ask.h"

namespace ringshift::admin {
namespace {

using resize::Request;

std::string describe_spec(const topology::Spec& spec) {
  return fmt::format("{} members, {}", spec.members.size(), spec.placement.algorithm);
}

// What is new in `to`, in words.
std::string describe_change(const topology::Spec& from, const topology::Spec& to) {
  topology::Topology before, after;
  before.spec = from;
  after.spec = to;
  const std::vector<std::string> changes = coord::topology_changes(before, after);
  return fmt::format("{}{}{}", describe_spec(to), changes.empty() ? "" : ": ", fmt::join(changes, "; "));
}

std::string rates_text(std::uint64_t keys, std::uint64_t bytes) {
  std::string out;
  if (keys != 0) out = fmt::format("{} keys/s", keys);
  if (bytes != 0) out += fmt::format("{}{} bytes/s", out.empty() ? "" : ", ", bytes);
  return out;
}

}  // namespace

Result<coord::StoredTopology> find_topology(const State& state, const std::string& revision) {
  if (revision == "current" || (state.stored && revision == std::to_string(state.stored->revision))) {
    if (state.stored) return *state.stored;
    return fail(ErrorKind::not_found, "the cluster has no topology yet");
  }
  const auto number = base::parse_u64(revision);
  const auto past =
      number ? state.history->find(static_cast<coord::Revision>(*number)) : state.history->end();
  if (past == state.history->end()) {
    return fail(
        ErrorKind::not_found,
        fmt::format("the history has no topology of revision '{}': /api/v1/topologies lists those there are",
                    base::printable(revision, 40)));
  }
  coord::KeyValue kv;
  kv.key = fmt::format("history, revision {}", past->first);
  kv.value = *past->second.json;
  kv.mod_revision = past->first;
  return coord::parse_stored(kv);
}

Result<coord::StoredTopology> Actions::in_force() {
  Result<std::optional<coord::StoredTopology>> stored = coord::read_topology(coordinator_, keys_);
  if (!stored) return std::unexpected(stored.error());
  if (!*stored) {
    return fail(
        ErrorKind::not_found,
        "the cluster has no topology yet: apply a spec, and run a controller, which makes it from the spec");
  }
  return **std::move(stored);
}

Result<topology::Spec> Actions::target_of(const Change& change, const topology::Spec& current) const {
  if (change.spec) {
    if (change.spec->cluster == current.cluster) return *change.spec;
    return fail(ErrorKind::invalid, fmt::format("change.spec: is for cluster '{}', and this one is '{}'",
                                                base::printable(change.spec->cluster, 64), current.cluster));
  }
  if (change.edit) return plan::edit(current, *change.edit);
  const Result<coord::StoredTopology> past = find_topology(*model_.state(), *change.topology);
  if (!past) return std::unexpected(past.error());
  topology::Spec target = past->topology.spec;
  // An id that was retired since stays retired.
  for (const std::string& id : current.retired) {
    if (std::ranges::find(target.members, id, &topology::Member::id) != target.members.end()) {
      return fail(ErrorKind::stale,
                  fmt::format("revision {} has member '{}', which was retired since: its id may never return",
                              *change.topology, id));
    }
    if (std::ranges::find(target.retired, id) == target.retired.end()) target.retired.push_back(id);
  }
  return target;
}

Answer Actions::plan(const std::string& text) {
  const Result<StartBody> body = parse_start_body(text, StartKind::plan);
  if (!body) return error_answer(body.error());
  if (const auto request = resize::start_request(body->words); !request) return error_answer(request.error());
  const Result<coord::StoredTopology> stored = in_force();
  if (!stored) return error_answer(stored.error());
  const topology::Spec& current = stored->topology.spec;
  const Result<topology::Spec> written = target_of(body->change, current);
  if (!written) return error_answer(written.error());
  if (const Status follows = topology::check_succession(current, *written, body->words.force); !follows)
    return error_answer(409, "refused", follows.error().message);
  resize::GivenFigures given = body->figures;
  given.steps = body->words.steps;
  if (body->words.keys_per_second != 0) given.rate = body->words.keys_per_second;
  if (body->words.bytes_per_second != 0) given.rate_bytes = body->words.bytes_per_second;
  // What the routers see now counts before what members counted since they began.
  const std::shared_ptr<const State> state = model_.state();
  if (body->live && !state->points->empty()) {
    const SeriesPoint& now = state->points->back();
    if (!given.qps && now.hit_rate) given.qps = now.qps;
    if (!given.hit_rate) given.hit_rate = now.hit_rate;
  }
  Result<resize::PlanPreview> preview = resize::preview_plan(current, *written, given, body->live, access_);
  if (!preview) return error_answer(preview.error());
  for (resize::PlanFigure& figure : preview->basis.figures) {
    const bool of_routers = (figure.name == "qps" && !body->figures.qps) ||
                            (figure.name == "hit_rate" && !body->figures.hit_rate);
    if (of_routers && figure.source == "given") figure.source = "measured";
  }
  std::string json = resize::to_json(preview->report());
  json.pop_back();  // The object goes on.
  json +=
      fmt::format(",\"version\":{},\"spec\":{},\"not_asked\":{}}}",
                  string_json(topology::to_string(stored->version)), topology::to_json(preview->basis.in.to),
                  string_json(preview->live                             ? ""
                              : body->live && !preview->why_not.empty() ? preview->why_not
                                                                        : "not asked"));
  return json_answer(std::move(json));
}

Answer Actions::start(const Order& order) {
  Result<StartBody> body = parse_start_body(order.body, StartKind::start);
  if (!body) return error_answer(body.error());
  return start_to(order, *std::move(body));
}

Answer Actions::add_members(const Order& order) {
  Result<StartBody> body = parse_start_body(order.body, StartKind::add);
  if (!body) return error_answer(body.error());
  body->change.edit.emplace();
  body->change.edit->add = std::move(body->members);
  std::vector<std::string> ids;
  for (const topology::Member& member : body->change.edit->add) ids.push_back(member.id);
  return start_marked(order, *std::move(body), ids, false);
}

Answer Actions::admit(const Order& order) {
  Result<StartBody> body = parse_start_body(order.body, StartKind::member);
  if (!body) return error_answer(body.error());
  const auto report = membership::read_report(coordinator_, keys_, model_.cluster());
  if (!report) return error_answer(report.error());
  const Result<topology::Member> member = membership::admissible(*report, order.subject);
  if (!member && member.error().kind == ErrorKind::stale)
    return error_answer(409, "refused", member.error().message);
  if (!member) return error_answer(member.error());
  body->change.edit.emplace();
  body->change.edit->add = {*member};
  return start_marked(order, *std::move(body), {member->id}, false);
}

Answer Actions::drain_member(const Order& order) {
  Result<StartBody> body = parse_start_body(order.body, StartKind::member);
  if (!body) return error_answer(body.error());
  body->change.edit.emplace();
  body->change.edit->remove = {order.subject};
  return start_marked(order, *std::move(body), {order.subject}, true);
}

Answer Actions::remove_member(const Order& order) {
  Result<StartBody> body = parse_start_body(order.body, StartKind::member);
  if (!body) return error_answer(body.error());
  body->change.edit.emplace();
  body->change.edit->remove = {order.subject};
  body->change.edit->retire = true;
  return start_to(order, *std::move(body));
}

Answer Actions::weigh_member(const Order& order) {
  Result<StartBody> body = parse_start_body(order.body, StartKind::weight);
  if (!body) return error_answer(body.error());
  body->change.edit.emplace();
  body->change.edit->weights = {{order.subject, body->weight}};
  return start_to(order, *std::move(body));
}

Answer Actions::restore(const Order& order) {
  Result<StartBody> body = parse_start_body(order.body, StartKind::member);
  if (!body) return error_answer(body.error());
  body->change.topology = order.subject;
  return start_to(order, *std::move(body));
}

Answer Actions::start_marked(const Order& order, StartBody body, const std::vector<std::string>& ids,
                             bool drained) {
  membership::DrainMarks marks;
  if (const Status done = marks.set(coordinator_, keys_, ids, drained, order.who); !done)
    return error_answer(done.error());
  Answer answer = start_to(order, std::move(body));
  if (answer.status != 200) marks.undo(coordinator_);
  return answer;
}

Answer Actions::start_to(const Order& order, StartBody body) {
  Result<Request> request = resize::start_request(body.words);
  if (!request) return error_answer(request.error());
  const Result<coord::StoredTopology> stored = in_force();
  if (!stored) return error_answer(stored.error());
  const std::string version = topology::to_string(stored->version);
  if (!body.if_version.empty() && body.if_version != version) {
    return error_answer(
        409, "stale",
        fmt::format("the topology in force is version {} now, and this was planned against {}", version,
                    base::printable(body.if_version, 40)),
        "look at the plan again");
  }
  if (stored->topology.resize && !body.words.replace) {
    return error_answer(
        409, "stale", fmt::format("resize {} is under way", stored->topology.resize->id),
        "wait for it, roll it back, or say options.replace, which rolls it back and then starts this");
  }
  const topology::Spec& current = stored->topology.spec;
  Result<topology::Spec> target = target_of(body.change, current);
  if (!target) return error_answer(target.error());
  request->spec = *target;
  return ask(order, *std::move(request), fmt::format("version {}: {}", version, describe_spec(current)),
             describe_change(current, *target));
}

Answer Actions::steer(const Order& order, Request::Action action) {
  if (const Status body = parse_empty_body(order.body); !body) return error_answer(body.error());
  Request request;
  request.action = action;
  return ask(order, std::move(request), model_.state()->status.state, "");
}

Answer Actions::set_rate(const Order& order) {
  Result<Request> request = parse_rate_body(order.body);
  if (!request) return error_answer(request.error());
  const auto state = model_.state();
  const std::string to = rates_text(request->keys_per_second, request->bytes_per_second);
  return ask(order, *std::move(request), rates_text(state->status.rate, state->status.byte_rate), to);
}

Answer Actions::big_keys(const Order& order) {
  Result<Request> request = parse_big_keys_body(order.body);
  if (!request) return error_answer(request.error());
  const std::string to = request->big_keys;
  return ask(order, *std::move(request), "", to);
}

Answer Actions::declare_lost(const Order& order) {
  Result<Request> request = parse_lost_body(order.body);
  if (!request) return error_answer(request.error());
  const std::string to = fmt::format("lost: {}", fmt::join(request->lost, ", "));
  return ask(order, *std::move(request), "", to);
}

Answer Actions::ask(const Order& order, Request request, const std::string& from, const std::string& to) {
  request.by = fmt::format("{} (admin API)", order.who);
  const auto patience = resize::answer_patience(coordinator_, keys_, request, kControllerPatience);
  const Status answer = resize::ask_controller(coordinator_, keys_, std::move(request), patience, &stopping_);
  note(order, from, to, answer ? "accepted" : answer.error().message);
  if (!answer && answer.error().kind == ErrorKind::invalid)
    return error_answer(409, "refused", answer.error().message);
  if (!answer) return error_answer(answer.error());
  const Result<resize::ResizeStatus> status = resize::read_status(coordinator_, keys_);
  if (!status) return error_answer(status.error());
  return json_answer(resize::to_json(*status));
}

void Actions::note(const Order& order, const std::string& from, const std::string& to,
                   const std::string& result) {
  base::log(base::LogLevel::info, "admin: {}: {}{}{} from '{}' to '{}': {}", order.who, order.action,
            order.subject.empty() ? "" : " ", base::printable(order.subject, 100), from, to, result);
  AuditEntry entry;
  entry.at_ms = resize::unix_now();
  entry.who = order.who;
  entry.action = order.action;
  entry.subject = order.subject;
  entry.from = from;
  entry.to = to;
  entry.result = result;
  std::vector<std::string> known;
  for (const auto& [id, ignored] : *model_.state()->audit) known.push_back(id);
  if (const Status written = write_audit(coordinator_, keys_, std::move(entry), known); !written)
    base::log(base::LogLevel::warning, "admin: the audit entry was not written: {}", written.error().message);
}

}  // namespace ringshift::admin
