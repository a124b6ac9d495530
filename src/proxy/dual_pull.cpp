// Pulls a key in DUAL that this worker has not pulled: claim, copy, confirm, seal (RESIZE.md, "Transfer of a
// key"; transfer/steps.h says why it holds). Then comes the write for which it is; a command on several keys
// is only told, and follows when all are there.
#include <algorithm>

#include "proxy/dual_router_impl.h"
#include "transfer/faults.h"

namespace ringshift::proxy {

using backend::Failure;
using backend::Resp;
using protocol::resp::Value;
using topology::Route;
using transfer::Claim;
using transfer::Restore;

namespace {
constexpr std::chrono::microseconds kPauseFirst{300};
constexpr std::chrono::microseconds kPauseMax{5000};
}  // namespace

void PullOperation::start() {
  const auto route = valid_route();
  if (!route) return give_up();
  ++attempt_;
  token_ = router_.tokens.next();  // I9: one token per CLAIM sent.
  payload_.clear();
  claim_.reset();
  present_on_old_ = false;
  was_busy_ = false;
  std::string bytes;
  transfer::append_claim(bytes, queue_->name, router_.stamp_for(route->member), token_);
  step(route->member, bytes, kClaim);
  bytes.clear();
  transfer::append_exists(bytes, queue_->name);
  step(route->source, bytes, kExists);
}

void PullOperation::step(topology::MemberIndex member, std::string_view bytes, Tag kind) {
  send(member, Resp::v2, bytes, attempt_ << kTagBits | kind);
}

void PullOperation::handle_reply(std::uint64_t tag, std::string_view raw) {
  const auto kind = static_cast<Tag>(tag & ((1U << kTagBits) - 1));
  if (kind == kFinal) return final_answered(raw);
  if (tag >> kTagBits != attempt_) return;
  if (kind == kSeal && !final_) return lock_sealed(raw);
  if (kind == kSeal) {
    seal_failed_ = raw.starts_with('-');
    if (!seal_failed_ && valid_route()) router_.remember(final_->command.key);
    return;
  }
  if (queue_ == nullptr || final_) return;
  const auto route = valid_route();
  if (!route) return give_up();
  auto decoded = protocol::resp::decode(raw);
  if (!decoded || !*decoded) return refuse("-ERR a member's answer to a transfer step could not be read\r\n");
  continue_pull(kind, raw, std::move((*decoded)->value), *route);
}

void PullOperation::continue_pull(Tag kind, std::string_view raw, Value reply, const Route& route) {
  switch (kind) {
    case kExists:
      if (reply.type != Value::Type::integer) return refuse(raw);
      if (reply.integer == 0) return seal_and_send(route);  // Absent on OLD: straight to step 5.
      present_on_old_ = true;
      if (claim_) act_on_claim(claim_raw_, route);
      return;
    case kClaim:
      claim_ = transfer::read_claim(reply);
      claim_raw_.assign(raw);
      if (present_on_old_) act_on_claim(raw, route);
      return;
    case kDump: {
      transfer::Dump dump = transfer::read_dump(std::move(reply));
      if (dump.kind == transfer::Dump::Kind::error) return refuse(raw);
      if (dump.kind == transfer::Dump::Kind::absent) return seal_and_send(route);
      payload_ = std::move(dump.payload);
      ttl_ms_ = dump.ttl_ms;
      return send_restore(route);
    }
    case kRestore:
      switch (transfer::read_restore(reply)) {
        case Restore::ok:
          if (telemetry::Counters* counters = router_.options.counters; counters != nullptr) {
            counters->add(telemetry::Counter::keys_pulled);
            counters->add(telemetry::Counter::bytes_pulled, payload_.size());
          }
          return send_unlink(route);
        case Restore::busy:
          was_busy_ = true;
          return send_unlink(route);
        case Restore::stale:
          return start();
        case Restore::gate:
          return retry_after_pause(false);
        case Restore::error:
          return refuse(raw);
      }
      return;
    case kUnlink:
      if (reply.type != Value::Type::integer) return refuse(raw);
      return seal_and_send(route);
    case kSeal:
    case kFinal:
      return;
  }
}

void PullOperation::act_on_claim(std::string_view raw, const Route& route) {
  switch (*claim_) {
    case Claim::claimed:
      return send_dump(route);
    case Claim::busy:
      was_busy_ = true;
      if (transfer::broken(transfer::Fault::exists_on_new_is_enough)) return seal_and_send(route);
      return send_unlink(route);
    case Claim::wait:  // Another's claim.
    case Claim::gate:
      return retry_after_pause(false);  // Our snapshot, or the member's stamp, is late.
    case Claim::error:
      return refuse(std::string(raw));
  }
}

void PullOperation::send_dump(const Route& route) {
  std::string bytes;
  transfer::append_dump(bytes, queue_->name);
  step(route.source, bytes, kDump);
}

void PullOperation::send_restore(const Route& route) {
  std::string bytes;
  transfer::append_restore(bytes, queue_->name, router_.stamp_for(route.member), token_, ttl_ms_, payload_);
  step(route.member, bytes, kRestore);
}

void PullOperation::send_unlink(const Route& route) {
  std::string bytes;
  transfer::append_unlink(bytes, queue_->name);
  step(route.source, bytes, kUnlink);
}

// Step 5 and the client's command on one connection, and so in this order. From here on the command counts
// as sent; the pull is known only when the seal's answer is there.
void PullOperation::seal_and_send(const Route& route) {
  if (lock() != nullptr) {  // The command follows once all its keys are known.
    std::string seal;
    transfer::append_seal(seal, queue_->name, token_);
    return step(route.member, seal, kSeal);
  }
  final_ = router_.take_front(*queue_);
  const KeyCommand& command = final_->command;
  if (!(was_busy_ && (transfer::broken(transfer::Fault::no_seal_after_busy) ||
                      transfer::broken(transfer::Fault::exists_on_new_is_enough)))) {
    std::string seal;
    transfer::append_seal(seal, command.key, token_);
    send(route.member, command.resp, seal, attempt_ << kTagBits | kSeal);
  }
  send(route.member, command.resp, command.bytes, kFinal, command.traffic);
}

void PullOperation::lock_sealed(std::string_view raw) {
  if (queue_ == nullptr) return;
  if (!valid_route()) return give_up();
  if (raw.starts_with('-')) return refuse(raw);
  router_.remember(queue_->name);
  const PendingCommand& front = queue_->waiting.front();
  front.multi->keys[front.multi_key].pulled = true;
  leave_queue();
}

void PullOperation::final_answered(std::string_view raw) {
  backend::ReplySink* sink = final_->command.sink;
  const std::uint64_t tag = final_->command.tag;
  leave_queue();
  if (seal_failed_) {
    sink->on_failure(tag, Failure{Failure::Kind::unknown, "", "the key's transfer could not be completed"});
  } else {
    sink->on_reply(tag, raw);
  }
}

void PullOperation::handle_failure(std::uint64_t tag, const Failure& failure) {
  const auto kind = static_cast<Tag>(tag & ((1U << kTagBits) - 1));
  if (kind == kFinal) {
    backend::ReplySink* sink = final_->command.sink;
    const std::uint64_t client_tag = final_->command.tag;
    leave_queue();
    sink->on_failure(client_tag, failure);
    return;
  }
  if (tag >> kTagBits != attempt_) return;
  if (kind == kSeal && final_) {
    seal_failed_ = true;
    return;
  }
  if (queue_ == nullptr || final_ || timer_armed_) return;
  // A RESTORE of unknown outcome may be sent again with its token; everything else begins anew.
  retry_after_pause(kind == kRestore);
}

void PullOperation::retry_after_pause(bool same_token) {
  ++attempt_;
  PendingCommand& front = queue_->waiting.front();
  MultiOperation* const multi = front.multi;
  if (router_.loop.now() >= (multi != nullptr ? multi->deadline : front.deadline)) {
    const auto route = valid_route();
    std::string member = route ? router_.snapshot->members()[route->member].id : "";
    constexpr std::string_view kReason = "the key could not be moved in time";
    if (multi != nullptr) {
      router_.end(*multi, {"", Failure::Kind::unsent, std::move(member), std::string(kReason)});
      return leave_queue();
    }
    router_.fail_later(front.command, Failure::Kind::unsent, std::move(member), std::string(kReason));
    static_cast<void>(router_.take_front(*queue_));
    return leave_queue();
  }
  if (timer_ == nullptr) timer_ = router_.loop.timer([this] { on_timer(); });
  retry_same_token_ = same_token;
  timer_armed_ = true;
  timer_->arm(std::min<base::Duration>(kPauseMax, kPauseFirst * (1U << std::min(pauses_++, 5U))));
}

void PullOperation::on_timer() {
  timer_armed_ = false;
  if (const auto route = valid_route(); !route) {
    give_up();
  } else if (retry_same_token_) {
    send_restore(*route);
  } else {
    start();
  }
  // Not from inside our own timer: it would destroy what is running.
  burial_posted_ = true;
  router_.loop.post([this] {
    burial_posted_ = false;
    bury_if_done();
  });
}

void PullOperation::refuse(std::string_view raw) {
  if (MultiOperation* const multi = lock(); multi != nullptr) {
    router_.end(*multi, {std::string(raw), {}, "", ""});
    return leave_queue();
  }
  const PendingCommand front = router_.take_front(*queue_);
  const std::string reply(raw);  // `raw` may be ours, or die with the queue.
  leave_queue();
  front.command.sink->on_reply(front.command.tag, reply);
}

void PullOperation::give_up() {
  if (queue_ != nullptr) leave_queue();
}

void PullOperation::leave_queue() {
  KeyQueue& queue = *queue_;
  queue_ = nullptr;
  queue.pull = nullptr;
  router_.pump(queue);
}

}  // namespace ringshift::proxy
