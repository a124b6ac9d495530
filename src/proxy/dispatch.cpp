// What a session does with one command: the policy of the command table, applied.
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/seldom.h"
#include "protocol/resp/command_keys.h"
#include "proxy/blocked.h"
#include "proxy/databases.h"
#include "proxy/fan_out.h"
#include "proxy/local_commands.h"
#include "proxy/random_key.h"
#include "proxy/replies.h"
#include "proxy/scan.h"
#include "proxy/scripts.h"
#include "proxy/served.h"
#include "proxy/session.h"
#include "proxy/split.h"
#include "proxy/subscriber.h"
#include "proxy/upstream.h"
#include "proxy/wait.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Command;
using protocol::resp::equals_ignoring_case;
using protocol::resp::Handling;
using protocol::resp::LocalCommand;
using telemetry::Counter;

constexpr std::size_t kRoutedAtOnce = 32;           // Keys of a split command.
constexpr std::chrono::seconds kStrangerLogged{1};  // At most one in this time and worker.

// These are told from all others by where their entries lie.
const Command* const kGet = protocol::resp::find_command("get");
const Command* const kMulti = protocol::resp::find_command("multi");
const Command* const kExec = protocol::resp::find_command("exec");
const Command* const kDiscard = protocol::resp::find_command("discard");
const Command* const kWatch = protocol::resp::find_command("watch");
const Command* const kEval = protocol::resp::find_command("eval");
const Command* const kEvalRo = protocol::resp::find_command("eval_ro");
const Command* const kEvalsha = protocol::resp::find_command("evalsha");
const Command* const kEvalshaRo = protocol::resp::find_command("evalsha_ro");
const Command* const kReply =
    protocol::resp::find_subcommand(*protocol::resp::find_command("client"), "reply");
const Command* const kUnwatch = protocol::resp::find_command("unwatch");

KeyAccess access_of(const Command& command) {
  if (&command == kGet) return KeyAccess::get;
  return command.key_use == protocol::resp::KeyUse::read ? KeyAccess::read : KeyAccess::write;
}

struct Sent {
  std::string_view bytes;
  backend::Resp resp;
  backend::ReplySink* sink;
  std::uint64_t tag;
};
// Apart from the way of a settled key, which needs none of its stack.
[[gnu::noinline]] void submit(DualRouter& dual, const Command& command, std::string_view key,
                              const Sent& sent) {
  dual.submit({.bytes = std::string(sent.bytes),
               .key = std::string(key),
               .access = access_of(command),
               .traffic = command.traffic,
               .resp = sent.resp,
               .sink = sent.sink,
               .tag = sent.tag});
}

}  // namespace

Session::Outcome Session::dispatch() {
  const Command* command = protocol::resp::find_command(parser_.argument(0));
  if (command == nullptr) [[unlikely]] {
    refuse_unknown();
    return Outcome::done;
  }
  if (!command->plain && command->handling == Handling::container) [[unlikely]] {
    command = subcommand(*command);
    if (command == nullptr) return Outcome::done;  // Refused.
  }
  last_command_ = command;
  if (guarded_ && !admitted(*command)) [[unlikely]]
    return Outcome::done;
  if (worker_.admin().look_due() && !look_closer(*command)) [[unlikely]]
    return Outcome::not_now;
  if (subscriber_ != nullptr && refused_to_subscriber(*command)) [[unlikely]]
    return Outcome::done;
  if (transaction_ != nullptr && queued_in_transaction(*command)) [[unlikely]]
    return Outcome::done;
  if (command->plain) [[likely]] {
    // Nearly every command. What is odd about it, its arguments or its key, is told below.
    const std::string_view key = command->arity_fits(parser_.argument_count())
                                     ? parser_.argument(static_cast<std::size_t>(command->first_key))
                                     : kReservedPrefix;
    if (!key.starts_with(kReservedPrefix)) [[likely]] {
      send_one(*command, key);
      worker_.counters().add(Counter::requests);
      return Outcome::done;
    }
  }
  if (command->handling == Handling::local) return dispatch_local(*command);
  if (!command->arity_fits(parser_.argument_count())) [[unlikely]] {
    worker_.counters().add(Counter::requests);
    refuse_arity(*command);
    return Outcome::done;
  }
  Outcome outcome = Outcome::done;
  switch (command->handling) {
    case Handling::routed:
      dispatch_routed(*command);
      break;
    case Handling::split_mget:
    case Handling::split_mset:
    case Handling::split_count:
      dispatch_split(*command);
      break;
    case Handling::transaction:
      outcome = dispatch_transaction(*command);
      break;
    case Handling::blocking:
      outcome = dispatch_blocking(*command);
      break;
    case Handling::fan_out:
      outcome = dispatch_fan_out(*command);
      break;
    case Handling::names_database:
      if (const std::string error = named_database_error(*this, *command, parser_); !error.empty()) {
        refuse(std::string_view(error).substr(0, error.size() - 2));
      } else {
        dispatch_many_keys(*command);
      }
      break;
    case Handling::pubsub:
      outcome = dispatch_pubsub(*command);
      break;
    default:
      refuse(unsupported(*command, why_not_served(*command)));
  }
  if (outcome == Outcome::done) worker_.counters().add(Counter::requests);
  return outcome;
}

void Session::refuse_arity(const Command& command) {
  if (&command != kExec) {
    if (transaction_ != nullptr) transaction_->spoil();
    refuse(wrong_arity(command));
    return;
  }
  // As Redis: an EXEC that is refused ends the transaction all the same.
  if (transaction_ != nullptr) {
    transaction_->drop();
    transaction_.reset();
  }
  refuse("-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command");
}

// Between MULTI and EXEC everything is kept until EXEC, but for what ends that.
bool Session::queued_in_transaction(const Command& command) {
  if (!transaction_->queueing()) return false;
  if (&command == kExec || &command == kDiscard || &command == kMulti || &command == kWatch) return false;
  if (command.local == LocalCommand::quit || command.local == LocalCommand::reset) return false;
  worker_.counters().add(Counter::requests);
  if (!command.arity_fits(parser_.argument_count())) {
    transaction_->spoil();
    refuse(wrong_arity(command));
  } else {
    const std::string answer = transaction_->queue(command, parser_);
    if (answer.starts_with('-')) worker_.counters().add(Counter::errors_refused);
    answer_now(answer);
  }
  return true;
}

// WATCH goes by a connection of its own, so what is before and what is behind it has to wait; and so for all
// that ends a watch.
Session::Outcome Session::dispatch_transaction(const Command& command) {
  const bool queueing = transaction_ != nullptr && transaction_->queueing();
  const bool watching = transaction_ != nullptr && transaction_->watching();
  if ((&command == kWatch || watching) && in_flight() > 0) return Outcome::not_now;
  if (&command == kWatch && queueing) {
    refuse("-ERR WATCH inside MULTI is not allowed");
  } else if (&command == kMulti && queueing) {
    refuse("-ERR MULTI calls can not be nested");
  } else if (&command == kExec && !queueing) {
    refuse("-ERR EXEC without MULTI");
  } else if (&command == kDiscard && !queueing) {
    refuse("-ERR DISCARD without MULTI");
  } else {
    if (transaction_ == nullptr) transaction_ = std::make_unique<Transaction>(*this);
    if (&command == kMulti) {
      transaction_->begin();
      answer_now("+OK\r\n");
    } else if (&command == kExec) {
      transaction_->exec();
    } else if (&command == kDiscard) {
      transaction_->discard();
    } else if (&command == kUnwatch) {
      transaction_->unwatch();
    } else {
      transaction_->watch(command, parser_);
    }
  }
  if (transaction_ != nullptr && transaction_->idle()) transaction_.reset();
  return Outcome::done;
}

void Session::send_block(const Destination& where, std::string_view bytes, std::size_t count,
                         std::vector<std::string> keys, backend::Traffic traffic) {
  const std::uint64_t tag = take_number();
  if (where.settled) {
    where.upstream->pool().at(where.member, resp_).send_block(bytes, count, *this, tag, traffic);
    return;
  }
  where.upstream->dual().submit_multi({.bytes = std::string(bytes),
                                       .count = count,
                                       .keys = std::move(keys),
                                       .member = where.upstream->snapshot().members()[where.member].id,
                                       .traffic = traffic,
                                       .resp = resp_,
                                       .sink = this,
                                       .tag = tag});
}

Session::Outcome Session::dispatch_blocking(const Command& command) {
  if (!protocol::resp::blocks(command, parser_).may_wait) {
    dispatch_routed(command);
    return Outcome::done;
  }
  if (in_flight() > 0) return Outcome::not_now;
  CommandKeys located = locate_keys(*reach_, command, parser_);
  if (!located.error.empty()) {
    refuse(located.error);
    return Outcome::done;
  }
  if (located.keys.empty()) {  // It is malformed, so it does not wait.
    send_block(any_member(*reach_), parser_.raw(), 1, {}, command.traffic);
    return Outcome::done;
  }
  const std::uint64_t number = take_alone();
  blocked_ = true;
  auto owned = std::make_unique<Blocked>(*this, number, std::move(located), command, parser_);
  Blocked& blocked = *owned;
  slot(number).task = std::move(owned);
  blocked.start();
  return Outcome::done;
}

Session::Outcome Session::dispatch_fan_out(const Command& command) {
  using protocol::resp::FanOut;
  switch (command.fan_out) {
    case FanOut::any:
      send_block(any_member(*reach_), parser_.raw(), 1, {}, backend::Traffic::other);
      return Outcome::done;
    case FanOut::scan:
      ScanStep::run(*this, parser_);
      return Outcome::done;
    case FanOut::random:
      RandomKey::run(*this);
      return Outcome::done;
    case FanOut::any_ok:
      KillScript::run(*this, parser_);
      return Outcome::done;
    case FanOut::wait:
      if (in_flight() > 0) return Outcome::not_now;
      WaitAll::run(*this, parser_);
      return Outcome::done;
    case FanOut::flush:
      if (const std::string_view why = why_no_flush(); !why.empty()) {
        refuse(why);
        return Outcome::done;
      }
      break;
    default:
      break;
  }
  const std::uint64_t number = take_number();
  auto owned = std::make_unique<proxy::FanOut>(*this, number, command.fan_out);
  proxy::FanOut& fan_out = *owned;
  slot(number).task = std::move(owned);
  fan_out.start(member_command(command, parser_));
  return Outcome::done;
}

std::string_view Session::why_no_flush() const {
  if (!worker_.options().allow_flush) {
    return "-ERR FLUSHALL and FLUSHDB are disabled here: start the proxy with --allow-flush";
  }
  if (parser_.argument_count() > 2 ||
      (parser_.argument_count() == 2 && !equals_ignoring_case(parser_.argument(1), "async") &&
       !equals_ignoring_case(parser_.argument(1), "sync"))) {
    return "-ERR syntax error";
  }
  for (const Upstream* upstream : reach_->upstreams()) {
    if (upstream->snapshot().topology().resize) {
      return "-TRYAGAIN a resize is under way: let it finish or roll it back, then flush";
    }
  }
  return {};
}

void Session::refuse_unknown() {
  worker_.counters().add(Counter::requests);
  if (transaction_ != nullptr) transaction_->spoil();
  const std::string_view name = parser_.argument(0);
  // A web page that makes a browser talk to us begins with "POST /" or soon has a line "Host: ...".
  if (equals_ignoring_case(name, "post") || equals_ignoring_case(name, "host:")) {
    thread_local base::Seldom seldom;
    if (const auto tail = seldom.ask(worker_.loop().now(), kStrangerLogged)) {
      base::log(base::LogLevel::warning, "proxy: disconnected client {} ({}): it speaks HTTP, not RESP{}",
                id_, stream_->peer(), *tail);
    }
    worker_.counters().add(Counter::errors_protocol);
    closing_ = true;
    mark();  // There may be no answer to write that would lead to the end.
    return;
  }
  refuse(unknown_command(parser_));
}

const Command* Session::subcommand(const Command& container) {
  if (parser_.argument_count() < 2) {
    worker_.counters().add(Counter::requests);
    if (transaction_ != nullptr) transaction_->spoil();
    refuse(wrong_arity(container));
    return nullptr;
  }
  const Command* found = protocol::resp::find_subcommand(container, parser_.argument(1));
  if (found == nullptr) {
    worker_.counters().add(Counter::requests);
    if (transaction_ != nullptr) transaction_->spoil();
    refuse(unknown_subcommand(container.name, parser_.argument(1)));
  }
  return found;
}

void Session::dispatch_routed(const Command& command) {
  if (!command.has_one_key(parser_.argument_count())) [[unlikely]] {
    dispatch_many_keys(command);
    return;
  }
  const std::string_view key = parser_.argument(static_cast<std::size_t>(command.first_key));
  if (key.starts_with(kReservedPrefix)) [[unlikely]] {
    refuse(kReservedKey);
    return;
  }
  send_one(command, key);
}

// Any number of keys, anywhere: they must be on one member.
void Session::dispatch_many_keys(const Command& command) {
  CommandKeys located = locate_keys(*reach_, command, parser_);
  if (!located.error.empty()) {
    refuse(located.error);
    return;
  }
  // It touches no key, or is an error that any member knows.
  if (located.keys.empty()) located.where = any_member(*reach_);
  if (&command == kEvalsha || &command == kEvalshaRo) {
    ScriptCall::run(*this, parser_, std::move(located));
    return;
  }
  if (&command == kEval || &command == kEvalRo) worker_.scripts().remember(parser_.argument(1), false);
  send_block(located.where, parser_.raw(), 1, std::move(located.keys), command.traffic);
}

// The whole command, which names this one key.
void Session::send_one(const Command& command, std::string_view key) {
  Upstream* upstream = reach_->upstream_of(key);
  if (upstream == nullptr) [[unlikely]] {
    refuse(kNoRoute);
    return;
  }
  const topology::Route route = upstream->snapshot().route(key);
  const std::uint64_t tag = take_number();
  if (route.state != topology::KeyState::settled || upstream->dual().busy()) [[unlikely]] {
    if (between_members(*upstream, route, key)) {
      submit(upstream->dual(), command, key, {parser_.raw(), resp_, this, tag});
      return;
    }
  }
  upstream->pool().at(route.member, resp_).send(parser_.raw(), *this, tag, command.traffic);
}

bool Session::between_members(Upstream& upstream, const topology::Route& route, std::string_view key) {
  if (!upstream.dual().busy()) return route.state != topology::KeyState::settled;
  upstream.dual().note(key);
  return route.state != topology::KeyState::settled || upstream.dual().pending(key);
}

void Session::dispatch_split(const Command& command) {
  const std::size_t count = parser_.argument_count();
  const auto step = static_cast<std::size_t>(command.key_step);
  if ((count - 1) % step != 0) {
    refuse(wrong_arity(command));
    return;
  }
  SplitScratch& scratch = worker_.split_scratch();
  scratch.begin();
  std::vector<std::uint32_t> part_of_key;
  part_of_key.reserve((count - 1) / step);
  // In blocks of one cluster's keys, whose look-ups overlap.
  std::array<std::string_view, kRoutedAtOnce> keys;
  std::array<topology::Route, kRoutedAtOnce> routes;
  for (std::size_t next = 1; next < count;) {
    Upstream* const upstream = reach_->upstream_of(parser_.argument(next));
    if (upstream == nullptr) {
      refuse(kNoRoute);
      return;
    }
    std::size_t block = 0;
    for (std::size_t i = next; i < count && block < keys.size(); i += step) {
      const std::string_view key = parser_.argument(i);
      if (key.starts_with(kReservedPrefix)) {
        refuse(kReservedKey);
        return;
      }
      if (reach_->upstream_of(key) != upstream) break;
      keys[block++] = key;
    }
    upstream->snapshot().route_many(std::span(keys).first(block), std::span(routes).first(block));
    for (std::size_t k = 0; k < block; ++k, next += step) {
      const std::uint32_t part = between_members(*upstream, routes[k], keys[k])
                                     ? scratch.lone_part(*upstream, next)
                                     : scratch.part_of(*upstream, routes[k].member);
      part_of_key.push_back(part);
      for (std::size_t j = next; j < next + step; ++j) scratch.add_argument(part, parser_.argument(j));
    }
  }
  if (scratch.size() == 1) {  // All on one member: as it came.
    send_one(command, parser_.argument(1));
    return;
  }
  send_parts(command, std::move(part_of_key));
}

void Session::send_parts(const Command& command, std::vector<std::uint32_t> part_of_key) {
  SplitScratch& scratch = worker_.split_scratch();
  const std::uint64_t number = take_number();
  auto owned = std::make_unique<Split>(*this, number, command, resp_);
  Split& split = *owned;
  slot(number).task = std::move(owned);
  split.expect(scratch.size(), std::move(part_of_key));
  for (std::uint32_t part = 0; part < scratch.size(); ++part) {
    const std::string_view bytes = scratch.command(part, command.name);
    if (scratch[part].member != topology::kNoMember) {
      scratch[part]
          .upstream->pool()
          .at(scratch[part].member, resp_)
          .send(bytes, split, part, command.traffic);
      continue;
    }
    scratch[part].upstream->dual().submit({.bytes = std::string(bytes),
                                           .key = std::string(parser_.argument(scratch[part].key)),
                                           .access = access_of(command),
                                           .traffic = command.traffic,
                                           .resp = resp_,
                                           .sink = &split,
                                           .tag = part});
  }
}

Session::Outcome Session::dispatch_local(const Command& command) {
  // What changes the protocol or the database of later commands waits until the earlier ones are answered:
  // each has connections of its own to the members, between which there is no order.
  const bool changes_connections = command.local == LocalCommand::hello ||
                                   command.local == LocalCommand::reset ||
                                   command.local == LocalCommand::select;
  if (changes_connections && in_flight() > 0) return Outcome::not_now;
  if (command.local == LocalCommand::reset) {
    muted_ = no_evict_ = false;
    subscriber_.reset();
    numbered_ = needs_numbers();
    (void)select_database(0);
    if (transaction_ != nullptr) transaction_->drop();
    transaction_.reset();
  }
  if (&command == kReply) return dispatch_reply(command);
  worker_.counters().add(Counter::requests);
  if (!command.arity_fits(parser_.argument_count())) {
    refuse(wrong_arity(command));
    return Outcome::done;
  }
  if (!served(command)) {
    refuse(unsupported(command, why_not_served(command)));
    return Outcome::done;
  }
  const std::string answer = answer_local(*this, parser_, command);
  if (answer.empty()) return Outcome::done;  // Every worker is asked.
  if (answer.starts_with('-')) {
    worker_.counters().add(Counter::errors_refused);
    worker_.admin().count_error(answer);
  }
  answer_now(answer);
  if (command.local == LocalCommand::quit) {
    closing_ = true;
    subscriber_.reset();
  }
  return Outcome::done;
}

}  // namespace ringshift::proxy
