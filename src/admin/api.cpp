#include "admin/api.h"

#include <fmt/format.h>

#include <algorithm>

#include "admin/actions.h"
#include "admin/answers.h"
#include "admin/json_text.h"
#include "admin/ring_view.h"
#include "base/encoding.h"
#include "coord/topology_changes.h"
#include "ringshift/diff.h"
#include "ringshift_version.h"

extern const char ringshift_admin_openapi_begin[], ringshift_admin_openapi_end[];

namespace ringshift::admin {

// A request, taken apart.
struct ApiCall {
  const http::Request& request;
  std::map<std::string, std::string> query;
  std::string subject;  // What stands for {id} or {revision} in the path.
  std::string who;      // The token's name; "" without a good one.
};

namespace {

constexpr std::string_view kBase = "/api/v1";
constexpr const char* kMethods[] = {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"};
constexpr std::size_t kHistoryUsual = 100, kHistoryMost = 1000, kAuditUsual = 100;

std::string diff_object(const topology::Diff& diff) {
  std::vector<std::string> pairs;
  for (const topology::PairShare& pair : diff.pairs) {
    pairs.push_back(Object()
                        .add("from", string_json(pair.from))
                        .add("to", string_json(pair.to))
                        .add("share", share(pair.share))
                        .text());
  }
  return Object()
      .add("moved_share", share(diff.moved_share))
      .add("minimum_share", share(diff.minimum_share))
      .add("exact", truth(diff.exact))
      .add("pairs", list(pairs))
      .text();
}

// "spec:12: members[0].weight: must be above 0": the line, and the rest.
std::string problem_object(std::string_view message, std::string_view place) {
  std::string line(kNull);
  if (message.starts_with(place)) message.remove_prefix(place.size());
  if (message.starts_with(':')) {
    const std::size_t end = message.find(':', 1);
    const auto number = base::parse_u64(message.substr(1, end == std::string_view::npos ? end : end - 1));
    if (number) {
      line = whole(*number);
      message.remove_prefix(end == std::string_view::npos ? message.size() : end);
    }
  }
  while (message.starts_with(':') || message.starts_with(' ')) message.remove_prefix(1);
  return Object().add("message", string_json(message)).add("line", line).text();
}

// Matches "/members/{id}/drain", and takes what stands for the part in braces.
bool path_matches(std::string_view pattern, std::string_view path, std::string& subject) {
  const std::size_t brace = pattern.find('{');
  if (brace == std::string_view::npos) return pattern == path;
  const std::string_view before = pattern.substr(0, brace), after = pattern.substr(pattern.find('}') + 1);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after))
    return false;
  const std::string_view middle = path.substr(before.size(), path.size() - before.size() - after.size());
  if (middle.find('/') != std::string_view::npos) return false;
  subject = middle;
  return true;
}

}  // namespace

struct Api::Impl {
  Impl(coord::Coordinator& coordinator, ApiOptions given)
      : options(std::move(given)),
        model(coordinator, {options.keys, options.names, options.ask_members, options.access}),
        events(model),
        actions(coordinator, options.keys, model, options.access) {}

  using Function = Answer (Impl::*)(const ApiCall&);
  struct Route {
    const char* method;
    const char* path;
    Function function;  // Null: the stream.
    bool action = false;
  };
  static const std::vector<Route>& table();

  void fast(const http::Request& request, http::Exchange& exchange);
  [[nodiscard]] Answer respond(const http::Request& request);
  [[nodiscard]] Answer dispatch(const http::Request& request, http::Exchange* exchange, bool& streams);
  [[nodiscard]] std::optional<Answer> forbidden(const ApiCall& call) const;
  [[nodiscard]] Answer no_such(std::string_view path, std::string_view method) const;

  [[nodiscard]] Result<std::shared_ptr<const topology::Snapshot>> snapshot() const;

  // Reads.
  Answer session(const ApiCall& call);
  Answer openapi(const ApiCall& call);
  Answer overview(const ApiCall&) { return json_answer(*model.state()->overview); }
  Answer series(const ApiCall& call);
  Answer ring(const ApiCall& call);
  Answer ring_member(const ApiCall& call);
  Answer route(const ApiCall& call);
  Answer members(const ApiCall&) { return json_answer(members_text(*model.state())); }
  Answer member(const ApiCall& call);
  Answer resize_status(const ApiCall&) { return json_answer(*model.state()->resize); }
  Answer plan(const ApiCall& call) { return actions.plan(call.request.body); }
  Answer resizes(const ApiCall&);
  Answer resize_log(const ApiCall& call);
  Answer topologies(const ApiCall& call);
  Answer topology_diff(const ApiCall& call);
  Answer topology_one(const ApiCall& call);
  Answer spec(const ApiCall&);
  Answer validate(const ApiCall& call);
  Answer hot_keys(const ApiCall&) { return json_answer(*model.state()->hot_keys); }
  Answer routers(const ApiCall&) { return json_answer(*model.state()->routers); }
  Answer registry(const ApiCall&) { return json_answer(*model.state()->registry); }
  Answer audit(const ApiCall& call);
  Answer membership(const ApiCall&) { return json_answer(*model.state()->membership); }
  // Actions.
  static Actions::Order order(const ApiCall& call, const char* action) {
    return {call.who, action, call.subject, call.request.body};
  }
  Answer start(const ApiCall& call) { return actions.start(order(call, "resize/start")); }
  Answer pause(const ApiCall& c) {
    return actions.steer(order(c, "resize/pause"), resize::Request::Action::pause);
  }
  Answer resume(const ApiCall& c) {
    return actions.steer(order(c, "resize/resume"), resize::Request::Action::resume);
  }
  Answer roll_back(const ApiCall& c) {
    return actions.steer(order(c, "resize/rollback"), resize::Request::Action::rollback);
  }
  Answer rate(const ApiCall& call) { return actions.set_rate(order(call, "resize/rate")); }
  Answer big_keys(const ApiCall& call) { return actions.big_keys(order(call, "resize/big-keys")); }
  Answer lost(const ApiCall& call) { return actions.declare_lost(order(call, "resize/lost")); }
  Answer add(const ApiCall& call) { return actions.add_members(order(call, "members/add")); }
  Answer admit(const ApiCall& call) { return actions.admit(order(call, "membership/admit")); }
  Answer drain(const ApiCall& call) { return actions.drain_member(order(call, "members/drain")); }
  Answer remove(const ApiCall& call) { return actions.remove_member(order(call, "members/remove")); }
  Answer weigh(const ApiCall& call) { return actions.weigh_member(order(call, "members/weight")); }
  Answer restore(const ApiCall& call) { return actions.restore(order(call, "topologies/restore")); }

  const ApiOptions options;
  Model model;
  Events events;  // The server's thread's.
  Actions actions;
};

const std::vector<Api::Impl::Route>& Api::Impl::table() {
  static const std::vector<Route> routes = {
      {"GET", "/session", &Impl::session},
      {"GET", "/openapi.yaml", &Impl::openapi},
      {"GET", "/overview", &Impl::overview},
      {"GET", "/events", nullptr},
      {"GET", "/series", &Impl::series},
      {"GET", "/ring", &Impl::ring},
      {"GET", "/ring/members/{id}", &Impl::ring_member},
      {"POST", "/route", &Impl::route},
      {"GET", "/members", &Impl::members},
      {"POST", "/members", &Impl::add, true},
      {"GET", "/members/{id}", &Impl::member},
      {"POST", "/members/{id}/drain", &Impl::drain, true},
      {"POST", "/members/{id}/remove", &Impl::remove, true},
      {"POST", "/members/{id}/weight", &Impl::weigh, true},
      {"GET", "/membership", &Impl::membership},
      {"POST", "/membership/{id}/admit", &Impl::admit, true},
      {"GET", "/resize", &Impl::resize_status},
      {"POST", "/resize/plan", &Impl::plan},
      {"POST", "/resize/start", &Impl::start, true},
      {"POST", "/resize/pause", &Impl::pause, true},
      {"POST", "/resize/resume", &Impl::resume, true},
      {"POST", "/resize/rollback", &Impl::roll_back, true},
      {"POST", "/resize/rate", &Impl::rate, true},
      {"POST", "/resize/big-keys", &Impl::big_keys, true},
      {"POST", "/resize/lost", &Impl::lost, true},
      {"GET", "/resizes", &Impl::resizes},
      {"GET", "/resizes/{id}/log", &Impl::resize_log},
      {"GET", "/topologies", &Impl::topologies},
      {"GET", "/topologies/diff", &Impl::topology_diff},
      {"GET", "/topologies/{revision}", &Impl::topology_one},
      {"POST", "/topologies/{revision}/restore", &Impl::restore, true},
      {"GET", "/spec", &Impl::spec},
      {"POST", "/spec/validate", &Impl::validate},
      {"GET", "/hot-keys", &Impl::hot_keys},
      {"GET", "/routers", &Impl::routers},
      {"GET", "/registry", &Impl::registry},
      {"GET", "/audit", &Impl::audit},
  };
  return routes;
}

std::vector<Api::RouteName> Api::routes() {
  std::vector<RouteName> out;
  for (const Impl::Route& route : Impl::table()) out.push_back({route.method, route.path, route.action});
  return out;
}

// Why an action is not for this caller; nullopt when it is.
std::optional<Answer> Api::Impl::forbidden(const ApiCall& call) const {
  if (!options.tokens) {
    return error_answer(403, "forbidden", "this process takes no actions",
                        "start it with --admin-token-file FILE, or use the command line ('ringshift resize', "
                        "'ringshift member')");
  }
  if (!call.who.empty()) return std::nullopt;
  Answer answer = error_answer(
      401, "unauthorized",
      call.request.header("Authorization") ? "the token is not one of this process's"
                                           : "an action needs the token",
      fmt::format("send 'Authorization: Bearer TOKEN' with the token in {}", options.tokens->path()));
  answer.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"ringshift\"");
  return answer;
}

Answer Api::Impl::no_such(std::string_view path, std::string_view method) const {
  std::string subject, allowed;
  for (const Route& route : table()) {
    if (path_matches(route.path, path, subject))
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
  }
  if (allowed.empty()) {
    return error_answer(404, "not_found",
                        fmt::format("nothing is at {}{}", kBase, base::printable(path, 200)),
                        fmt::format("{}/openapi.yaml tells what there is", kBase));
  }
  Answer answer = error_answer(
      405, "method_not_allowed",
      fmt::format("{} is not for {}{}: use {}", method, kBase, base::printable(path, 200), allowed));
  answer.headers.emplace_back("Allow", allowed);
  return answer;
}

Answer Api::Impl::dispatch(const http::Request& request, http::Exchange* exchange, bool& streams) {
  const std::string_view path = std::string_view(request.path).substr(kBase.size());
  if (request.body.size() > kBodyBytesMax)
    return error_answer(413, "too_large", fmt::format("a body has at most {} bytes", kBodyBytesMax));
  ApiCall call{request, parse_query(request.query), "", ""};
  const auto route = std::ranges::find_if(table(), [&](const Route& one) {
    return request.method == one.method && path_matches(one.path, path, call.subject);
  });
  if (route == table().end()) return no_such(path, request.method);
  if (options.tokens)
    call.who = options.tokens->who(request.header("Authorization").value_or("")).value_or("");
  if (route->action) {
    if (auto answer = forbidden(call)) return *std::move(answer);
  }
  if (route->function != nullptr) return (this->*route->function)(call);
  const Result<Topics> topics = parse_topics(call.query["topics"]);
  if (!topics) return error_answer(topics.error());
  if (exchange == nullptr) return error_answer(500, "internal", "a stream is not for a worker");
  streams = events.open(*exchange, *topics);
  if (streams) return {};
  Answer answer =
      error_answer(429, "overloaded", fmt::format("{} streams are open already", Events::kStreamsMax),
                   "close another tab or program that follows this cluster");
  answer.headers.emplace_back("Retry-After", "5");
  return answer;
}

Answer Api::Impl::respond(const http::Request& request) {
  bool streams = false;
  Answer answer = dispatch(request, nullptr, streams);
  answer.headers.emplace_back("Cache-Control", "no-store");
  answer.headers.emplace_back("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  answer.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  answer.headers.emplace_back("Referrer-Policy", "no-referrer");
  return answer;
}

void Api::Impl::fast(const http::Request& request, http::Exchange& exchange) {
  // The stream has to know its exchange; everything else is answered as a worker does.
  if (request.method == "GET" && request.path == std::string(kBase) + "/events") {
    bool streams = false;
    Answer answer = dispatch(request, &exchange, streams);
    if (streams) return;
    for (const auto& [name, value] : answer.headers) exchange.add_header(name, value);
    return exchange.reply(answer.status, answer.content_type, answer.body);
  }
  const Answer answer = respond(request);
  for (const auto& [name, value] : answer.headers) exchange.add_header(name, value);
  exchange.reply(answer.status, answer.content_type, answer.body);
}

Result<std::shared_ptr<const topology::Snapshot>> Api::Impl::snapshot() const {
  auto snapshot = model.state()->snapshot;
  if (snapshot) return snapshot;
  return fail(ErrorKind::not_found, "the cluster has no topology yet, or the registry was not reached yet");
}

Answer Api::Impl::session(const ApiCall& call) {
  const bool actions_on = options.tokens.has_value();
  std::string how;
  if (!actions_on) {
    how = "This process takes no actions: it has no token file (--admin-token-file). The command line does.";
  } else if (call.who.empty()) {
    how = fmt::format("The token is in {} on the machine that Ringshift runs on.", options.tokens->path());
  }
  return json_answer(Object()
                         .add("cluster", string_json(options.names.cluster))
                         .add("role", string_json(options.role))
                         .add("program_version", string_json(RINGSHIFT_VERSION))
                         .add("actions", truth(actions_on))
                         .add("authenticated", truth(!call.who.empty()))
                         .add("token_name", call.who.empty() ? std::string(kNull) : string_json(call.who))
                         .add("how", string_json(how))
                         .text());
}

Answer Api::Impl::openapi(const ApiCall&) {
  Answer answer;
  answer.content_type = "application/yaml";
  answer.body.assign(ringshift_admin_openapi_begin, ringshift_admin_openapi_end);
  return answer;
}

Answer Api::Impl::series(const ApiCall& call) {
  const auto since = number_of(call.query, "since_ms", 0, std::uint64_t{1} << 62, 0);
  if (!since) return error_answer(since.error());
  return json_answer(series_text(*model.state(), static_cast<std::int64_t>(*since)));
}

Answer Api::Impl::ring(const ApiCall& call) {
  const auto arcs = number_of(call.query, "arcs", kArcsMin, kArcsMax, kArcsUsual);
  if (!arcs) return error_answer(arcs.error());
  const auto asked = call.query.find("of");
  const std::string of = asked == call.query.end() ? "now" : asked->second;
  if (of != "now" && of != "target")
    return error_answer(
        {ErrorKind::invalid, fmt::format("of: '{}' is neither now nor target", base::printable(of, 40))});
  const auto compiled = snapshot();
  if (!compiled) return error_answer(compiled.error());
  return answer_of(ring_text(**compiled, of == "target", *arcs));
}

Answer Api::Impl::ring_member(const ApiCall& call) {
  const auto compiled = snapshot();
  if (!compiled) return error_answer(compiled.error());
  return answer_of(ring_member_text(**compiled, call.subject));
}

Answer Api::Impl::route(const ApiCall& call) {
  const auto question = parse_route_body(call.request.body);
  if (!question) return error_answer(question.error());
  const auto compiled = snapshot();
  if (!compiled) return error_answer(compiled.error());
  return answer_of(route_text(**compiled, *question));
}

Answer Api::Impl::member(const ApiCall& call) {
  const auto state = model.state();
  const auto found = state->members->find(call.subject);
  if (found != state->members->end()) return json_answer(found->second);
  return error_answer({ErrorKind::not_found,
                       fmt::format("the cluster has no member '{}'", base::printable(call.subject, 64))});
}

Answer Api::Impl::resizes(const ApiCall&) {
  std::vector<std::string> out;
  const auto state = model.state();
  for (const auto& [id, decisions] : *state->logs) {
    const resize::Decision &first = decisions.front(), &last = decisions.back();
    out.push_back(Object()
                      .add("resize", string_json(id))
                      .add("began", string_json(resize::local_time(first.at)))
                      .add("began_ms", whole(first.at))
                      .add("by", string_json(first.by))
                      .add("decisions", whole(std::uint64_t{decisions.size()}))
                      .add("last", Object()
                                       .add("at", string_json(resize::local_time(last.at)))
                                       .add("at_ms", whole(last.at))
                                       .add("event", string_json(last.event))
                                       .add("text", string_json(last.text))
                                       .text())
                      .text());
  }
  if (out.size() > resize::kResizesLogged)
    out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(resize::kResizesLogged));
  return json_answer(Object().add("resizes", list(out)).text());
}

Answer Api::Impl::resize_log(const ApiCall& call) {
  if (auto text = log_text(*model.state()->logs, call.subject)) return json_answer(*std::move(text));
  return error_answer({ErrorKind::not_found,
                       call.subject == "last"
                           ? std::string("nothing was resized: there is no log")
                           : fmt::format("there is no log of a resize '{}': {}/resizes lists those there are",
                                         base::printable(call.subject, 40), kBase)});
}

Answer Api::Impl::topologies(const ApiCall& call) {
  const auto limit = number_of(call.query, "limit", 1, kHistoryMost, kHistoryUsual);
  if (!limit) return error_answer(limit.error());
  const auto state = model.state();
  const coord::Revision current = state->stored ? state->stored->revision : 0;
  std::vector<std::string> out;
  for (auto it = state->history->rbegin(); it != state->history->rend() && out.size() < *limit; ++it)
    out.push_back(past_text(it->second, current));
  return json_answer(Object()
                         .add("current", state->stored ? whole(current) : std::string(kNull))
                         .add("topologies", list(out))
                         .text());
}

Answer Api::Impl::topology_diff(const ApiCall& call) {
  const auto state = model.state();
  const auto side = [&](const char* name) -> Result<coord::StoredTopology> {
    const auto asked = call.query.find(name);
    if (asked == call.query.end())
      return fail(ErrorKind::invalid, fmt::format("{}: is missing: a revision, or current", name));
    return find_topology(*state, asked->second);
  };
  const auto from = side("from"), to = side("to");
  if (!from) return error_answer(from.error());
  if (!to) return error_answer(to.error());
  const Result<topology::Diff> diff = topology::diff(from->topology.spec, to->topology.spec);
  if (!diff) return error_answer(diff.error());
  std::string text = diff_object(*diff);
  text.pop_back();
  text +=
      fmt::format(",\"from\":{},\"to\":{},\"changes\":{}}}", string_json(topology::to_string(from->version)),
                  string_json(topology::to_string(to->version)),
                  string_list(coord::topology_changes(from->topology, to->topology)));
  return json_answer(std::move(text));
}

Answer Api::Impl::topology_one(const ApiCall& call) {
  const auto state = model.state();
  const Result<coord::StoredTopology> stored = find_topology(*state, call.subject);
  if (!stored) return error_answer(stored.error());
  return json_answer(Object()
                         .add("revision", whole(stored->revision))
                         .add("version", string_json(topology::to_string(stored->version)))
                         .add("digest", string_json(topology::digest(stored->topology)))
                         .add("in_force", truth(state->stored && state->stored->revision == stored->revision))
                         .add("topology", topology::to_json(stored->topology))
                         .text());
}

Answer Api::Impl::spec(const ApiCall&) {
  const auto state = model.state();
  if (!state->spec) return error_answer({ErrorKind::not_found, "the cluster has no spec: apply one"});
  // As it was understood, so that what somebody else wrote cannot break our JSON.
  const Result<topology::Spec> parsed = topology::parse_spec(state->spec->value, "the registry's spec");
  if (!parsed) return error_answer(parsed.error());
  return json_answer(Object()
                         .add("revision", whole(state->spec->mod_revision))
                         .add("spec", topology::to_json(*parsed))
                         .text());
}

Answer Api::Impl::validate(const ApiCall& call) {
  constexpr std::string_view kPlace = "spec";
  const Result<topology::Spec> parsed = topology::parse_spec(call.request.body, kPlace);
  std::vector<std::string> problems, warnings;
  std::string diff(kNull);
  if (!parsed) {
    problems.push_back(problem_object(parsed.error().message, kPlace));
  } else {
    warnings = topology::warnings(*parsed);
    const auto state = model.state();
    if (state->stored && state->stored->topology.spec.cluster == parsed->cluster) {
      const topology::Spec& current = state->stored->topology.spec;
      for (std::string& one : topology::change_warnings(current, *parsed)) warnings.push_back(std::move(one));
      if (const Status follows = topology::check_succession(current, *parsed, false); !follows)
        problems.push_back(problem_object(follows.error().message, ""));
      if (const auto next = plan::successor(current, *parsed)) {
        if (const auto found = topology::diff(current, *next)) diff = diff_object(*found);
      }
    } else if (state->stored) {
      problems.push_back(problem_object(fmt::format("is for cluster '{}', and this one is '{}'",
                                                    parsed->cluster, state->stored->topology.spec.cluster),
                                        ""));
    }
  }
  return json_answer(Object()
                         .add("valid", truth(problems.empty()))
                         .add("problems", list(problems))
                         .add("warnings", string_list(warnings))
                         .add("spec", parsed ? topology::to_json(*parsed) : std::string(kNull))
                         .add("diff", diff)
                         .text());
}

Answer Api::Impl::audit(const ApiCall& call) {
  const auto limit = number_of(call.query, "limit", 1, kAuditKept, kAuditUsual);
  if (!limit) return error_answer(limit.error());
  const auto state = model.state();
  std::vector<std::string> entries;
  for (auto it = state->audit->rbegin(); it != state->audit->rend() && entries.size() < *limit; ++it)
    entries.push_back(audit_text(it->second));
  return json_answer(Object().add("entries", list(entries)).text());
}

Api::Api(coord::Coordinator& coordinator, ApiOptions options)
    : impl_(std::make_unique<Impl>(coordinator, std::move(options))) {}
Api::~Api() = default;

void Api::stop() noexcept { impl_->actions.stop(); }

void Api::attach(Listener& listener) {
  Impl* const impl = impl_.get();
  const auto fast = [impl](const http::Request& request, http::Exchange& exchange) {
    impl->fast(request, exchange);
  };
  const auto slow = [impl](const http::Request& request) { return impl->respond(request); };
  const std::string base(kBase);
  for (const char* method : kMethods) {
    const bool writes = std::string_view(method) == "POST";
    if (writes) {
      listener.add_slow(method, base + "/", slow);
    } else {
      listener.add(method, base + "/", fast);
    }
    // What computes with a thousand members must not hold up the others.
    for (const char* path : {"/ring", "/ring/", "/topologies", "/topologies/", "/spec", "/spec/"})
      listener.add_slow(method, base + path, slow);
  }
  listener.server().every(Events::kPump, [impl] { impl->events.pump(); });
}

}  // namespace ringshift::admin
