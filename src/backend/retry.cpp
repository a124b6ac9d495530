// Which commands a shared connection that broke takes along to the next one: reads of which no byte was
// written, once. What they would have read then, they read now, within their own deadline.
//
// Never a write, although nothing of it was executed either: its client hears `unsent` and decides. Never a
// command of which a byte may have left: with TLS that is all that the session was ever given. A step of a
// resize drops what waits here, as all that was routed before it (drop_queue()).
#include <utility>

#include "backend/access.h"
#include "backend/connection.h"
#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"

namespace ringshift::backend {
namespace {

using protocol::resp::Command;
using protocol::resp::CommandParser;

// Whether these are one whole command that changes nothing.
bool only_reads(std::string_view bytes) {
  CommandParser parser;
  if (parser.parse(bytes) != CommandParser::State::command || parser.consumed() != bytes.size()) return false;
  const Command* command = protocol::resp::find_command(parser.argument(0));
  if (command != nullptr && command->handling == protocol::resp::Handling::container) {
    command =
        parser.argument_count() < 2 ? nullptr : protocol::resp::find_subcommand(*command, parser.argument(1));
  }
  return command != nullptr && command->key_use == protocol::resp::KeyUse::read &&
         (command->flags & protocol::resp::k_readonly) != 0;
}

}  // namespace

// The output of which nothing was written, from where it begins in the terms of Pending::end.
Connection::Unwritten Connection::take_unwritten() {
  if (is_private() || retired_) return {};
  if (state_ != State::serving) return {std::exchange(queue_, {}), queue_begin_};
  if (shared_.options.access && shared_.options.access->tls() != nullptr) return {"", written()};
  const std::string& output = stream_->output();
  return {output.substr(output.size() - stream_->queued_bytes()), written()};
}

// Takes those reads out of `failed`, whose place is then at the front of the queue of the next connection.
// REQUIRES: ring_ and queue_ are empty, offsets begin anew.
void Connection::keep_reads(PendingRing& failed, const Unwritten& unwritten) {
  const std::uint64_t sent_again = std::exchange(sent_again_until_, 0);
  if (unwritten.bytes.empty()) return;
  const base::TimePoint now = shared_.loop.now();
  PendingRing others;
  std::uint64_t begin = failed.end_before_front();
  while (!failed.empty()) {
    const Pending pending = failed.pop();
    const std::uint64_t from = std::exchange(begin, pending.end);
    const bool untouched = from >= unwritten.begin && from < pending.end;
    if (untouched && pending.end > sent_again && pending.sent + shared_.options.request_timeout > now) {
      const std::string_view bytes =
          std::string_view(unwritten.bytes).substr(from - unwritten.begin, pending.end - from);
      if (only_reads(bytes)) {
        queue_.append(bytes);
        enqueued_ += bytes.size();
        ring_.push({pending.sink, pending.tag_and_traffic, pending.sent, enqueued_});
        continue;
      }
    }
    others.push(pending);
  }
  failed.swap(others);
  sent_again_until_ = enqueued_;
}

}  // namespace ringshift::backend
