#include "proxy/blocked.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "protocol/resp/value.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using backend::Failure;
using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::equals_ignoring_case;

namespace {

constexpr std::string_view kUnblocked = "-UNBLOCKED";

// Where the timeout stands; 0 for XREAD without BLOCK.
std::size_t timeout_index(const Command& command, const std::vector<std::string>& arguments) {
  if (command.name == "blmpop" || command.name == "bzmpop") return 1;
  if (!command.name.starts_with("xread")) return arguments.size() - 1;
  for (std::size_t i = 1; i + 1 < arguments.size(); ++i) {
    if (equals_ignoring_case(arguments[i], "streams")) break;
    if (equals_ignoring_case(arguments[i], "block")) return i + 1;
  }
  return 0;
}

}  // namespace

Blocked::Blocked(Session& session, std::uint64_t number, CommandKeys located, const Command& command,
                 const CommandParser& arguments)
    : session_(session), number_(number), keys_(std::move(located.keys)), traffic_(command.traffic) {
  for (std::size_t i = 0; i < arguments.argument_count(); ++i) arguments_.emplace_back(arguments.argument(i));
  const protocol::resp::Blocks blocks = protocol::resp::blocks(command, arguments);
  timeout_at_ = timeout_index(command, arguments_);
  in_milliseconds_ = command.name.starts_with("xread");
  forever_ = blocks.forever;
  until_ = session.worker().loop().now() + blocks.timeout;
  upstream_ = located.where.upstream;
}

Blocked::~Blocked() = default;

void Blocked::start() {
  std::string_view error;
  const Destination where = locate(error);
  if (!error.empty()) return finish(std::string(error) + "\r\n");
  if (where.settled) return open(where);
  pull_and_open();
}

Destination Blocked::locate(std::string_view& error) const {
  return locate_again(session_.reach(), keys_, error);
}

void Blocked::pull_and_open() {
  pulling_ = true;
  upstream_->dual().pull(keys_, [this](const Pulled& pulled) {
    pulling_ = false;
    if (abandoned_) return finish("");
    if (!pulled.error.empty()) return finish(pulled.error);
    open({upstream_, pulled.member, true});
  });
}

void Blocked::open(const Destination& where) {
  upstream_ = where.upstream;
  moving_ = false;
  connection_ = upstream_->pool().open_private(where.member, session_.resp(), *this);
  connection_->send_untimed(command_for_the_time_left(), *this, 0, traffic_);
  asked_ = true;
  if (!forever_) {
    Worker& worker = session_.worker();
    if (deadline_ == nullptr) deadline_ = worker.loop().timer([this] { overdue(); });
    const base::Duration left = std::max<base::Duration>(until_ - worker.loop().now(), base::Duration(0));
    deadline_->arm(left + worker.options().request_timeout);
  }
  topology_changed();  // Says whether it may be waited past a snapshot.
}

// As it came the first time; asked again, for what is left of its time.
std::string Blocked::command_for_the_time_left() const {
  std::vector<std::string_view> arguments(arguments_.begin(), arguments_.end());
  std::string left;
  if (asked_ && timeout_at_ != 0 && !forever_) {
    const auto rest =
        std::max<base::Duration>(until_ - session_.worker().loop().now(), std::chrono::milliseconds(1));
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(rest).count();
    left = in_milliseconds_ ? std::to_string(ms) : fmt::format("{}.{:03}", ms / 1000, ms % 1000);
    arguments[timeout_at_] = left;
  }
  std::string bytes;
  protocol::resp::append_command(bytes, arguments);
  return bytes;
}

void Blocked::topology_changed() {
  if (connection_ == nullptr || moving_) return;
  std::string_view error;
  const Destination where = locate(error);
  const bool stays = error.empty() && where.upstream == upstream_ && where.settled &&
                     where.upstream->snapshot().members()[where.member].id == connection_->member();
  connection_->set_exempt(stays);
  if (stays) return;
  moving_ = true;
  connection_->unblock(true);
}

bool Blocked::unblock(bool with_error) {
  if (connection_ == nullptr || moving_) return false;
  connection_->unblock(with_error);
  return true;
}

void Blocked::on_reply(std::uint64_t, std::string_view raw) {
  upstream_->pool().give_back(std::move(connection_));
  if (moving_ && raw.starts_with(kUnblocked)) {
    if (abandoned_) return finish("");
    moving_ = false;
    return pull_and_open();
  }
  finish(raw);
}

void Blocked::on_failure(std::uint64_t, const Failure& failure) {
  session_.count_failure(failure.kind);
  finish(failure_reply(failure));
}

// Its command's failure was told before; what is left is a connection that broke with nothing under way.
void Blocked::on_lost(const Failure& failure) { on_failure(0, failure); }

void Blocked::overdue() {
  if (pulling_) return;  // The dual router has deadlines of its own; open() sets ours anew.
  const std::string member = connection_->member();
  on_failure(0, {Failure::Kind::unknown, member, "is silent beyond the command's own timeout"});
}

void Blocked::abandon() {
  abandoned_ = true;
  if (pulling_) return;  // The dual router still knows us; it ends by itself.
  finish("");
}

void Blocked::finish(std::string_view answer) {
  const std::string text(answer);  // It may live in the connection.
  connection_.reset();
  session_.task_done(number_, text);  // Destroys this.
}

}  // namespace ringshift::proxy
