#include "proxy/subscriber.h"

#include <algorithm>
#include <utility>

#include "proxy/pubsub_link.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::CommandParser;

namespace {

constexpr std::chrono::milliseconds kAfterTheMembers{
    500};  // The members' own failures say more, and come first.
constexpr std::string_view kTooMany = "-ERR too many subscriptions\r\n";
constexpr std::string_view kKeyspace = "__:";

// The key that a keyspace event is about; other channels are their own.
std::string_view subject_of(std::string_view channel, std::string_view payload) {
  if (channel.starts_with("__keyevent@")) return payload;
  if (!channel.starts_with("__keyspace@")) return channel;
  const std::size_t at = channel.find(kKeyspace);
  return at == std::string_view::npos ? channel : channel.substr(at + kKeyspace.size());
}

bool is_everywhere(ChannelKind kind, std::string_view name) {
  return kind == ChannelKind::pattern || (kind == ChannelKind::channel && is_keyspace_channel(name));
}

}  // namespace

Subscriber::Subscriber(Session& session) : session_(session) {}
Subscriber::~Subscriber() { abandon(); }

std::size_t Subscriber::total() const noexcept {
  return names_[0].size() + names_[1].size() + names_[2].size();
}

std::int64_t Subscriber::told_count(ChannelKind kind) const noexcept {
  const std::size_t shards = count(ChannelKind::shard);
  return static_cast<std::int64_t>(kind == ChannelKind::shard ? shards : total() - shards);
}

Subscriber::Hubs Subscriber::hubs_of(ChannelKind kind, std::string_view name) const {
  Hubs hubs;
  if (is_everywhere(kind, name)) {
    for (Upstream* upstream : session_.reach_of_channels().upstreams()) hubs.push_back(&upstream->hub());
  } else if (Upstream* upstream = session_.reach_of_channels().upstream_of(name); upstream != nullptr) {
    hubs.push_back(&upstream->hub());
  }
  return hubs;
}

void Subscriber::append_confirmation(std::string& out, ChannelKind kind, bool subscribed,
                                     const std::string* name) const {
  append_header(out, session_.resp() == backend::Resp::v3 ? '>' : '*', 3);
  append_bulk(out, pubsub_verb(kind, subscribed));
  if (name != nullptr) {
    append_bulk(out, *name);
  } else {
    append_null(out, session_.resp());
  }
  append_integer(out, told_count(kind));
}

// --- commands ---------------------------------------------------------------------------------------------

void Subscriber::subscribe(ChannelKind kind, const CommandParser& arguments) {
  operation_ = std::make_unique<Operation>();
  operation_->kind = kind;
  for (std::size_t i = 1; i < arguments.argument_count(); ++i) {
    operation_->asked.emplace_back(arguments.argument(i));
    join(operation_->asked.back());
  }
  wait_or_finish();
}

void Subscriber::join(const std::string& name) {
  Operation& operation = *operation_;
  if (names(operation.kind).contains(name) || operation.joining.contains(name) ||
      operation.errors.contains(name)) {
    return;
  }
  Hubs hubs = hubs_of(operation.kind, name);
  if (hubs.empty()) {
    operation.errors.emplace(name, std::string(kNoRoute) + "\r\n");
  } else if (total() + operation.joining.size() >= kMaxNames || std::ranges::any_of(hubs, &PubsubHub::full)) {
    operation.errors.emplace(name, kTooMany);
  } else {
    for (PubsubHub* hub : hubs) operation.waiting += hub->join(operation.kind, name, *this) ? 0 : 1;
    operation.joining.emplace(name, std::move(hubs));
  }
}

void Subscriber::unsubscribe(ChannelKind kind, const CommandParser& arguments) {
  operation_ = std::make_unique<Operation>();
  Operation& operation = *operation_;
  operation.kind = kind;
  std::vector<std::string> asked;
  for (std::size_t i = 1; i < arguments.argument_count(); ++i) asked.emplace_back(arguments.argument(i));
  const bool all = asked.empty();
  if (all) {
    for (const auto& [name, hubs] : names(kind)) asked.push_back(name);
  }
  if (asked.empty()) append_confirmation(operation.answer, kind, false, nullptr);
  for (const std::string& name : asked) {
    if (auto one = names(kind).extract(name); !one.empty()) {
      Hubs waiting;
      for (PubsubHub* hub : one.mapped()) {
        if (!hub->leave(kind, name, *this, /*tell=*/true)) waiting.push_back(hub);
      }
      operation.waiting += waiting.size();
      if (!waiting.empty()) operation.leaving.emplace(name, std::move(waiting));
    }
    append_confirmation(operation.answer, kind, false, &name);
  }
  wait_or_finish();
}

void Subscriber::wait_or_finish() {
  if (operation_->waiting == 0) return finish();
  operation_->number = session_.take_alone();
  operation_->numbered = true;
  if (timer_ == nullptr) timer_ = session_.worker().loop().timer([this] { time_is_over(); });
  const Options& options = session_.worker().options();
  timer_->arm(options.connect_timeout + options.request_timeout + kAfterTheMembers);
}

void Subscriber::finish() {
  const std::unique_ptr<Operation> operation = std::move(operation_);
  if (timer_ != nullptr) timer_->cancel();
  std::string answer = std::move(operation->answer);
  for (const std::string& name : operation->asked) {
    if (const auto error = operation->errors.find(name); error != operation->errors.end()) {
      session_.worker().counters().add(telemetry::Counter::errors_refused);
      answer += error->second;
      continue;
    }
    if (auto joined = operation->joining.extract(name); !joined.empty()) {
      for (PubsubHub* hub : joined.mapped()) hub->admit(operation->kind, name, *this);
      names(operation->kind).insert(std::move(joined));
    }
    append_confirmation(answer, operation->kind, true, &name);
  }
  for (const auto& [name, hubs] : operation->joining) {  // Those that failed.
    for (PubsubHub* hub : hubs) (void)hub->leave(operation->kind, name, *this, /*tell=*/false);
  }
  for (const auto& [name, hubs] : operation->leaving) {  // Nobody there when the time was over.
    for (PubsubHub* hub : hubs) hub->forget(operation->kind, name, *this);
  }
  if (operation->numbered) {
    session_.complete(operation->number, answer);
  } else {
    session_.answer_now(answer);
  }
}

void Subscriber::time_is_over() {
  if (operation_ == nullptr) return;
  for (const auto& [name, hubs] : operation_->joining) {
    for (const PubsubHub* hub : hubs) {
      const std::string member = hub->unconfirmed(operation_->kind, name);
      if (member.empty()) continue;
      operation_->errors.emplace(
          name, failure_reply({backend::Failure::Kind::unsent, member, "did not confirm the subscription"}));
    }
  }
  finish();
}

void Subscriber::abandon() {
  const std::unique_ptr<Operation> operation = std::move(operation_);
  for (std::size_t i = 0; i < kChannelKinds; ++i) {
    const auto kind = static_cast<ChannelKind>(i);
    const Names all = std::exchange(names_[i], {});
    for (const auto& [name, hubs] : all) {
      for (PubsubHub* hub : hubs) (void)hub->leave(kind, name, *this, /*tell=*/false);
    }
  }
  if (operation == nullptr) return;
  for (const auto& [name, hubs] : operation->joining) {
    for (PubsubHub* hub : hubs) (void)hub->leave(operation->kind, name, *this, /*tell=*/false);
  }
  for (const auto& [name, hubs] : operation->leaving) {
    for (PubsubHub* hub : hubs) hub->forget(operation->kind, name, *this);
  }
  if (timer_ != nullptr) timer_->cancel();
  if (operation->numbered) session_.complete(operation->number, "");
}

// As Redis: whoever may not have a channel any more is disconnected. And so is whoever's routes lead
// elsewhere now.
void Subscriber::rules_adopted() {
  for (std::size_t i = 0; i < kChannelKinds; ++i) {
    if (names_[i].empty()) continue;
    const auto kind = static_cast<ChannelKind>(i);
    std::vector<std::string_view> words = {pubsub_verb(kind, true)};
    bool moved = false;
    for (const auto& [name, hubs] : names_[i]) {
      words.push_back(name);
      moved = moved || hubs_of(kind, name) != hubs;
    }
    const protocol::resp::Command* command = protocol::resp::find_command(words.front());
    if (moved || !session_.refused(*command, std::span<const std::string_view>(words)).empty()) return cut();
  }
}

// --- from a hub -------------------------------------------------------------------------------------------

void Subscriber::deliver(const Upstream& from, ChannelKind kind, std::string_view channel,
                         std::string_view payload, std::string_view push) {
  // What this client could not subscribe to by name, because its routes lead elsewhere, it does not hear of.
  if (kind != ChannelKind::shard && !session_.reach_of_channels().whole() &&
      session_.reach_of_channels().upstream_of(subject_of(channel, payload)) != &from) {
    return;
  }
  session_.deliver(push);
}

void Subscriber::confirmed() {
  if (operation_ != nullptr && --operation_->waiting == 0) finish();
}

void Subscriber::left() { confirmed(); }

void Subscriber::failed(ChannelKind, const std::string& name, const std::string& error, bool was_waiting) {
  if (operation_ == nullptr) return;
  operation_->errors.emplace(name, error);
  if (was_waiting) confirmed();
}

void Subscriber::cut() { session_.kill(); }

}  // namespace ringshift::proxy
