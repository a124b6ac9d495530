#include "proxy/pubsub_commands.h"

#include <algorithm>
#include <charconv>

#include "protocol/resp/value.h"
#include "proxy/replies.h"
#include "proxy/session.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using protocol::resp::Value;

topology::MemberIndex publish_member(const topology::Snapshot& snapshot, std::string_view channel) {
  const topology::Route route = snapshot.route(channel);
  return route.state == topology::KeyState::hold ? route.source : route.member;
}

void Publish::on_reply(std::uint64_t, std::string_view raw) {
  std::int64_t at_member = 0;
  const char* const end = raw.data() + raw.size() - 2;
  if (raw.starts_with('-')) session_.worker().counters().add(telemetry::Counter::errors_member);
  if (!raw.starts_with(':') || std::from_chars(raw.data() + 1, end, at_member).ptr != end || at_member == 0) {
    return session_.task_done(number_, raw);  // Destroys this.
  }
  std::string answer;
  append_integer(answer, session_.worker().pubsub_counts().of_clients(
                             upstream_.name(), kind_, channel_, kind_ == ChannelKind::channel, at_member));
  session_.task_done(number_, answer);
}

void Publish::on_failure(std::uint64_t, const backend::Failure& failure) {
  session_.count_failure(failure.kind);
  session_.task_done(number_, failure_reply(failure));
}

// --- PUBSUB -----------------------------------------------------------------------------------------------

PubsubQuery::PubsubQuery(Session& session, std::uint64_t number, What what, ChannelKind kind,
                         std::vector<std::string> names)
    : session_(session),
      number_(number),
      what_(what),
      kind_(kind),
      names_(std::move(names)),
      at_members_(names_.size()) {}

void PubsubQuery::start(std::string_view command) {
  for (const Upstream* upstream : session_.reach_of_channels().upstreams()) {
    asked_.insert(asked_.end(), upstream->snapshot().members().size(), upstream);
  }
  waiting_ = asked_.size();
  std::uint64_t tag = 0;
  for (Upstream* upstream : session_.reach_of_channels().upstreams()) {
    for (topology::MemberIndex i = 0; i < upstream->snapshot().members().size(); ++i) {
      upstream->pool().at(i, session_.resp()).send(command, *this, tag++, backend::Traffic::other);
    }
  }
}

void PubsubQuery::on_reply(std::uint64_t tag, std::string_view raw) {
  if (raw.starts_with('-')) {
    session_.worker().counters().add(telemetry::Counter::errors_member);
    if (error_.empty()) error_ = raw;
  } else {
    take(*asked_[tag], raw);
  }
  if (--waiting_ == 0) finish();
}

void PubsubQuery::on_failure(std::uint64_t, const backend::Failure& failure) {
  session_.count_failure(failure.kind);
  if (error_.empty()) error_ = failure_reply(failure);
  if (--waiting_ == 0) finish();
}

void PubsubQuery::take(const Upstream& from, std::string_view raw) {
  auto decoded = protocol::resp::decode(raw);
  const bool whole = decoded && *decoded;
  const Reach& reach = session_.reach_of_channels();
  if (whole && what_ == What::patterns) {
    patterns_ = std::max(patterns_, (*decoded)->value.integer);
  } else if (whole && what_ == What::channels) {
    for (Value& item : (*decoded)->value.items) {
      if (reach.whole() || reach.upstream_of(item.text) == &from) channels_.insert(std::move(item.text));
    }
  } else if (whole && (*decoded)->value.items.size() == 2 * names_.size()) {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      std::int64_t& most = at_members_[i][&from];
      most = std::max(most, (*decoded)->value.items[2 * i + 1].integer);
    }
  } else if (error_.empty()) {
    error_ = kBadReply;
  }
}

void PubsubQuery::finish() {
  std::string answer = error_;
  if (!error_.empty()) {
  } else if (what_ == What::patterns) {
    append_integer(answer, patterns_);
  } else if (what_ == What::channels) {
    append_header(answer, '*', channels_.size());
    for (const std::string& name : channels_) append_bulk(answer, name);
  } else {
    append_header(answer, '*', names_.size() * 2);
    const Reach& reach = session_.reach_of_channels();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      // Those of a keyspace event's channel listen everywhere.
      std::int64_t clients = 0;
      for (const auto& [upstream, at_member] : at_members_[i]) {
        if (!is_keyspace_channel(names_[i]) && reach.upstream_of(names_[i]) != upstream) continue;
        clients = std::max(clients, session_.worker().pubsub_counts().of_clients(
                                        upstream->name(), kind_, names_[i], false, at_member));
      }
      append_bulk(answer, names_[i]);
      append_integer(answer, clients);
    }
  }
  session_.task_done(number_, answer);  // Destroys this.
}

}  // namespace ringshift::proxy
