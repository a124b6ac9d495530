// Reads of a key in DUAL that this worker has not pulled (RESIZE.md, "Phases").
//
//   OLD first   GET: a value is the answer. nil proves that OLD will never have the key again, so seal NEW
//               and ask there. Another read: `cmd; EXISTS k`, in this order; 1 makes cmd's reply the answer.
//   NEW first   GET: a value is the answer, for NEW has only what is newest. nil proves nothing: OLD first.
#include "proxy/dual_router_impl.h"
#include "transfer/faults.h"

namespace ringshift::proxy {

using backend::Failure;
using backend::Traffic;
using protocol::resp::Value;
using topology::Route;

namespace {

bool is_nil(std::string_view raw) noexcept { return raw == "$-1\r\n" || raw == "_\r\n"; }

// The client's command counts where its answer comes from: with the question that may turn out not to be it,
// only when it is.
Traffic if_it_is_the_answer(Traffic traffic) noexcept {
  switch (traffic) {
    case Traffic::get:
      return Traffic::get_if_there;
    case Traffic::read:
      return Traffic::read_if_exists;
    case Traffic::mget:
      return Traffic::mget_if_exists;
    default:
      return Traffic::none;
  }
}

}  // namespace

ReadOperation::ReadOperation(DualRouter::Impl& router, KeyQueue& queue, PendingCommand command)
    : Operation(router, queue), command_(std::move(command)) {}

void ReadOperation::start(const Route& route) {
  const auto& resize = router_.snapshot->topology().resize;
  const bool new_first = command_.command.access == KeyAccess::get && resize &&
                         resize->read_order == topology::ReadOrder::new_first;
  if (new_first) {
    send(route.member, command_.command.resp, command_.command.bytes, kNewFirst,
         if_it_is_the_answer(command_.command.traffic));
  } else {
    ask_old(route);
  }
}

void ReadOperation::ask_old(const Route& route) {
  const KeyCommand& command = command_.command;
  const Traffic traffic = if_it_is_the_answer(command.traffic);
  const bool is_get = command.access == KeyAccess::get;
  send(route.source, command.resp, command.bytes, kOld, is_get ? traffic : Traffic::none);
  if (is_get) return;
  std::string exists;
  transfer::append_exists(exists, command.key);
  send(route.source, command.resp, exists, kExists, traffic);
}

void ReadOperation::handle_reply(std::uint64_t tag, std::string_view raw) {
  if (answered_) return;
  switch (tag) {
    case kNewFirst:
      if (!is_nil(raw) || transfer::broken(transfer::Fault::new_first_only)) return answer(raw);
      if (const auto route = valid_route()) return ask_old(*route);
      return absent_on_old();  // The step is over: the command goes back to the queue.
    case kOld:
      return old_answered(raw);
    case kExists:
      return exists_answered(raw);
    case kSeal:
      seal_failed_ = raw.starts_with('-');
      if (!seal_failed_ && valid_route()) router_.remember(command_.command.key);
      return;
    default:
      if (!seal_failed_) return answer(raw);
      answer("-TRYAGAIN the key's transfer could not be completed: the read was not answered\r\n");
  }
}

void ReadOperation::old_answered(std::string_view raw) {
  if (command_.command.access != KeyAccess::get) {
    held_reply_.assign(raw);
    return;
  }
  if (is_nil(raw)) return absent_on_old();
  answer(raw);
}

void ReadOperation::exists_answered(std::string_view raw) {
  if (raw.starts_with(":0")) return absent_on_old();
  if (raw.starts_with(':')) return answer(held_reply_);
  answer(raw);  // An error.
}

// OLD has no copy and gets none: seal, then ask NEW, on one connection and so in this order.
void ReadOperation::absent_on_old() {
  const auto route = valid_route();
  if (!route) {
    KeyQueue& queue = *queue_;
    queue_ = nullptr;
    answered_ = true;
    --queue.reads;
    router_.give_back(queue, std::move(command_));
    router_.pump(queue);
    return;
  }
  const KeyCommand& command = command_.command;
  if (!transfer::broken(transfer::Fault::read_miss_without_seal)) {
    std::string seal;
    transfer::append_seal(seal, command.key, "");
    send(route->member, command.resp, seal, kSeal);
  }
  send(route->member, command.resp, command.bytes, kFinal, command.traffic);
}

void ReadOperation::answer(std::string_view raw) {
  answered_ = true;
  backend::ReplySink* sink = command_.command.sink;
  const std::uint64_t tag = command_.command.tag;
  leave_queue();
  sink->on_reply(tag, raw);
}

void ReadOperation::handle_failure(std::uint64_t tag, const Failure& failure) {
  if (answered_) return;
  if (tag == kSeal) {
    seal_failed_ = true;  // The command behind it fails as well, and tells the client.
    return;
  }
  answered_ = true;
  backend::ReplySink* sink = command_.command.sink;
  const std::uint64_t client_tag = command_.command.tag;
  leave_queue();
  sink->on_failure(client_tag, failure);
}

void ReadOperation::leave_queue() {
  KeyQueue& queue = *queue_;
  queue_ = nullptr;
  --queue.reads;
  router_.pump(queue);
}

}  // namespace ringshift::proxy
