// Commands on several keys, some of which are between two members (RESIZE.md, "Commands").
//
//   locks in front everywhere -> no key in HOLD -> one owner -> every key in DUAL pulled -> send, unlock
//
// Each advance() begins at the beginning, under the snapshot of that moment: so a step that passes only makes
// it begin again. It sends in the same turn in which all conditions hold, so nothing passes in between
// (RESIZE.md, I3). The pulls run at the same time, each with claim and seal of its own: no claim is held
// while another is waited for.
#include <algorithm>
#include <utility>

#include "proxy/dual_router_impl.h"
#include "proxy/replies.h"
#include "transfer/faults.h"

namespace ringshift::proxy {

using backend::Failure;
using topology::KeyState;
using topology::kNoMember;
using topology::MemberIndex;
using topology::Route;

void DualRouter::submit_multi(MultiCommand command) {
  auto operation = std::make_unique<MultiOperation>();
  operation->command = std::move(command);
  impl_->submit(std::move(operation));
}

void DualRouter::pull(std::vector<std::string> keys, std::function<void(const Pulled&)> done) {
  auto operation = std::make_unique<MultiOperation>();
  operation->command.keys = std::move(keys);
  operation->pulled = std::move(done);
  impl_->submit(std::move(operation));
}

void DualRouter::Impl::submit(std::unique_ptr<MultiOperation> submitted) {
  MultiOperation& operation = *submitted;
  operation.id = ++last_multi;
  multis.emplace(operation.id, std::move(submitted));
  std::vector<std::string>& names = operation.command.keys;
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  operation.bytes = operation.command.bytes.size();
  for (const std::string& name : names) operation.bytes += name.size();
  operation.deadline = loop.now() + options.request_timeout;
  waiting_bytes += operation.bytes;
  if (waiting_bytes > options.max_waiting_bytes) {
    end(operation, {"", Failure::Kind::overloaded, "", "too much waits for keys that are being moved"});
    return;
  }
  operation.keys.reserve(names.size());
  for (const std::string& name : names) {
    KeyQueue& queue = keys.try_emplace(name, name).first->second;
    PendingCommand lock{.command = {}, .deadline = {}};
    lock.multi = &operation;
    lock.multi_key = static_cast<std::uint32_t>(operation.keys.size());
    queue.waiting.push_back(std::move(lock));
    operation.keys.push_back({&queue});
  }
  note_busy();
  schedule(operation);
}

// In a turn of its own: no sink and no `pulled` is called from inside submit() or pump(), and no queue is
// changed under the hands of whoever works on it.
void DualRouter::Impl::schedule(MultiOperation& operation) {
  if (std::exchange(operation.scheduled, true)) return;
  loop.post([this, id = operation.id] {
    const auto found = multis.find(id);
    if (found == multis.end()) return;
    found->second->scheduled = false;
    advance(*found->second);
  });
}

void DualRouter::Impl::advance(MultiOperation& operation) {
  const bool turn = has_its_turn(operation);
  if (operation.outcome) {
    const bool pulling = std::ranges::any_of(operation.keys, [&](const MultiOperation::Key& key) {
      return key.queue->pull != nullptr && key.queue->waiting.front().multi == &operation;
    });
    if (!pulling) finish(operation, kNoMember);
    return;
  }
  const bool held = std::ranges::any_of(operation.keys, [&](const MultiOperation::Key& key) {
    return snapshot->route(key.queue->name).state == KeyState::hold;
  });
  if (held) return park(operation);
  if (!turn) return;  // Who is in front of a lock pumps its queue when done, and so comes back here.
  if (operation.parked) {
    unpark(operation);
    operation.deadline = loop.now() + options.request_timeout;
  }
  const MemberIndex member = common_owner(operation);
  if (operation.outcome) return finish(operation, kNoMember);
  if (all_pulled(operation)) finish(operation, member);
}

// All locks are in front, and what was in front of them has ended.
bool DualRouter::Impl::has_its_turn(MultiOperation& operation) {
  return std::ranges::all_of(operation.keys, [&](const MultiOperation::Key& key) {
    return key.queue->waiting.front().multi == &operation && key.queue->reads == 0;
  });
}

// Or an outcome, when there is none.
MemberIndex DualRouter::Impl::common_owner(MultiOperation& operation) {
  if (operation.keys.empty()) {
    const MemberIndex member = snapshot->index_of(operation.command.member);
    if (member == kNoMember) {
      operation.outcome = {{"", Failure::Kind::unsent, operation.command.member, "it left the cluster"}};
    }
    return member;
  }
  const MemberIndex member = snapshot->route(operation.keys.front().queue->name).member;
  for (const MultiOperation::Key& key : operation.keys) {
    if (snapshot->route(key.queue->name).member == member) continue;
    operation.outcome = {{std::string(kCrossSlot), {}, "", ""}};
    return kNoMember;
  }
  return member;
}

// If not, starts pulls, as many as the bound allows; each comes back here by way of pump().
bool DualRouter::Impl::all_pulled(MultiOperation& operation) {
  const topology::Fence& fence = snapshot->topology().fence;
  if (operation.step != fence.step ||
      operation.epoch != fence.epoch) {  // Nothing of an earlier step counts (I6).
    operation.step = fence.step;
    operation.epoch = fence.epoch;
    for (MultiOperation::Key& key : operation.keys) key.pulled = false;
  }
  std::size_t pulling = 0;
  for (const MultiOperation::Key& key : operation.keys) pulling += key.queue->pull != nullptr;
  for (MultiOperation::Key& key : operation.keys) {
    KeyQueue& queue = *key.queue;
    if (key.pulled || queue.pull != nullptr || is_known(queue.name)) continue;
    if (snapshot->route(queue.name).state != KeyState::dual) continue;
    if (transfer::broken(transfer::Fault::write_without_pull)) continue;
    if (pulling == MultiOperation::kMaxPullsAtOnce) return false;
    ++pulling;
    auto pull = std::make_unique<PullOperation>(*this, queue);
    PullOperation* const started = queue.pull = pull.get();
    operations.emplace(started, std::move(pull));
    started->start();
  }
  return pulling == 0;
}

void DualRouter::Impl::park(MultiOperation& operation) {
  if (!operation.parked && !operation.outcome) {
    operation.parked = true;
    operation.deadline = loop.now() + options.hold_timeout;
    parked_bytes += operation.bytes;
    arm_sweep();
  }
  if (parked_bytes <= options.max_parked_bytes) return;
  end(operation, {"", Failure::Kind::overloaded, "", std::string(kTooMuchParked)});
}

void DualRouter::Impl::unpark(MultiOperation& operation) {
  if (std::exchange(operation.parked, false)) parked_bytes -= operation.bytes;
}

void DualRouter::Impl::end(MultiOperation& operation, MultiOperation::Outcome outcome) {
  if (operation.outcome) return;
  unpark(operation);
  operation.outcome = std::move(outcome);
  schedule(operation);
}

// Sends it to `member`, or tells its outcome; then its keys belong to whoever is next.
void DualRouter::Impl::finish(MultiOperation& finished, MemberIndex member) {
  const std::unique_ptr<MultiOperation> operation = std::move(multis.extract(finished.id).mapped());
  MultiCommand& command = operation->command;
  const bool to_send = !operation->outcome && !operation->pulled;
  if (to_send && command.count == 1)
    pool.at(member, command.resp).send(command.bytes, *command.sink, command.tag, command.traffic);
  if (to_send && command.count > 1) {
    pool.at(member, command.resp)
        .send_block(command.bytes, command.count, *command.sink, command.tag, command.traffic);
  }
  unpark(*operation);
  waiting_bytes -= operation->bytes;
  for (const MultiOperation::Key& key : operation->keys) {
    auto& waiting = key.queue->waiting;
    waiting.erase(std::ranges::find(waiting, operation.get(), &PendingCommand::multi));
  }
  for (const MultiOperation::Key& key : operation->keys) pump(*key.queue);
  if (to_send) return;
  // Last, for it may submit again, and so end queues.
  Pulled pulled{.member = member, .epoch = snapshot->topology().fence.epoch, .step = step(), .error = ""};
  if (operation->outcome) {
    const MultiOperation::Outcome& outcome = *operation->outcome;
    const Failure failure{outcome.kind, outcome.member, outcome.reason};
    if (!operation->pulled && outcome.reply.empty()) return command.sink->on_failure(command.tag, failure);
    if (!operation->pulled) return command.sink->on_reply(command.tag, outcome.reply);
    pulled.error = outcome.reply.empty() ? failure_reply(failure) : outcome.reply;
  }
  operation->pulled(pulled);
}

}  // namespace ringshift::proxy
