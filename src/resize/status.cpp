#include "resize/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "resize/phases.h"

namespace ringshift::resize {
namespace {

using nlohmann::json;

constexpr const char* kActions[] = {"start", "pause", "resume", "rollback", "set_rate", "big_keys", "lost"};

Result<json> parse_object(std::string_view text, std::string_view what) {
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return fail(ErrorKind::invalid, fmt::format("{}: not a JSON object", what));
  return parsed;
}

// The member `name` if it has the type of `fallback`, else `fallback`: the writers are ours, but the registry
// is open to others, and nothing in it may end the controller.
template <class T>
T field(const json& object, const char* name, T fallback) {
  const auto found = object.find(name);
  if (found == object.end()) return fallback;
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    return fallback;
  }
}

// Keys and members' errors are bytes, JSON is not: what is no UTF-8 is shown as U+FFFD, and never an
// exception.
std::string dump(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace); }

json pairs_json(const std::vector<PairProgress>& pairs) {
  json out = json::array();
  for (const PairProgress& pair : pairs)
    out.push_back({{"from", pair.from},
                   {"to", pair.to},
                   {"moved", pair.moved},
                   {"bytes", pair.bytes},
                   {"left", pair.left}});
  return out;
}

std::vector<PairProgress> pairs_of(const json& object) {
  std::vector<PairProgress> out;
  const auto pairs = object.find("pairs");
  if (pairs == object.end() || !pairs->is_array()) return out;
  for (const json& pair : *pairs) {
    if (!pair.is_object()) continue;
    out.push_back({field<std::string>(pair, "from", ""), field<std::string>(pair, "to", ""),
                   field<std::uint64_t>(pair, "moved", 0), field<std::uint64_t>(pair, "bytes", 0),
                   field<std::uint64_t>(pair, "left", 0)});
  }
  return out;
}

json waiting_json(const std::vector<WaitingKey>& keys) {
  json out = json::array();
  for (const WaitingKey& key : keys)
    out.push_back({{"key", key.key}, {"bytes", key.bytes}, {"from", key.from}, {"to", key.to}});
  return out;
}

std::vector<WaitingKey> waiting_of(const json& object) {
  std::vector<WaitingKey> out;
  const auto keys = object.find("waiting_big_keys");
  if (keys == object.end() || !keys->is_array()) return out;
  for (const json& key : *keys) {
    if (!key.is_object()) continue;
    out.push_back({field<std::string>(key, "key", ""), field<std::uint64_t>(key, "bytes", 0),
                   field<std::string>(key, "from", ""), field<std::string>(key, "to", "")});
  }
  return out;
}

std::chrono::milliseconds soak_of(const json& object) {
  constexpr std::chrono::milliseconds kMost = kMaxDuration;
  return std::clamp(std::chrono::milliseconds(field<std::int64_t>(object, "soak_ms", 0)),
                    std::chrono::milliseconds(0), kMost);
}

json known(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

std::optional<double> maybe(const json& object, const char* name) {
  const double value = field<double>(object, name, -1);
  return value < 0 ? std::nullopt : std::optional(value);
}

json window_json(const Window& window) {
  return {{"from_minute", window.from_minute},
          {"to_minute", window.to_minute},
          {"not_before", window.not_before},
          {"not_after", window.not_after}};
}

Window window_of(const json& object) {
  const auto found = object.find("window");
  Window window;
  if (found == object.end() || !found->is_object()) return window;
  window.not_before = field<UnixMs>(*found, "not_before", 0);
  window.not_after = field<UnixMs>(*found, "not_after", 0);
  const int from = field<int>(*found, "from_minute", -1), to = field<int>(*found, "to_minute", -1);
  constexpr int kMinutes = 24 * 60;
  if (from < 0 || to < 0 || from >= kMinutes || to >= kMinutes || from == to) return window;
  window.from_minute = from;
  window.to_minute = to;
  return window;
}

Result<topology::Spec> spec_of(const json& object, std::string_view what) {
  return topology::parse_spec(object.at("spec").dump(), what);
}

}  // namespace

std::string to_json(const Request& request) {
  json out = {{"id", request.id}, {"action", kActions[static_cast<int>(request.action)]}};
  if (request.spec) out["spec"] = json::parse(topology::to_json(*request.spec));
  if (!request.steps.empty()) out["steps"] = request.steps;
  if (request.allow_foreign) out["allow_foreign"] = true;
  if (request.force) out["force"] = true;
  if (request.keys_per_second != 0) out["keys_per_second"] = request.keys_per_second;
  if (!request.big_keys.empty()) out["big_keys"] = request.big_keys;
  if (request.big_key_limit != 0) out["big_key_limit"] = request.big_key_limit;
  if (!request.verify.empty()) out["verify"] = request.verify;
  if (!request.lost.empty()) out["lost"] = request.lost;
  if (request.origin_budget != 0) out["origin_budget"] = request.origin_budget;
  if (request.expire) {
    out["expire"] = true;
    out["rest"] = request.rest;
    out["deadline_seconds"] = request.deadline_seconds;
  }
  if (request.bytes_per_second != 0) out["bytes_per_second"] = request.bytes_per_second;
  if (request.soak.count() != 0) out["soak_ms"] = request.soak.count();
  if (!request.at.empty()) out["at"] = request.at;
  if (!request.until.empty()) out["until"] = request.until;
  if (!request.abort_if.empty()) out["abort_if"] = request.abort_if;
  if (request.replace) out["replace"] = true;
  if (!request.by.empty()) out["by"] = request.by;
  return dump(out);
}

Result<Request> parse_request(std::string_view text) {
  Result<json> object = parse_object(text, "request");
  if (!object) return std::unexpected(object.error());
  Request request;
  request.id = field<std::string>(*object, "id", "");
  const auto action = field<std::string>(*object, "action", "");
  bool known = false;
  for (std::size_t i = 0; i < std::size(kActions); ++i) {
    if (action != kActions[i]) continue;
    request.action = static_cast<Request::Action>(i);
    known = true;
  }
  if (!known) {
    return fail(ErrorKind::invalid,
                fmt::format("request: action '{}' is none of {}", action, fmt::join(kActions, ", ")));
  }
  if (object->contains("spec")) {
    Result<topology::Spec> spec = spec_of(*object, "request");
    if (!spec) return std::unexpected(spec.error());
    request.spec = std::move(*spec);
  }
  request.steps = field<std::vector<double>>(*object, "steps", {});
  request.allow_foreign = field<bool>(*object, "allow_foreign", false);
  request.force = field<bool>(*object, "force", false);
  request.keys_per_second = field<std::uint64_t>(*object, "keys_per_second", 0);
  request.big_keys = field<std::string>(*object, "big_keys", "");
  request.big_key_limit = field<std::uint64_t>(*object, "big_key_limit", 0);
  request.verify = field<std::string>(*object, "verify", "");
  request.lost = field<std::vector<std::string>>(*object, "lost", {});
  request.origin_budget = field<std::uint64_t>(*object, "origin_budget", 0);
  request.expire = field<bool>(*object, "expire", false);
  request.rest = field<std::string>(*object, "rest", "");
  request.deadline_seconds = field<std::uint64_t>(*object, "deadline_seconds", kDefaultDeadlineSeconds);
  if (request.rest != "" && request.rest != "move" && request.rest != "drop") {
    return fail(ErrorKind::invalid, fmt::format("request: rest '{}' is neither move nor drop", request.rest));
  }
  request.bytes_per_second = field<std::uint64_t>(*object, "bytes_per_second", 0);
  request.soak = soak_of(*object);
  request.at = field<std::string>(*object, "at", "");
  request.until = field<std::string>(*object, "until", "");
  request.abort_if = field<std::string>(*object, "abort_if", "");
  request.replace = field<bool>(*object, "replace", false);
  request.by = field<std::string>(*object, "by", "");
  return request;
}

std::string to_json(const ResizeStatus& status) {
  return dump(json{{"state", status.state},
                   {"id", status.id},
                   {"version", status.version},
                   {"step", status.step},
                   {"steps", status.steps},
                   {"phase", status.phase},
                   {"keys_moved", status.keys_moved},
                   {"keys_to_move", status.keys_to_move},
                   {"bytes_moved", status.bytes_moved},
                   {"keys_per_second", status.keys_per_second},
                   {"eta_seconds", status.eta_seconds},
                   {"hold_ms_max", status.hold_ms_max},
                   {"fences", status.fences},
                   {"pairs", pairs_json(status.pairs)},
                   {"big_keys", status.big_keys},
                   {"last_error", status.last_error},
                   {"rolled_back", status.rolled_back},
                   {"request_id", status.request_id},
                   {"request_error", status.request_error},
                   {"rate_in_force", status.rate_in_force},
                   {"held_back", status.held_back},
                   {"keys_verified", status.keys_verified},
                   {"retries", status.retries},
                   {"big_keys_waiting", status.big_keys_waiting},
                   {"waiting_big_keys", waiting_json(status.waiting_big_keys)},
                   {"lost", status.lost},
                   {"origin_budget", status.origin_budget},
                   {"misses_per_second", status.misses_per_second},
                   {"mode", status.mode},
                   {"expire_until_ms", status.expire_until_ms},
                   {"keys_without_ttl", status.keys_without_ttl},
                   {"keys_dropped", status.keys_dropped},
                   {"keys_without_ttl_examples", status.keys_without_ttl_examples},
                   {"waits_for", status.waits_for},
                   {"waiting", status.waiting},
                   {"waiting_until", status.waiting_until},
                   {"window", status.window},
                   {"abort_if", status.abort_if},
                   {"aborted", status.aborted},
                   {"rate", status.rate},
                   {"byte_rate", status.byte_rate},
                   {"queued", status.queued},
                   {"hit_rate", known(status.hit_rate)},
                   {"p99_ms", known(status.p99_ms)},
                   {"origin_qps", known(status.origin_qps)}});
}

Result<ResizeStatus> parse_status(std::string_view text) {
  Result<json> object = parse_object(text, "status");
  if (!object) return std::unexpected(object.error());
  ResizeStatus status;
  status.state = field<std::string>(*object, "state", "idle");
  status.id = field<std::string>(*object, "id", "");
  status.version = field<std::string>(*object, "version", "");
  status.step = field<std::uint64_t>(*object, "step", 0);
  status.steps = field<std::uint64_t>(*object, "steps", 0);
  status.phase = field<std::string>(*object, "phase", "");
  status.keys_moved = field<std::uint64_t>(*object, "keys_moved", 0);
  status.keys_to_move = field<std::uint64_t>(*object, "keys_to_move", 0);
  status.bytes_moved = field<std::uint64_t>(*object, "bytes_moved", 0);
  status.keys_per_second = field<double>(*object, "keys_per_second", 0);
  status.eta_seconds = field<double>(*object, "eta_seconds", 0);
  status.hold_ms_max = field<double>(*object, "hold_ms_max", 0);
  status.fences = field<std::uint64_t>(*object, "fences", 0);
  status.big_keys = field<std::vector<std::string>>(*object, "big_keys", {});
  status.last_error = field<std::string>(*object, "last_error", "");
  status.rolled_back = field<bool>(*object, "rolled_back", false);
  status.request_id = field<std::string>(*object, "request_id", "");
  status.request_error = field<std::string>(*object, "request_error", "");
  status.pairs = pairs_of(*object);
  status.rate_in_force = field<double>(*object, "rate_in_force", 0);
  status.held_back = field<std::vector<std::string>>(*object, "held_back", {});
  status.keys_verified = field<std::uint64_t>(*object, "keys_verified", 0);
  status.retries = field<std::uint64_t>(*object, "retries", 0);
  status.big_keys_waiting = field<std::uint64_t>(*object, "big_keys_waiting", 0);
  status.waiting_big_keys = waiting_of(*object);
  status.lost = field<std::vector<std::string>>(*object, "lost", {});
  status.origin_budget = field<std::uint64_t>(*object, "origin_budget", 0);
  status.misses_per_second = field<double>(*object, "misses_per_second", 0);
  status.mode = field<std::string>(*object, "mode", "move");
  status.expire_until_ms = field<std::uint64_t>(*object, "expire_until_ms", 0);
  status.keys_without_ttl = field<std::uint64_t>(*object, "keys_without_ttl", 0);
  status.keys_dropped = field<std::uint64_t>(*object, "keys_dropped", 0);
  status.keys_without_ttl_examples =
      field<std::vector<std::string>>(*object, "keys_without_ttl_examples", {});
  status.waits_for = field<std::string>(*object, "waits_for", "");
  status.waiting = field<std::string>(*object, "waiting", "");
  status.waiting_until = field<std::string>(*object, "waiting_until", "");
  status.window = field<std::string>(*object, "window", "");
  status.abort_if = field<std::string>(*object, "abort_if", "");
  status.aborted = field<std::string>(*object, "aborted", "");
  status.rate = field<std::uint64_t>(*object, "rate", 0);
  status.byte_rate = field<std::uint64_t>(*object, "byte_rate", 0);
  status.queued = field<bool>(*object, "queued", false);
  status.hit_rate = maybe(*object, "hit_rate");
  status.p99_ms = maybe(*object, "p99_ms");
  status.origin_qps = maybe(*object, "origin_qps");
  return status;
}

std::string to_json(const Checkpoint& checkpoint) {
  std::vector<PairProgress> pairs;
  // What is kept is how many were expected.
  for (const auto& [pair, of] : checkpoint.pairs)
    pairs.push_back({pair.first, pair.second, of.moved, of.bytes, of.expected});
  return dump(json{{"steps", checkpoint.steps},
                   {"prepared", checkpoint.prepared},
                   {"opened", checkpoint.opened},
                   {"paused", checkpoint.paused},
                   {"allow_foreign", checkpoint.allow_foreign},
                   {"keys_moved", checkpoint.keys_moved},
                   {"keys_to_move", checkpoint.keys_to_move},
                   {"bytes_moved", checkpoint.bytes_moved},
                   {"fences", checkpoint.fences},
                   {"hold_ms_max", checkpoint.hold_ms_max},
                   {"rollback", checkpoint.rollback},
                   {"pairs", pairs_json(pairs)},
                   {"big_keys", checkpoint.big_keys},
                   {"big_key_policy", checkpoint.big_key_policy},
                   {"big_key_limit", checkpoint.big_key_limit},
                   {"verify", checkpoint.verify},
                   {"keys_verified", checkpoint.keys_verified},
                   {"spec", json::parse(topology::to_json(checkpoint.target))},
                   {"lost", checkpoint.lost},
                   {"origin_budget", checkpoint.origin_budget},
                   {"expire", checkpoint.expire},
                   {"rest", checkpoint.rest},
                   {"deadline_seconds", checkpoint.deadline_seconds},
                   {"expire_slices", checkpoint.expire_slices},
                   {"expire_until_ms", checkpoint.expire_until_ms},
                   {"keys_without_ttl", checkpoint.keys_without_ttl},
                   {"keys_dropped", checkpoint.keys_dropped},
                   {"keys_without_ttl_examples", checkpoint.keys_without_ttl_examples},
                   {"soak_ms", checkpoint.soak.count()},
                   {"soak_until", checkpoint.soak_until},
                   {"window", window_json(checkpoint.window)},
                   {"abort_if", to_text(checkpoint.abort_if)},
                   {"aborted", checkpoint.aborted},
                   {"rate", checkpoint.keys_per_second},
                   {"byte_rate", checkpoint.bytes_per_second}});
}

Result<Checkpoint> parse_checkpoint(std::string_view text) {
  Result<json> object = parse_object(text, "checkpoint");
  if (!object) return std::unexpected(object.error());
  if (!object->contains("spec")) return fail(ErrorKind::invalid, "checkpoint: has no 'spec'");
  Result<topology::Spec> target = spec_of(*object, "checkpoint");
  if (!target) return std::unexpected(target.error());
  Checkpoint checkpoint;
  checkpoint.target = std::move(*target);
  checkpoint.steps = field<std::vector<double>>(*object, "steps", kDefaultSteps);
  checkpoint.prepared = field<bool>(*object, "prepared", false);
  checkpoint.opened = field<bool>(*object, "opened", false);
  checkpoint.paused = field<bool>(*object, "paused", false);
  checkpoint.allow_foreign = field<bool>(*object, "allow_foreign", false);
  checkpoint.keys_moved = field<std::uint64_t>(*object, "keys_moved", 0);
  checkpoint.keys_to_move = field<std::uint64_t>(*object, "keys_to_move", 0);
  checkpoint.bytes_moved = field<std::uint64_t>(*object, "bytes_moved", 0);
  checkpoint.fences = field<std::uint64_t>(*object, "fences", 0);
  checkpoint.hold_ms_max = field<double>(*object, "hold_ms_max", 0);
  checkpoint.rollback = field<bool>(*object, "rollback", false);
  for (const PairProgress& pair : pairs_of(*object))
    checkpoint.pairs[{pair.from, pair.to}] = {pair.moved, pair.bytes, pair.left};
  checkpoint.big_keys = field<std::set<std::string>>(*object, "big_keys", {});
  checkpoint.big_key_policy = field<std::string>(*object, "big_key_policy", "wait");
  checkpoint.big_key_limit = field<std::uint64_t>(*object, "big_key_limit", 0);
  checkpoint.verify = field<std::string>(*object, "verify", "counts");
  checkpoint.keys_verified = field<std::uint64_t>(*object, "keys_verified", 0);
  checkpoint.lost = field<std::vector<std::string>>(*object, "lost", {});
  checkpoint.origin_budget = field<std::uint64_t>(*object, "origin_budget", 0);
  checkpoint.expire = field<bool>(*object, "expire", false);
  checkpoint.rest = field<std::string>(*object, "rest", "");
  checkpoint.deadline_seconds = field<std::uint64_t>(*object, "deadline_seconds", kDefaultDeadlineSeconds);
  checkpoint.expire_slices = field<std::uint64_t>(*object, "expire_slices", 0);
  checkpoint.expire_until_ms = field<std::uint64_t>(*object, "expire_until_ms", 0);
  checkpoint.keys_without_ttl = field<std::uint64_t>(*object, "keys_without_ttl", 0);
  checkpoint.keys_dropped = field<std::uint64_t>(*object, "keys_dropped", 0);
  checkpoint.keys_without_ttl_examples =
      field<std::vector<std::string>>(*object, "keys_without_ttl_examples", {});
  checkpoint.soak = soak_of(*object);
  checkpoint.soak_until = field<UnixMs>(*object, "soak_until", 0);
  checkpoint.window = window_of(*object);
  // A condition that cannot be read must not vanish: a resize without its brakes is not what was asked for.
  Result<std::vector<Condition>> conditions = parse_conditions(field<std::string>(*object, "abort_if", ""));
  if (!conditions) return std::unexpected(conditions.error());
  checkpoint.abort_if = std::move(*conditions);
  checkpoint.aborted = field<std::string>(*object, "aborted", "");
  checkpoint.keys_per_second = field<std::uint64_t>(*object, "rate", 0);
  checkpoint.bytes_per_second = field<std::uint64_t>(*object, "byte_rate", 0);
  return checkpoint;
}

}  // namespace ringshift::resize
