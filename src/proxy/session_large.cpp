// A session's part in commands and answers that are passed on in pieces: see upload.h and large_answer.h.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/log.h"
#include "protocol/resp/command_tail.h"
#include "proxy/large_answer.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upload.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::Command;
using protocol::resp::CommandParser;
using protocol::resp::CommandTail;
using protocol::resp::Handling;
using telemetry::Counter;

namespace {

// For answers whose client has gone.
class Drop final : public backend::PieceTaker {
 public:
  bool on_piece(std::string_view, bool) override { return true; }
  void hurry() override {}
  void on_broken(const backend::Failure&) override {}
  void on_gone() override {}
  static Drop& instance() noexcept {
    static Drop drop;  // Has no state.
    return drop;
  }
};

// Whether what is there tells all that must be known before the rest may pass by unread.
bool can_pass(const Command& command, const CommandParser::UnderWay& so_far, bool guarded) {
  if (command.handling != Handling::routed || command.is_subcommand() || command.first_key <= 0) return false;
  if (!command.arity_fits(so_far.arguments) || command.key_use == protocol::resp::KeyUse::none) return false;
  if (!command.has_one_key(so_far.arguments)) return false;
  if (so_far.complete <= static_cast<std::size_t>(command.first_key)) return false;
  // What a user may do can depend on any argument but a last one that is a value: SET ... GET reads.
  return !guarded || (so_far.body_left != 0 && so_far.complete + 1 == so_far.arguments);
}

}  // namespace

// --- commands --------------------------------------------------------------------------------------------

// `bytes` begin with a command that is large already, or will be. `more`: it goes on being gathered.
Session::Large Session::meet_large(std::string_view bytes) {
  if (parser_.under_way().complete == 0) return Large::more;
  const Large outcome = look_at_large(bytes);
  if (outcome == Large::taken) {
    parser_.leave();
  } else {
    parser_.hide();
  }
  return outcome;
}

Session::Large Session::look_at_large(std::string_view bytes) {
  const CommandParser::UnderWay so_far = parser_.under_way();
  parser_.show(bytes);
  const Command* command = protocol::resp::find_command(parser_.argument(0));
  const bool passes = command != nullptr && transaction_ == nullptr && subscriber_ == nullptr &&
                      can_pass(*command, so_far, guarded_);
  if (!passes) {
    const std::size_t limit = worker_.options().max_member_queue_bytes;
    if (parser_.command_bytes() <= limit) return Large::more;
    worker_.counters().add(Counter::requests);
    if (transaction_ != nullptr) transaction_->spoil();
    refuse(fmt::format(
        "-ERR a command of {} bytes or more that cannot be passed on in parts; the limit for those "
        "is {} bytes (member_queue_bytes of the proxy's file)",
        parser_.command_bytes(), limit));
    begin_upload(so_far).skip("");
    return Large::taken;
  }
  if (in_flight() > 0) return Large::not_now;
  last_command_ = command;
  if (guarded_ && !admitted(*command)) {
    begin_upload(so_far).skip("");
    return Large::taken;
  }
  if (worker_.admin().look_due() && !look_closer(*command)) {
    was_admitted_ = guarded_;
    return Large::not_now;
  }
  worker_.counters().add(Counter::requests);
  const std::string key(parser_.argument(static_cast<std::size_t>(command->first_key)));
  Upstream* const upstream = reach_->upstream_of(key);
  if (key.starts_with(kReservedPrefix) || upstream == nullptr) {
    refuse(upstream == nullptr ? kNoRoute : kReservedKey);
    begin_upload(so_far).skip("");
    return Large::taken;
  }
  begin_upload(so_far).start(*upstream, key, bytes.substr(0, so_far.head), command->traffic);
  return Large::taken;
}

Upload& Session::begin_upload(const CommandParser::UnderWay& so_far) {
  const std::uint64_t number = take_alone();
  auto owned = std::make_unique<Upload>(*this, number, CommandTail(so_far));
  upload_ = owned.get();
  slot(number).task = std::move(owned);
  return *upload_;
}

// What came, for the command in pieces; how much of it is done with. Afterwards upload_ is null when that
// command was all there.
std::size_t Session::feed_upload(std::string_view bytes) {
  const std::size_t used = upload_->take(bytes);
  if (upload_ != nullptr && upload_->choked()) pause();
  return upload_ == nullptr && closing_ ? bytes.size() : used;
}

bool Session::upload_choked() const noexcept { return upload_ != nullptr && upload_->choked(); }

void Session::upload_malformed() {
  worker_.counters().add(Counter::errors_protocol);
  closing_ = true;
}

void Session::upload_done(std::uint64_t number, std::string_view answer) {
  if (Task* const task = slot(number).task.get(); task == static_cast<Task*>(upload_)) upload_ = nullptr;
  task_done(number, answer);
}

// --- answers ---------------------------------------------------------------------------------------------

backend::PieceTaker* Session::on_large_reply(std::uint64_t tag, std::size_t, backend::LargeReply& from) {
  const std::uint64_t number = tag;
  if (!stream_) {
    complete(number, "");
    return &Drop::instance();
  }
  auto owned = std::make_unique<LargeAnswer>(*this, number, from);
  LargeAnswer& answer = *owned;
  slot(number).task = std::move(owned);
  slot(number).ready = true;
  return &answer;
}

// True while the client keeps pace.
bool Session::pour(std::uint64_t number, std::string_view bytes) {
  if (!stream_) return true;
  if (number != head_) {
    slot(number).answer.append(bytes);
    stored_bytes_ += bytes.size();
    return false;
  }
  put(bytes);
  stream_->flush();  // If it is a short write, on_drained() follows.
  return stream_->queued_bytes() <= LargeAnswer::kWindow;
}

void Session::end_pour(std::uint64_t number) {
  const std::unique_ptr<Task> dies_here = std::move(slot(number).task);
  mark();
  if (number != head_) return;  // Its slot is ready, as any answer's that waits for its turn.
  slot(number).ready = false;
  ++head_;
  if (!late_pushes_.empty()) put_late_pushes();
  if (head_ != tail_ && slot(head_).ready) advance();
}

void Session::break_pour(std::uint64_t number, const backend::Failure& failure) {
  if (!stream_) return end_pour(number);
  if (number == head_) {
    count_failure(failure.kind);
    base::log(base::LogLevel::warning,
              "proxy: disconnected client {} ({}): member {} broke off an answer: {}", id_, stream_->peer(),
              failure.member, failure.reason);
    worker_.counters().add(Counter::clients_cut);
    stored_bytes_ -= late_pushes_.size();  // They would lie in half an answer.
    std::string().swap(late_pushes_);
    end_pour(number);
    kill();
    return;
  }
  const std::unique_ptr<Task> dies_here = std::move(slot(number).task);
  Slot& waiting = slot(number);
  stored_bytes_ -= waiting.answer.size();
  waiting.answer.clear();
  waiting.ready = false;
  on_failure(number, failure);
}

// The oldest answer goes on, if it is one that comes in pieces.
void Session::go_on_pouring() {
  if (!pouring()) return;
  static_cast<LargeAnswer&>(*slot(head_).task).go_on();
}

}  // namespace ringshift::proxy
