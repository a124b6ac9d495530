#include "admin/model.h"

#include <algorithm>

#include "resize/controls.h"

namespace ringshift::admin {
namespace {

Moment moment_now() { return {std::chrono::steady_clock::now(), resize::unix_now()}; }

}  // namespace

Model::Model(coord::Coordinator& coordinator, Options options)
    : options_(std::move(options)), picture_(options_.keys, options_.names) {
  if (options_.ask_members) poll_ = std::make_unique<MemberPoll>(options_.access);
  picture_.connection(false, "not asked yet", moment_now());
  states_.push_back(picture_.build(moment_now()));
  builder_ = std::thread([this] { run(); });
  watch_ = coordinator.watch(options_.keys.prefix, *this);
}

Model::~Model() {
  watch_.reset();
  {
    const std::lock_guard lock(inbox_mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  builder_.join();
}

std::shared_ptr<const State> Model::state() const {
  const std::lock_guard lock(states_mutex_);
  return states_.back();
}

std::optional<std::vector<std::shared_ptr<const State>>> Model::since(std::uint64_t number) const {
  const std::lock_guard lock(states_mutex_);
  std::vector<std::shared_ptr<const State>> out;
  if (states_.front()->number > number + 1) return std::nullopt;
  for (const auto& state : states_) {
    if (state->number > number) out.push_back(state);
  }
  return out;
}

// One value of each key is enough, but for the log and the audit, whose keys are never written twice, and for
// the history, which is likewise. A status that came between is not seen; its marks are those of the one that
// stays.
void Model::on_events(const std::vector<coord::Event>& events) {
  const Moment now = moment_now();
  const std::lock_guard lock(inbox_mutex_);
  for (const coord::Event& event : events)
    inbox_.events.insert_or_assign(event.kv.key, std::pair(event, now));
  inbox_.connection = {true, "", now};
}

void Model::on_resync(const coord::Range& range) {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_ = {};
    inbox_.range.emplace(range, moment_now());
  }
  wake_.notify_all();  // The first state of use.
}

void Model::on_disconnected(const Error& why) {
  const std::lock_guard lock(inbox_mutex_);
  inbox_.connection = {false, why.message, moment_now()};
}

void Model::take_up(Inbox inbox) {
  if (inbox.range) picture_.reset(inbox.range->first, inbox.range->second);
  // In the order of their writing: a history is told from its beginning.
  std::vector<const std::pair<coord::Event, Moment>*> events;
  events.reserve(inbox.events.size());
  for (const auto& [key, event] : inbox.events) events.push_back(&event);
  std::ranges::stable_sort(events, {}, [](const auto* event) { return event->first.kv.mod_revision; });
  for (const auto* event : events) picture_.apply(event->first, event->second);
  const Moment now = moment_now();
  if (inbox.range) disconnected_at_.reset();
  if (inbox.connection) {
    disconnected_at_ = inbox.connection->connected ? std::nullopt : std::optional(now.steady);
    picture_.connection(inbox.connection->connected, std::move(inbox.connection->why), inbox.connection->at);
  } else if (disconnected_at_ && now.steady - *disconnected_at_ > kSilenceOfTheConnected) {
    disconnected_at_.reset();
    picture_.connection(true, "", now);
  }
}

void Model::run() {
  while (true) {
    Inbox inbox;
    {
      std::unique_lock lock(inbox_mutex_);
      wake_.wait_for(lock, kTick, [this] { return stopping_ || inbox_.range.has_value(); });
      if (stopping_) return;
      inbox = std::exchange(inbox_, {});
    }
    take_up(std::move(inbox));
    if (poll_) {
      poll_->set_members(picture_.members_to_ask());
      picture_.set_infos(poll_->infos());
    }
    std::shared_ptr<const State> next = picture_.build(moment_now());
    const std::lock_guard lock(states_mutex_);
    states_.push_back(std::move(next));
    while (states_.size() > kStatesKept) states_.pop_front();
  }
}

}  // namespace ringshift::admin
