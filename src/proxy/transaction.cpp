#include "proxy/transaction.h"

#include <utility>

#include "proxy/databases.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using backend::Failure;
using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::FanOut;
using protocol::resp::Handling;
using protocol::resp::LocalCommand;

namespace {

constexpr std::string_view kMulti = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view kExec = "*1\r\n$4\r\nEXEC\r\n";
constexpr std::string_view kHello2 = "*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n";
constexpr std::string_view kHello3 = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
constexpr std::string_view kUnwatch = "*1\r\n$7\r\nUNWATCH\r\n";

// Whether a member may be sent this inside a block: it acts on its keys alone, or on nothing.
bool fits_in_a_block(const Command& command) {
  switch (command.handling) {
    case Handling::routed:
    case Handling::split_mget:
    case Handling::split_mset:
    case Handling::split_count:
    case Handling::names_database:
    case Handling::blocking:  // Between MULTI and EXEC nothing waits.
      return true;
    case Handling::local:
      return command.local == LocalCommand::ping || command.local == LocalCommand::echo ||
             command.local == LocalCommand::time;
    case Handling::transaction:
      return command.name == "unwatch";
    case Handling::pubsub:
      return command.name.ends_with("publish");  // Its channel is taken for a key.
    case Handling::fan_out:
      return command.fan_out == FanOut::wait;  // Answers at once, with the replicas of its member.
    default:
      return false;
  }
}

std::string_view why_not_in_a_block(const Command& command) {
  switch (command.handling) {
    case Handling::unsupported:
      return command.reason;
    case Handling::local:
      return "between MULTI and EXEC: the proxy answers it, and what is queued goes to a member as one block";
    case Handling::pubsub:
      return "between MULTI and EXEC: subscriptions are kept by the proxy, and what is queued goes to a "
             "member "
             "as one block";
    default:
      return "between MULTI and EXEC: it concerns all members, and what is queued goes to one";
  }
}

}  // namespace

Transaction::Transaction(Session& session) : session_(session) {}
Transaction::~Transaction() = default;

std::string Transaction::queue(const Command& command, const CommandParser& arguments) {
  std::string_view error;
  std::string text;
  CommandKeys located;
  if ((command.flags & protocol::resp::k_no_multi) != 0) {
    error = "-ERR Command not allowed inside a transaction";
  } else if (!fits_in_a_block(command)) {
    text = unsupported(command, why_not_in_a_block(command));
    error = text;
  } else if (block_.size() + arguments.raw().size() > kMaxBlockBytes) {
    text = "-ERR the transaction is longer than " + std::to_string(kMaxBlockBytes) + " bytes";
    error = text;
  } else if (text = named_database_error(session_, command, arguments); !text.empty()) {
    text.resize(text.size() - 2);
    error = text;
  } else {
    located = locate_keys(session_.reach(), command, arguments);
    if (command.name == "publish") {
      located.error = add_key(session_.reach(), arguments.argument(1), located.where);
      located.keys.emplace_back(arguments.argument(1));
    }
    error = located.error;
    if (error.empty() && where_.upstream != nullptr && located.where.upstream != nullptr &&
        !member_is(located.where)) {
      error = kOtherSlot;
    }
  }
  if (!error.empty()) {
    spoil();
    return std::string(error) + "\r\n";
  }
  if (located.where.upstream != nullptr) where_ = located.where;
  for (std::string& key : located.keys) keys_.push_back(std::move(key));
  block_ += arguments.raw();
  ++count_;
  return "+QUEUED\r\n";
}

bool Transaction::member_is(const Destination& where) const {
  return where.upstream == where_.upstream && where.member == where_.member;
}

void Transaction::reset_queue() {
  queueing_ = spoiled_ = false;
  std::string().swap(block_);
  count_ = 0;
  keys_.clear();
  where_ = {};
}

void Transaction::exec() {
  if (spoiled_) return drop_and_refuse("-EXECABORT Transaction discarded because of previous errors.");
  if (watch_broken_) return drop_and_abort();
  if (count_ == 0 && watch_ == nullptr) {
    reset_queue();
    session_.answer_now("*0\r\n");
    return;
  }
  const std::size_t count = count_ + 2;
  std::string block;
  block.reserve(kMulti.size() + block_.size() + kExec.size());
  block.append(kMulti).append(block_).append(kExec);
  if (watch_ != nullptr) return exec_watched(block, count);

  std::string_view error;
  const Destination where = locate_again(session_.reach(), keys_, error);
  std::vector<std::string> keys = std::move(keys_);
  reset_queue();
  if (!error.empty()) {  // The members changed since it was queued.
    session_.refuse(error);
    return;
  }
  session_.send_block(where, block, count, std::move(keys), backend::Traffic::other);
}

// The watch is only good while every key concerned is settled on the watch's member.
void Transaction::exec_watched(const std::string& block, std::size_t count) {
  std::string_view error;
  const Destination where = locate_again(session_.reach(), keys_, error);
  if (!error.empty()) return drop_and_refuse(error);
  if (!keys_.empty()) {
    if (!is_watch_member(where)) return drop_and_refuse(kOtherSlot);
    if (!where.settled) return drop_and_abort();  // A resize step has begun for keys that were not watched.
  }
  reset_queue();
  over_ = true;
  ++awaited_;
  const std::uint64_t number = session_.take_alone();
  if (session_.resp() == watch_resp_) {
    return watch_->send_block(block, count, *this, number, backend::Traffic::other);
  }
  // HELLO came between WATCH and EXEC; it ends no watch.
  watch_switched_ = true;
  const std::string_view hello = session_.resp() == backend::Resp::v3 ? kHello3 : kHello2;
  watch_->send_block(std::string(hello) + block, count + 1, *this, number, backend::Traffic::other);
}

void Transaction::discard() {
  reset_queue();
  unwatch();
}

void Transaction::drop() {
  reset_queue();
  watched_.clear();
  watch_broken_ = false;
  watch_.reset();
}

void Transaction::drop_and_refuse(std::string_view error) {
  drop();
  session_.refuse(error);
}

void Transaction::drop_and_abort() {
  drop();
  session_.answer_now(session_.resp() == backend::Resp::v3 ? "_\r\n" : "*-1\r\n");
}

bool Transaction::is_watch_member(const Destination& where) const {
  return where.upstream == watch_upstream_ &&
         where.upstream->snapshot().members()[where.member].id == watch_member_;
}

// --- WATCH -----------------------------------------------------------------------------------------------

void Transaction::watch(const Command& command, const CommandParser& arguments) {
  CommandKeys located = locate_keys(session_.reach(), command, arguments);
  if (!located.error.empty()) {
    session_.refuse(located.error);
    return;
  }
  if (watch_broken_) {  // EXEC will answer nil, whatever else is watched.
    session_.answer_now("+OK\r\n");
    return;
  }
  Upstream* upstream = located.where.upstream;
  if (watch_ != nullptr && !is_watch_member(located.where)) {
    session_.refuse(kOtherSlot);
    return;
  }
  watch_upstream_ = upstream;
  watched_.insert(watched_.end(), located.keys.begin(), located.keys.end());
  const std::uint64_t number = session_.take_alone();
  std::string bytes(arguments.raw());
  if (located.where.settled) return send_watch(number, located.where, bytes);
  ++awaited_;
  upstream->dual().pull(std::move(located.keys), [this, number, upstream, bytes](const Pulled& pulled) {
    --awaited_;
    if (!pulled.error.empty()) {
      watch_broken_ = true;
      session_.complete(number, pulled.error);
      return;
    }
    send_watch(number, {upstream, pulled.member, true}, bytes);
  });
}

void Transaction::send_watch(std::uint64_t number, const Destination& where, const std::string& bytes) {
  watch_member_ = where.upstream->snapshot().members()[where.member].id;
  if (watch_ == nullptr) {
    watch_resp_ = session_.resp();
    watch_switched_ = false;
    watch_ = where.upstream->pool().open_private(where.member, watch_resp_, *this);
  }
  ++awaited_;
  watch_->send(bytes, *this, number, backend::Traffic::other);
}

void Transaction::unwatch() {
  watched_.clear();
  watch_broken_ = false;
  if (watch_ == nullptr) {
    session_.answer_now("+OK\r\n");
    return;
  }
  over_ = true;
  ++awaited_;
  watch_->send(kUnwatch, *this, session_.take_alone(), backend::Traffic::other);
}

void Transaction::on_reply(std::uint64_t tag, std::string_view raw) {
  const std::string answer(raw);  // It lives in the connection.
  --awaited_;
  settle();
  session_.complete(tag, answer);
}

void Transaction::on_failure(std::uint64_t tag, const Failure& failure) {
  const std::string answer = failure_reply(failure);
  session_.count_failure(failure.kind);
  --awaited_;
  if (!over_) watch_broken_ = true;
  settle();
  session_.complete(tag, answer);
}

void Transaction::settle() {
  if (!over_ || awaited_ != 0) return;
  over_ = false;
  watched_.clear();
  watch_broken_ = false;
  if (watch_ == nullptr) return;
  if (watch_switched_) return watch_.reset();  // Nobody else's: the pool does not know what it speaks.
  watch_upstream_->pool().give_back(std::move(watch_));
}

void Transaction::on_lost(const Failure&) {
  if (!over_) watch_broken_ = true;
  over_ = false;
  watch_.reset();
}

void Transaction::topology_changed() {
  if (watch_ == nullptr || watch_broken_) return;
  Destination where;
  for (const std::string& key : watched_) {
    if (!add_key(session_.reach(), key, where).empty() || !where.settled || !is_watch_member(where)) {
      watch_broken_ = true;
      return;
    }
  }
}

}  // namespace ringshift::proxy
