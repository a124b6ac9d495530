// What the administration of the proxy asks of a session: CLIENT PAUSE, KILL, REPLY, UNBLOCK, the bounds of
// what clients do not read, and measured commands.
#include <algorithm>
#include <limits>

#include "proxy/hot_keys.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::Command;
using protocol::resp::equals_ignoring_case;

namespace {

constexpr std::chrono::milliseconds kRestAfter{
    900};  // Of silence. Thousands of idle clients hold no buffers.

// What CLIENT PAUSE WRITE holds up: all that may change a member, or reach other clients.
bool may_change(const Command& command) {
  static constexpr std::string_view kMay[] = {"eval",    "evalsha",     "exec",         "fcall",   "pfcount",
                                              "publish", "script|load", "script|flush", "spublish"};
  return (command.flags & protocol::resp::k_write) != 0 ||
         std::ranges::find(kMay, command.name) != std::end(kMay);
}

}  // namespace

bool Session::look_closer(const Command& command) {
  WorkerAdmin& admin = worker_.admin();
  admin.arm_look();
  if (admin.pause == PauseMode::all || (admin.pause == PauseMode::write && may_change(command))) {
    held_ = true;
    return false;
  }
  if (admin.measuring) {
    if (measure_ == nullptr) measure_ = std::make_unique<Measure>();
    numbered_ = true;
    const bool to_log = worker_.shared().settings.slow_log_ms.get() > 0;
    measure_->begin(tail_, worker_.loop().now(), command, parser_, to_log ? member_asked(command) : "");
  }
  if (!admin.attentive || admin.sample_due()) sample(command);
  return true;
}

// Where the command's first key is now; "" without one.
std::string Session::member_asked(const Command& command) const {
  const auto first = static_cast<std::size_t>(std::max<int>(command.first_key, 0));
  if (command.key_use == protocol::resp::KeyUse::none || first == 0 || first >= parser_.argument_count())
    return {};
  const std::string_view key = parser_.argument(first);
  const Upstream* const upstream = reach_->upstream_of(key);
  if (upstream == nullptr) return {};
  return upstream->snapshot().members()[upstream->snapshot().route(key).member].id;
}

// A client has one sample under way at most. Commands that wait by their nature are none.
void Session::sample(const Command& command) {
  WorkerAdmin& admin = worker_.admin();
  ++admin.samples_taken;
  if (command.key_use != protocol::resp::KeyUse::none && command.first_key > 0) {
    const std::size_t count = parser_.argument_count();
    const auto first = static_cast<std::size_t>(command.first_key);
    const auto step = static_cast<std::size_t>(std::max<int>(command.key_step, 1));
    // Several keys are those up to the last argument: of EVAL's and such, the first.
    const std::size_t most = command.last_key == -1 ? HotKeySampler::kKeysOfOne : 1;
    for (std::size_t i = first, n = 0; i < count && n < most; i += step, ++n) {
      const std::string_view key = parser_.argument(i);
      if (Upstream* const upstream = reach_->upstream_of(key)) upstream->hot_keys().count(key);
    }
  }
  if (sampled_ != kNoNumber || command.handling == protocol::resp::Handling::blocking) return;
  sampled_ = tail_;
  sampled_at_ = worker_.loop().now();
  numbered_ = true;
}

void Session::release() {
  if (!held_) return;
  held_ = false;
  mark();
}

void Session::settle_measure() {
  const base::TimePoint now = worker_.loop().now();
  if (sampled_ < head_) {
    worker_.admin().add_sample(now - sampled_at_);
    sampled_ = kNoNumber;
  }
  if (measure_ != nullptr) {
    measure_->settle(*this, head_, now);
    if (!worker_.admin().measuring && measure_->empty()) measure_.reset();
  }
  numbered_ = needs_numbers();
}

// REQUIRES: nothing is in flight, so that all later answers have later numbers.
Session::Outcome Session::dispatch_reply(const Command& command) {
  if (in_flight() > 0) return Outcome::not_now;
  worker_.counters().add(telemetry::Counter::requests);
  if (parser_.argument_count() != 3) {
    refuse(wrong_arity(command));
    return Outcome::done;
  }
  const std::string_view mode = parser_.argument(2);
  const bool off = muted_ && mute_to_ == std::numeric_limits<std::uint64_t>::max();
  if (equals_ignoring_case(mode, "on")) {
    muted_ = false;
    numbered_ = needs_numbers();
    answer_now("+OK\r\n");
  } else if (equals_ignoring_case(mode, "off") || equals_ignoring_case(mode, "skip")) {
    const bool skip = equals_ignoring_case(mode, "skip");
    if (skip && off) return Outcome::done;
    muted_ = numbered_ = true;
    mute_from_ = tail_;
    mute_to_ = skip ? tail_ + 1 : std::numeric_limits<std::uint64_t>::max();
  } else {
    refuse("-ERR syntax error");
  }
  return Outcome::done;
}

bool Session::silent() noexcept {
  mark();  // Whatever waited for the answer goes on.
  if (head_ < mute_to_) return head_ >= mute_from_;
  muted_ = false;
  numbered_ = needs_numbers();
  return false;
}

void Session::gather(Gather::Finish finish, const Gather::Ask& ask) {
  const std::uint64_t number = take_alone();
  auto owned = std::make_unique<Gather>(*this, number, std::move(finish));
  Gather& task = *owned;
  slot(number).task = std::move(owned);
  task.start(ask);
}

void Session::kill() {
  if (!stream_) return;
  closing_ = true;
  stream_.reset();
  abandon_tasks();
  mark();
}

bool Session::unblock(bool with_error) {
  return blocked_ && in_flight() != 0 && slot(head_).task != nullptr && slot(head_).task->unblock(with_error);
}

void Session::count_unread() {
  worker_.add_unread_output(static_cast<std::int64_t>(unread()) - static_cast<std::int64_t>(counted_unread_));
  counted_unread_ = unread();
}

std::size_t Session::rest() {
  std::size_t kept = slots_.capacity() * sizeof(Slot);
  for (const Slot& slot : slots_) kept += slot.answer.capacity();
  std::vector<Slot>().swap(slots_);
  slot_count_ = 0;
  return kept + parser_.rest() + stream_->rest();
}

std::size_t Session::every_second(base::TimePoint now) {
  if (!stream_ || finished_) return 0;
  const Settings& settings = worker_.shared().settings;
  const std::int64_t timeout = settings.timeout.get();
  if (timeout > 0 && in_flight() == 0 && !subscribed() && !held_ && unread() == 0 &&
      now - last_active_ > std::chrono::seconds(timeout)) {
    kill();
    return 0;
  }
  // It is not read from while it waits, so that it has left must be asked for; else it waits for ever.
  if (paused_ && (held_ || waits()) && stream_->peer_left()) {
    on_end();
    return 0;
  }
  look_whether_stalled(now);
  return stream_ && in_flight() == 0 && now - last_active_ >= kRestAfter ? rest() : 0;
}

void Session::look_whether_stalled(base::TimePoint now) {
  if (!paused_ || unread() <= worker_.options().max_output_bytes) {
    stalled_since_ = base::TimePoint::max();
    if (paused_) resume_if_caught_up();  // What others held may be gone.
    return;
  }
  if (stalled_since_ == base::TimePoint::max() || stream_->written_bytes() != stalled_at_) {
    stalled_at_ = stream_->written_bytes();
    stalled_since_ = now;
  } else if (worker_.shared().output_is_full() &&
             now - stalled_since_ >=
                 std::chrono::seconds(worker_.shared().settings.slow_client_timeout.get())) {
    cut("it reads nothing while the answers for all clients are at their bound");
    mark();
    return;
  }
  resume_if_caught_up();
}

}  // namespace ringshift::proxy
