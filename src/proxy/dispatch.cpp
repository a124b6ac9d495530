// What a session does with one command: the policy of the command table, applied.
#include <array>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "proxy/local_commands.h"
#include "proxy/replies.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::Command;
using protocol::resp::equals_ignoring_case;
using protocol::resp::Handling;
using protocol::resp::KeyUse;
using protocol::resp::LocalCommand;
using telemetry::Counter;

constexpr std::string_view kReservedPrefix = "rs:";
constexpr std::size_t kRoutedAtOnce = 32;  // Keys of a split command.

// GET is told from all others by where its entry lies.
const Command* const kGet = protocol::resp::find_command("get");

KeyAccess access_of(const Command& command) {
  if (&command == kGet) return KeyAccess::get;
  return command.key_use == KeyUse::read ? KeyAccess::read : KeyAccess::write;
}

// Why a command that Redis knows is refused.
std::string_view reason(const Command& command) {
  using namespace protocol::resp;
  if (command.name == "auth") return "there are no passwords; remove it from the client's configuration";
  if (command.name == "move" || command.name == "swapdb") return "there is only database 0";
  if ((command.flags & k_pubsub) != 0) return "publish and subscribe need a connection to one server";
  if ((command.flags & k_blocking) != 0) return "blocking commands are not routed";
  if ((command.flags & k_admin) != 0) return "administer the members directly";
  if ((command.flags & k_noscript) != 0 && command.first_key == 0 && command.key_use == KeyUse::none) {
    return "it belongs to one server, not to a cluster";
  }
  if (command.first_key > 0 || (command.flags & k_movablekeys) != 0)
    return "its keys may be on several members";
  return "it names no key to route by";
}

}  // namespace

Session::Outcome Session::dispatch() {
  const Command* command = protocol::resp::find_command(parser_.argument(0));
  if (command == nullptr) [[unlikely]] {
    refuse_unknown();
    return Outcome::done;
  }
  if (command->handling == Handling::container) [[unlikely]] {
    command = subcommand(*command);
    if (command == nullptr) return Outcome::done;  // Refused.
  }
  if (command->handling == Handling::local) return dispatch_local(*command);
  worker_.counters().add(Counter::requests);
  if (!command->arity_fits(parser_.argument_count())) [[unlikely]] {
    refuse(wrong_arity(*command));
    return Outcome::done;
  }
  switch (command->handling) {
    case Handling::routed:
      dispatch_routed(*command);
      break;
    case Handling::split_mget:
    case Handling::split_mset:
    case Handling::split_count:
      dispatch_split(*command);
      break;
    default:
      refuse(unsupported(*command, reason(*command)));
  }
  return Outcome::done;
}

void Session::refuse_unknown() {
  worker_.counters().add(Counter::requests);
  const std::string_view name = parser_.argument(0);
  // A web page that makes a browser talk to us begins with "POST /" or soon has a line "Host: ...".
  if (equals_ignoring_case(name, "post") || equals_ignoring_case(name, "host:")) {
    base::log(base::LogLevel::warning, "proxy: disconnected client {} ({}): it speaks HTTP, not RESP", id_,
              stream_->peer());
    worker_.counters().add(Counter::errors_protocol);
    closing_ = true;
    return;
  }
  refuse(unknown_command(parser_));
}

const Command* Session::subcommand(const Command& container) {
  if (parser_.argument_count() < 2) {
    worker_.counters().add(Counter::requests);
    refuse(wrong_arity(container));
    return nullptr;
  }
  const Command* found = protocol::resp::find_subcommand(container, parser_.argument(1));
  if (found == nullptr) {
    worker_.counters().add(Counter::requests);
    refuse(unknown_subcommand(container.name, parser_.argument(1)));
  }
  return found;
}

void Session::dispatch_routed(const Command& command) {
  if (!command.has_one_key(parser_.argument_count())) [[unlikely]] {
    refuse(unsupported(command, "with several keys, which may be on several members"));
    return;
  }
  const std::string_view key = parser_.argument(static_cast<std::size_t>(command.first_key));
  if (key.starts_with(kReservedPrefix)) [[unlikely]] {
    refuse(kReservedKey);
    return;
  }
  send_one(command, key);
}

// The whole command, which names this one key.
void Session::send_one(const Command& command, std::string_view key) {
  const topology::Route route = worker_.snapshot().route(key);
  const std::uint64_t tag = take_number() * 2 + (&command == kGet ? 1 : 0);
  if (between_members(route, key)) [[unlikely]] {
    worker_.dual().submit({.bytes = std::string(parser_.raw()),
                           .key = std::string(key),
                           .access = access_of(command),
                           .resp = resp_,
                           .sink = this,
                           .tag = tag});
    return;
  }
  worker_.pool().at(route.member, resp_).send(parser_.raw(), *this, tag);
}

bool Session::between_members(const topology::Route& route, std::string_view key) {
  return route.state != topology::KeyState::settled || (worker_.dual().busy() && worker_.dual().pending(key));
}

void Session::dispatch_split(const Command& command) {
  const std::size_t count = parser_.argument_count();
  const auto step = static_cast<std::size_t>(command.key_step);
  if ((count - 1) % step != 0) {
    refuse(wrong_arity(command));
    return;
  }
  SplitScratch& scratch = worker_.split_scratch();
  scratch.begin(worker_.snapshot().members().size());
  std::vector<std::uint32_t> part_of_key;
  part_of_key.reserve((count - 1) / step);
  // In blocks, whose look-ups overlap.
  std::array<std::string_view, kRoutedAtOnce> keys;
  std::array<topology::Route, kRoutedAtOnce> routes;
  for (std::size_t next = 1; next < count;) {
    std::size_t block = 0;
    for (std::size_t i = next; i < count && block < keys.size(); i += step) {
      keys[block] = parser_.argument(i);
      if (keys[block++].starts_with(kReservedPrefix)) {
        refuse(kReservedKey);
        return;
      }
    }
    worker_.snapshot().route_many(std::span(keys).first(block), std::span(routes).first(block));
    for (std::size_t k = 0; k < block; ++k, next += step) {
      const std::uint32_t part =
          between_members(routes[k], keys[k]) ? scratch.lone_part(next) : scratch.part_of(routes[k].member);
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
  slot(number).split = std::make_unique<Split>(*this, number, command, resp_);
  Split& split = *slot(number).split;
  split.expect(scratch.size(), std::move(part_of_key));
  for (std::uint32_t part = 0; part < scratch.size(); ++part) {
    const std::string_view bytes = scratch.command(part, command.name);
    if (scratch[part].member != topology::kNoMember) {
      worker_.pool().at(scratch[part].member, resp_).send(bytes, split, part);
      continue;
    }
    worker_.dual().submit({.bytes = std::string(bytes),
                           .key = std::string(parser_.argument(scratch[part].key)),
                           .access = access_of(command),
                           .resp = resp_,
                           .sink = &split,
                           .tag = part});
  }
}

Session::Outcome Session::dispatch_local(const Command& command) {
  // What changes the protocol of later answers waits until the earlier ones are out: the two protocols have
  // connections of their own to the members, between which there is no order.
  const bool changes_protocol = command.local == LocalCommand::hello || command.local == LocalCommand::reset;
  if (changes_protocol && in_flight() > 0) return Outcome::not_now;
  worker_.counters().add(Counter::requests);
  if (!command.arity_fits(parser_.argument_count())) {
    refuse(wrong_arity(command));
    return Outcome::done;
  }
  const std::string answer = answer_local(*this, parser_, command);
  if (answer.starts_with('-')) worker_.counters().add(Counter::errors_refused);
  answer_now(answer);
  if (command.local == LocalCommand::quit) closing_ = true;
  return Outcome::done;
}

}  // namespace ringshift::proxy
