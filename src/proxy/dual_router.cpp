#include "proxy/dual_router.h"

#include "proxy/dual_router_impl.h"
#include "transfer/faults.h"

namespace ringshift::proxy {

using backend::Failure;
using topology::KeyState;
using topology::Route;

namespace {
constexpr std::chrono::milliseconds kSweepInterval{100};
constexpr std::size_t kKnownEntryBytes = 88;  // Of a set's entry beside the name: node, string, bucket.
}  // namespace

DualRouter::Impl::Impl(net::Loop& l, backend::Pool& p, Options o, std::size_t& busy)
    : loop(l), pool(p), options(o), busy_keys(busy), sweep(l.timer([this] { on_sweep(); })) {}
DualRouter::Impl::~Impl() = default;

DualRouter::DualRouter(net::Loop& loop, backend::Pool& pool, Options options)
    : impl_(std::make_unique<Impl>(loop, pool, options, busy_keys_)) {}
DualRouter::~DualRouter() = default;

void DualRouter::adopt(std::shared_ptr<const topology::Snapshot> snapshot) {
  impl_->adopt(std::move(snapshot));
}

void DualRouter::note(std::string_view key) {
  if (impl_->heat) impl_->heat->count(key);
}

bool DualRouter::pending(std::string_view key) const noexcept { return impl_->keys.contains(key); }

void DualRouter::submit(KeyCommand command) {
  Impl& impl = *impl_;
  if (impl.waiting_bytes + command.bytes.size() > impl.options.max_waiting_bytes) {
    return impl.fail_later(command, Failure::Kind::overloaded, "",
                           "too much waits for keys that are being moved");
  }
  auto found = impl.keys.find(command.key);
  if (found == impl.keys.end()) found = impl.keys.try_emplace(command.key, command.key).first;
  KeyQueue& queue = found->second;
  const base::TimePoint deadline = impl.loop.now() + impl.options.request_timeout;
  impl.waiting_bytes += command.bytes.size();
  queue.waiting.push_back({std::move(command), deadline});
  impl.note_busy();
  impl.pump(queue);
}

void DualRouter::Impl::adopt(std::shared_ptr<const topology::Snapshot> next) {
  const bool new_step = snapshot == nullptr || next->topology().fence != snapshot->topology().fence;
  snapshot = std::move(next);
  if (!snapshot->topology().resize || !options.hot_keys) {
    heat.reset();
  } else if (heat) {
    heat->adopt(snapshot);
  } else {
    heat = std::make_unique<HotKeyCounter>(options.hot_keys, snapshot);
  }
  note_busy();
  if (new_step) {  // Nothing pulled in an earlier step counts in this one (I6).
    known = {};    // With its memory.
    known_bytes = 0;
  }
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const auto& [name, queue] : keys) names.push_back(name);
  for (const std::string& name : names) {
    if (const auto found = keys.find(name); found != keys.end()) pump(found->second);
  }
}

void DualRouter::Impl::remember(std::string_view key) {
  const std::size_t size = key.size() + kKnownEntryBytes;
  if (known_bytes + size > options.max_known_bytes) return;  // It is pulled again: slower, never wrong.
  if (known.emplace(key).second) known_bytes += size;
}

std::string DualRouter::Impl::stamp_for(topology::MemberIndex member) const {
  return transfer::open_stamp(snapshot->topology().fence, snapshot->members()[member].id);
}

void DualRouter::Impl::pump(KeyQueue& queue) {
  while (!queue.waiting.empty() && queue.pull == nullptr && pump_front(queue)) {
  }
  drop_if_idle(queue);
}

bool DualRouter::Impl::pump_front(KeyQueue& queue) {
  const Route route = snapshot->route(queue.name);
  if (route.state == KeyState::hold) {
    park(queue);
    return false;
  }
  PendingCommand& front = queue.waiting.front();
  if (front.multi != nullptr) {
    schedule(*front.multi);
    return false;
  }
  if (front.parked) {
    front.parked = false;
    parked_bytes -= front.command.bytes.size();
    front.deadline = loop.now() + options.request_timeout;
  }
  const bool read = front.command.access != KeyAccess::write;
  const bool ask_old = route.state == KeyState::dual && !is_known(queue.name);
  if (queue.reads != 0 && !(read && ask_old)) return false;  // Those reads may yet be sent to NEW.
  if (!ask_old || (!read && transfer::broken(transfer::Fault::write_without_pull))) {
    send_now(route.member, take_front(queue));
    return true;
  }
  if (read) {
    auto operation = std::make_unique<ReadOperation>(*this, queue, take_front(queue));
    ReadOperation* started = operation.get();
    operations.emplace(started, std::move(operation));
    ++queue.reads;
    started->start(route);
    return true;
  }
  auto operation = std::make_unique<PullOperation>(*this, queue);
  queue.pull = operation.get();
  PullOperation* started = operation.get();
  operations.emplace(started, std::move(operation));
  started->start();
  return false;
}

void DualRouter::Impl::park(KeyQueue& queue) {
  for (PendingCommand& pending : queue.waiting) {
    if (pending.multi != nullptr) {
      park(*pending.multi);
      continue;
    }
    if (pending.parked) continue;
    pending.parked = true;
    pending.deadline = loop.now() + options.hold_timeout;
    parked_bytes += pending.command.bytes.size();
  }
  for (std::size_t i = queue.waiting.size(); parked_bytes > options.max_parked_bytes && i-- != 0;) {
    PendingCommand& last = queue.waiting[i];
    if (last.multi != nullptr) {  // Its lock stays until the loop takes it out.
      end(*last.multi, {"", Failure::Kind::overloaded, "", std::string(kTooMuchParked)});
      continue;
    }
    parked_bytes -= last.command.bytes.size();
    waiting_bytes -= last.command.bytes.size();
    fail_later(last.command, Failure::Kind::overloaded, "", std::string(kTooMuchParked));
    queue.waiting.erase(queue.waiting.begin() + static_cast<std::ptrdiff_t>(i));
  }
  arm_sweep();
}

void DualRouter::Impl::send_now(topology::MemberIndex member, PendingCommand pending) {
  KeyCommand& command = pending.command;
  pool.at(member, command.resp).send(command.bytes, *command.sink, command.tag, command.traffic);
}

PendingCommand DualRouter::Impl::take_front(KeyQueue& queue) {
  PendingCommand front = std::move(queue.waiting.front());
  queue.waiting.pop_front();
  waiting_bytes -= front.command.bytes.size();
  return front;
}

void DualRouter::Impl::give_back(KeyQueue& queue, PendingCommand command) {
  waiting_bytes += command.command.bytes.size();
  queue.waiting.push_front(std::move(command));
}

void DualRouter::Impl::fail_later(const KeyCommand& command, Failure::Kind kind, std::string member,
                                  std::string reason) {
  loop.post([sink = command.sink, tag = command.tag, kind, member = std::move(member),
             reason = std::move(reason)] { sink->on_failure(tag, Failure{kind, member, reason}); });
}

void DualRouter::Impl::drop_if_idle(KeyQueue& queue) {
  if (!queue.waiting.empty() || queue.reads != 0 || queue.pull != nullptr) return;
  keys.erase(keys.find(queue.name));
  note_busy();
}

void DualRouter::Impl::arm_sweep() {
  if (sweep_armed) return;
  sweep_armed = true;
  sweep->arm(kSweepInterval);
}

void DualRouter::Impl::on_sweep() {
  sweep_armed = false;
  const base::TimePoint now = loop.now();
  bool parked_left = false;
  for (auto it = keys.begin(); it != keys.end();) {
    KeyQueue& queue = it->second;
    ++it;  // drop_if_idle may erase the entry.
    while (!queue.waiting.empty() && queue.waiting.front().parked && queue.waiting.front().deadline <= now) {
      const PendingCommand expired = take_front(queue);
      parked_bytes -= expired.command.bytes.size();
      fail_later(expired.command, Failure::Kind::unsent, "",
                 "the key waits for a resize step that does not end");
    }
    parked_left |= !queue.waiting.empty() && queue.waiting.front().parked;
    drop_if_idle(queue);
  }
  for (const auto& [id, multi] : multis) {
    if (!multi->parked) continue;
    if (multi->deadline > now) {
      parked_left = true;
      continue;
    }
    end(*multi, {"", Failure::Kind::unsent, "", "its keys wait for a resize step that does not end"});
  }
  if (parked_left) arm_sweep();
}

void Operation::send(topology::MemberIndex member, backend::Resp resp, std::string_view bytes,
                     std::uint64_t tag, backend::Traffic traffic) {
  ++outstanding_;
  router_.pool.at(member, resp).send(bytes, *this, tag, traffic);
}

std::optional<Route> Operation::valid_route() const {
  if (router_.step() != step_ || queue_ == nullptr) return std::nullopt;
  const Route route = router_.snapshot->route(queue_->name);
  if (route.state != KeyState::dual) return std::nullopt;
  return route;
}

void Operation::on_reply(std::uint64_t tag, std::string_view raw) {
  handle_reply(tag, raw);
  --outstanding_;  // Only now: the handler must not bury itself.
  bury_if_done();
}

void Operation::on_failure(std::uint64_t tag, const Failure& failure) {
  handle_failure(tag, failure);
  --outstanding_;
  bury_if_done();
}

void Operation::bury_if_done() {
  if (queue_ == nullptr && outstanding_ == 0 && !waits_for_timer()) router_.operations.erase(this);
}

}  // namespace ringshift::proxy
