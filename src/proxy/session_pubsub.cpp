// A session's part in publish and subscribe.
#include <algorithm>

#include "proxy/pubsub_commands.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/subscriber.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::Command;
using protocol::resp::LocalCommand;

namespace {

struct Verb {
  std::string_view name;
  ChannelKind kind;
  bool subscribe;
};
constexpr Verb kVerbs[] = {
    {"subscribe", ChannelKind::channel, true},  {"unsubscribe", ChannelKind::channel, false},
    {"psubscribe", ChannelKind::pattern, true}, {"punsubscribe", ChannelKind::pattern, false},
    {"ssubscribe", ChannelKind::shard, true},   {"sunsubscribe", ChannelKind::shard, false},
};

const Verb* verb_of(const Command& command) {
  const auto* found = std::ranges::find(kVerbs, command.name, &Verb::name);
  return found == std::end(kVerbs) ? nullptr : found;
}

}  // namespace

Session::Outcome Session::dispatch_pubsub(const Command& command) {
  if (const Verb* verb = verb_of(command); verb != nullptr) {
    if (in_flight() > 0) return Outcome::not_now;
    if (subscriber_ == nullptr) subscriber_ = std::make_unique<Subscriber>(*this);
    if (verb->subscribe) {
      subscriber_->subscribe(verb->kind, parser_);
    } else {
      subscriber_->unsubscribe(verb->kind, parser_);
    }
    return Outcome::done;
  }
  if (command.name.starts_with("pubsub|")) {
    dispatch_pubsub_query(command);
    return Outcome::done;
  }
  const std::string_view channel = parser_.argument(1);
  Upstream* upstream = reach_of_channels().upstream_of(channel);
  if (upstream == nullptr) {
    refuse(kNoRoute);
    return Outcome::done;
  }
  const ChannelKind kind = command.name == "publish" ? ChannelKind::channel : ChannelKind::shard;
  const std::uint64_t number = take_number();
  auto owned = std::make_unique<Publish>(*this, number, *upstream, kind, channel);
  Publish& publish = *owned;
  slot(number).task = std::move(owned);
  upstream->pool()
      .at(publish_member(upstream->snapshot(), channel), resp_)
      .send(parser_.raw(), publish, 0, backend::Traffic::other);
  return Outcome::done;
}

void Session::dispatch_pubsub_query(const Command& command) {
  using What = PubsubQuery::What;
  const bool lists = command.name.ends_with("channels");
  // Too many arguments: any member words that error. No names: nothing to ask.
  if (lists && parser_.argument_count() > 3) {
    return send_block(any_member(*reach_), parser_.raw(), 1, {}, backend::Traffic::other);
  }
  const What what = lists ? What::channels : command.name == "pubsub|numpat" ? What::patterns : What::numbers;
  const ChannelKind kind =
      command.name.starts_with("pubsub|shard") ? ChannelKind::shard : ChannelKind::channel;
  std::vector<std::string> names;
  for (std::size_t i = 2; what == What::numbers && i < parser_.argument_count(); ++i) {
    names.emplace_back(parser_.argument(i));
  }
  const std::uint64_t number = take_number();
  auto owned = std::make_unique<PubsubQuery>(*this, number, what, kind, std::move(names));
  PubsubQuery& query = *owned;
  slot(number).task = std::move(owned);
  query.start(parser_.raw());
}

// In RESP2 a message could not be told from an answer, so a subscribed client may ask for little else.
bool Session::refused_to_subscriber(const Command& command) {
  if (resp_ != backend::Resp::v2 || !subscriber_->active() || verb_of(command) != nullptr ||
      command.local == LocalCommand::ping || command.local == LocalCommand::quit ||
      command.local == LocalCommand::reset || !command.arity_fits(parser_.argument_count())) {
    return false;
  }
  worker_.counters().add(telemetry::Counter::requests);
  refuse("-ERR Can't execute '" + std::string(command.name) +
         "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context");
  return true;
}

bool Session::in_subscriber_mode() const noexcept {
  return subscriber_ != nullptr && resp_ == backend::Resp::v2 && subscriber_->active();
}

std::size_t Session::subscriptions(ChannelKind kind) const noexcept {
  return subscriber_ == nullptr ? 0 : subscriber_->count(kind);
}

bool Session::subscribed() const noexcept { return subscriber_ != nullptr && subscriber_->active(); }

// Beyond its bound nothing is added: the client is disconnected at the end of the wakeup.
void Session::deliver(std::string_view push) {
  if (!stream_ || closing_) return;
  mark();
  if (unread() > output_bound()) return;
  const bool late = pouring();
  const auto add = [this, late](std::string_view bytes) {
    if (late) {
      late_pushes_.append(bytes);
      stored_bytes_ += bytes.size();  // So they count towards the bound.
    } else {
      stream_->append(bytes);
    }
  };
  if (resp_ == backend::Resp::v3) {
    add(push);
  } else {
    add("*");
    add(push.substr(1));
  }
  worker_.counters().add(telemetry::Counter::messages);
}

// The answer that they waited for is whole.
void Session::put_late_pushes() {
  if (stream_) {
    stream_->append(late_pushes_);
    stored_bytes_ -= late_pushes_.size();
  }
  std::string().swap(late_pushes_);
}

std::size_t Session::output_bound() const noexcept {
  const Settings& settings = worker_.shared().settings;
  if (!subscribed()) return settings.cut_output.size();
  // It cannot be kept from receiving more by not reading what it sends.
  if (worker_.shared().output_is_full()) return worker_.options().max_output_bytes;
  return std::min(settings.cut_output.size(), settings.cut_pubsub.size());
}

}  // namespace ringshift::proxy
