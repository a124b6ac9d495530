// Whether a session's user may do what he asks, and how fast: see Session::admitted().
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/subscriber.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {
namespace {

using access::Verdict;
using protocol::resp::Arguments;
using protocol::resp::Command;
using protocol::resp::Handling;
using protocol::resp::KeyRef;
using telemetry::Counter;

constexpr std::string_view kNoAuth = "-NOAUTH Authentication required.";

std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void add_once(std::vector<Meter*>& meters, Meter* meter) {
  if (meter != nullptr && std::ranges::find(meters, meter) == meters.end()) meters.push_back(meter);
}

std::string_view reason_of(const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::no_key:
      return "key";
    case Verdict::Kind::no_channel:
      return "channel";
    default:
      return "command";
  }
}

}  // namespace

// --- who --------------------------------------------------------------------------------------------------

void Session::become_default_user() {
  const RulesInForce& in_force = worker_.rules();
  const access::User& user = in_force.rules.users.default_user();
  authenticated_ = user.enabled() && user.needs_no_password();
  if (client_meter_ == nullptr) client_meter_ = in_force.limits.fresh_client();
  become(user);
}

void Session::become(const access::User& user) {
  const RulesInForce& in_force = worker_.rules();
  was_admitted_ = false;  // A command that waits was judged by other rules, or as somebody else.
  user_ = &user;
  const access::User& nobody = in_force.rules.users.default_user();
  authenticated_ = authenticated_ || (nobody.enabled() && nobody.needs_no_password());
  parser_.set_stranger(!authenticated_);
  reach_ = &worker_.reach_in(user.name(), database_);
  leave_lost_database();
  user_meter_ = in_force.limits.user(user.name());
  guarded_ = in_force.guarded &&
             (!authenticated_ || !user.may_all() || in_force.limits.any() || reach_->upstreams().empty());
}

void Session::rules_adopted() {
  const RulesInForce& in_force = worker_.rules();
  client_meter_ = in_force.limits.fresh_client();
  if (const access::User* user = in_force.rules.users.find(user_->name()); user != nullptr) {
    become(*user);
    if (subscriber_ != nullptr) subscriber_->rules_adopted();
    return;
  }
  become_default_user();
  close_when_done();
}

bool Session::authenticate(std::string_view name, std::string_view password) {
  const access::User* user = worker_.rules().rules.users.authenticate(name, password);
  if (user == nullptr) {
    worker_.counters().add(Counter::errors_denied);
    note_refusal("auth", parser_.argument(0), name);
    return false;
  }
  authenticated_ = true;
  become(*user);
  return true;
}

// --- what -------------------------------------------------------------------------------------------------

bool Session::admitted(const Command& command) {
  if (std::exchange(was_admitted_, false)) return true;
  // What is malformed is refused for that, and whoever may not do anything else may still authenticate.
  if (!command.arity_fits(parser_.argument_count())) return true;
  if ((command.flags & protocol::resp::k_no_auth) != 0) return true;
  const bool queueing = transaction_ != nullptr && transaction_->queueing();
  if (authenticated_ && queueing && (command.flags & protocol::resp::k_no_multi) != 0) return true;
  std::string error;
  Counter counter = Counter::errors_denied;
  if (!authenticated_) {
    error = kNoAuth;
  } else if (error = refused(command, parser_); error.empty()) {
    if (reach_->upstreams().empty() && command.handling != Handling::local) error = kNoRoute;
    if (error.empty()) {
      error = over_limit(command);
      counter = Counter::errors_limited;
    }
  }
  if (error.empty()) return true;
  worker_.counters().add(Counter::requests);
  worker_.counters().add(counter);
  if (transaction_ != nullptr) transaction_->spoil();
  if (command.name == "exec") {
    if (queueing) return true;  // Which answers that it is spoilt, and ends it.
    error = "-EXECABORT Transaction discarded because of: " + error.substr(1);
  }
  answer_now(error + "\r\n");
  return false;
}

std::string Session::refused(const Command& command, const Arguments& arguments) {
  if (user_->may_all()) return {};
  const Verdict verdict = user_->check(command, arguments);
  if (verdict.kind == Verdict::Kind::allowed) return {};
  note_refusal(reason_of(verdict),
               verdict.kind == Verdict::Kind::no_command ? command.name : arguments[verdict.argument],
               user_->name());
  return denial(verdict, command);
}

void Session::note_refusal(std::string_view reason, std::string_view object, std::string_view user) {
  AclLog::Entry entry;
  entry.reason = reason;
  entry.context = transaction_ != nullptr && transaction_->queueing() ? "multi" : "toplevel";
  entry.object = object.substr(0, AclLog::kMaxText);
  entry.user = user.substr(0, AclLog::kMaxText);
  entry.client =
      fmt::format("id={} addr={} laddr={} name={} db={} user={} resp={}", id_, peer(), shared().address,
                  name_, database_, user_->name(), resp_ == backend::Resp::v3 ? 3 : 2);
  entry.at = std::chrono::steady_clock::now();
  shared().acl_log.add(std::move(entry));
}

// --- how fast ---------------------------------------------------------------------------------------------

// "" when every bucket that the command concerns has given what it takes; else none has.
std::string Session::over_limit(const Command& command) {
  const Limits& limits = worker_.rules().limits;
  // What was queued was counted then, and a refused end would leave the transaction open.
  if (!limits.any() || command.name == "exec" || command.name == "discard") return {};
  std::vector<Meter*> meters;
  add_once(meters, user_meter_);
  add_once(meters, client_meter_.get());
  if (limits.of_keys() && command.handling == Handling::fan_out) {
    for (const Upstream* upstream : reach_->upstreams()) add_once(meters, limits.cluster(upstream->name()));
  } else if (limits.of_keys() && command.key_use != protocol::resp::KeyUse::none) {
    std::vector<KeyRef> keys;
    (void)find_keys(command, parser_, keys);
    for (const KeyRef& ref : keys) {
      const std::string_view key = parser_.argument(ref.argument);
      add_once(meters, limits.prefix(key));
      const Upstream* upstream = reach_->upstream_of(key);
      if (upstream != nullptr) add_once(meters, limits.cluster(upstream->name()));
    }
  }
  const std::int64_t now = nanoseconds_now();
  const std::size_t bytes = parser_.command_bytes();
  for (std::size_t i = 0; i < meters.size(); ++i) {
    std::string error = meters[i]->take(bytes, now);
    if (error.empty()) continue;
    while (i-- > 0) meters[i]->give_back(bytes);
    return error;
  }
  return {};
}

}  // namespace ringshift::proxy
