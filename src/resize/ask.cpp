#include "resize/ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

#include "resize/phases.h"

namespace ringshift::resize {
namespace {

constexpr std::chrono::milliseconds kAskEvery{20};
constexpr std::chrono::minutes kMeasureAnswer{30};

std::string fresh_request_id() {
  std::random_device entropy;
  return fmt::format("request.{:08x}{:08x}", entropy(), entropy());
}

bool one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

std::unexpected<Error> wrong_option(std::string message) {
  return fail(ErrorKind::invalid, std::move(message));
}

// Of members that are lost, and of keys that run out.
Status add_lost_and_expire(const StartWords& words, Request& request) {
  if (!words.lost.empty() && !words.origin_budget) {
    return wrong_option(
        "lost: its keys become misses, and their clients ask the origin: say how many misses a second it "
        "bears by "
        "--origin-budget N (0: as fast as it goes)");
  }
  if (words.lost.empty() && words.origin_budget.value_or(0) != 0)
    return wrong_option("origin-budget goes with --lost");
  if (!one_of(words.mode, {"move", "expire"}))
    return wrong_option(fmt::format("mode: '{}' is neither move nor expire", words.mode));
  if (!one_of(words.rest, {"", "move", "drop"}))
    return wrong_option(fmt::format("rest: '{}' is neither move nor drop", words.rest));
  request.expire = words.mode == "expire";
  if (!request.expire && !words.rest.empty())
    return wrong_option("drop and --move-rest go with --mode expire");
  const auto deadline = parse_duration(words.deadline);
  if (!deadline) return wrong_option("deadline: " + deadline.error().message);
  if (*deadline < std::chrono::seconds(1)) return wrong_option("deadline: at least 1s");
  request.lost = words.lost;
  request.origin_budget = words.origin_budget.value_or(0);
  request.rest = words.rest;
  request.deadline_seconds =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(*deadline).count());
  return {};
}

Status add_big_keys(const StartWords& words, Request& request) {
  if (!one_of(words.big_keys, {"", "move", "wait", "refuse"}))
    return wrong_option(fmt::format("big-keys: '{}' is none of move, wait and refuse", words.big_keys));
  if (!one_of(words.verify, {"", "counts", "sample", "all"}))
    return wrong_option(fmt::format("verify: '{}' is none of counts, sample and all", words.verify));
  request.big_keys = words.big_keys;
  request.big_key_limit = words.big_key_limit;
  request.verify = words.verify;
  return {};
}

}  // namespace

Result<Request> start_request(const StartWords& words) {
  Request request;
  request.action = Request::Action::start;
  if (!words.steps.empty()) {
    if (const Status steps = check_steps(words.steps); !steps) return std::unexpected(steps.error());
  }
  request.steps = words.steps;
  if (!words.soak.empty()) {
    const auto soak = parse_duration(words.soak);
    if (!soak) return wrong_option("soak: " + soak.error().message);
    request.soak = *soak;
  }
  const auto window = make_window(words.at, words.until, unix_now());
  if (!window) return std::unexpected(window.error());
  const auto conditions = parse_conditions(words.abort_if);
  if (!conditions) return std::unexpected(conditions.error());
  request.at = words.at;
  request.until = words.until;
  request.abort_if = words.abort_if;
  request.keys_per_second = words.keys_per_second;
  request.bytes_per_second = words.bytes_per_second;
  request.allow_foreign = words.allow_foreign;
  request.force = words.force;
  request.replace = words.replace;
  if (const Status added = add_lost_and_expire(words, request); !added) return std::unexpected(added.error());
  if (const Status added = add_big_keys(words, request); !added) return std::unexpected(added.error());
  return request;
}

std::chrono::milliseconds answer_patience(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                          const Request& request, std::chrono::milliseconds usual) {
  if (!request.expire) return usual;
  const auto leader = coordinator.get(keys.controller());
  return leader && *leader ? std::chrono::milliseconds(kMeasureAnswer) : usual;
}

Result<ResizeStatus> read_status(coord::Coordinator& coordinator, const coord::ClusterKeys& keys) {
  const auto kv = coordinator.get(keys.status());
  if (!kv) return std::unexpected(kv.error());
  if (!*kv) return ResizeStatus{};
  return parse_status((*kv)->value);
}

Status ask_controller(coord::Coordinator& coordinator, const coord::ClusterKeys& keys, Request request,
                      std::chrono::milliseconds patience, const std::atomic<bool>* give_up) {
  request.id = fresh_request_id();
  const auto written = coordinator.transact({{keys.request(), coord::Compare::Target::create_revision, 0}},
                                            {{coord::Op::Kind::put, keys.request(), to_json(request), 0}});
  if (!written) return std::unexpected(written.error());
  if (!*written) {
    return fail(ErrorKind::overloaded,
                "another request waits for the controller: try again when it is handled");
  }
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until && !(give_up != nullptr && *give_up)) {
    std::this_thread::sleep_for(kAskEvery);
    const Result<ResizeStatus> status = read_status(coordinator, keys);
    if (!status) continue;  // A passing outage; the patience bounds it.
    if (status->request_id != request.id) continue;
    if (status->request_error.empty()) return {};
    return fail(ErrorKind::invalid, status->request_error);
  }
  // Take it back, so that it does not come to life when a controller starts tomorrow.
  const auto kv = coordinator.get(keys.request());
  if (kv && *kv && (*kv)->value == to_json(request)) {
    static_cast<void>(
        coordinator.transact({{keys.request(), coord::Compare::Target::mod_revision, (*kv)->mod_revision}},
                             {{coord::Op::Kind::remove, keys.request(), "", 0}}));
  }
  return fail(
      ErrorKind::retryable,
      fmt::format(
          "no controller answered within {} s: is 'ringshift controller' or 'ringshift serve' running "
          "for this cluster?",
          patience.count() / 1000));
}

}  // namespace ringshift::resize
