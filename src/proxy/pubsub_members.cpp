// The hub's connections: made, confirmed, lost, made again.
#include <algorithm>
#include <random>
#include <utility>

#include "base/log.h"
#include "proxy/pubsub_link.h"
#include "proxy/replies.h"
#include "proxy/subscriber.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

using backend::Failure;
using telemetry::Counter;

namespace {

// So that the workers of many proxies do not come all at once: half of it to the whole.
std::chrono::milliseconds with_jitter(std::chrono::milliseconds time) {
  static thread_local std::minstd_rand engine{std::random_device{}()};
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(time.count() / 2, time.count())(engine));
}

}  // namespace

PubsubHub::Link& PubsubHub::link_to(const std::string& member) {
  std::unique_ptr<Link>& link = links_[member];
  if (link == nullptr) link = std::make_unique<Link>(*this, member);
  if (link->connection == nullptr && link->not_before <= loop_.now() && !closed_) {
    const topology::MemberIndex index = upstream_.snapshot().index_of(member);
    if (index != topology::kNoMember) {
      link->connection = upstream_.pool().open_private(index, backend::Resp::v3, *link);
      link->connection->set_exempt(true);  // A PING holds up no drain.
    }
  }
  return *link;
}

void PubsubHub::on_ready(Link& link) {
  link.ready = true;
  link.backoff = std::chrono::milliseconds(0);
  link.last_ping = loop_.now();
  for (Entries& some : entries_) {
    for (auto& [name, entry] : some) {
      for (Leg& leg : entry.legs) {
        if (leg.link == &link) step(entry, leg);
      }
    }
  }
  tick_soon();
}

void PubsubHub::on_push(Link& link, std::string_view raw) {
  const PushWords words = read_push(raw);
  if (words.count < 3) return;
  const std::string_view what = words.word[0];
  const auto deliver = [&](ChannelKind kind, std::string_view name, std::string_view channel,
                           std::string_view payload) {
    const Entry* entry = find(kind, name);
    if (entry == nullptr) return;
    for (const Subscription& one : entry->subscribers) {
      if (one.standing == Standing::admitted) one.who->deliver(upstream_, kind, channel, payload, raw);
    }
  };
  if (what == "message") return deliver(ChannelKind::channel, words.word[1], words.word[1], words.word[2]);
  if (what == "smessage") return deliver(ChannelKind::shard, words.word[1], words.word[1], words.word[2]);
  if (what == "pmessage" && words.count == 4) {
    return deliver(ChannelKind::pattern, words.word[1], words.word[2], words.word[3]);
  }
  for (const ChannelKind kind : {ChannelKind::channel, ChannelKind::pattern, ChannelKind::shard}) {
    for (const bool subscribed : {true, false}) {
      if (what == pubsub_verb(kind, subscribed))
        return on_confirmation(link, kind, words.word[1], subscribed);
    }
  }
}

void PubsubHub::on_confirmation(Link& link, ChannelKind kind, std::string_view name, bool subscribed) {
  Entry* entry = find(kind, name);
  if (entry == nullptr) return;
  const auto leg = std::ranges::find(entry->legs, &link, &Leg::link);
  if (leg == entry->legs.end()) return;
  change(*leg, subscribed ? State::on : State::off, leg->wanted);
  reconcile(*entry);
  settle(*entry);
}

// Callbacks come last: they change the entries.
void PubsubHub::on_lost(Link& link, const Failure& failure) {
  struct Told {
    Subscriber* who;
    ChannelKind kind;
    std::string name;
    bool was_waiting;
  };
  Failure as_unsent = failure;  // A subscription that did not last was none.
  if (failure.kind == Failure::Kind::unknown) as_unsent.kind = Failure::Kind::unsent;
  const std::string text = failure_reply(as_unsent);
  const std::string reason(failure.reason);
  std::vector<Told> failed;
  std::vector<Subscriber*> missed;
  std::vector<std::pair<ChannelKind, std::string>> touched;
  link.disconnect();
  link.backoff = std::clamp(link.backoff * 2, kFirstBackoff, kLongestBackoff);
  link.not_before = loop_.now() + with_jitter(link.backoff);
  for (Entries& some : entries_) {
    for (auto& [name, entry] : some) {
      const auto leg = std::ranges::find(entry.legs, &link, &Leg::link);
      if (leg == entry.legs.end()) continue;
      const bool was_on = leg->state == State::on || leg->state == State::unsubscribing;
      change(*leg, State::off, leg->wanted);
      touched.emplace_back(entry.kind, name);
      for (Subscription& one : entry.subscribers) {
        if (one.standing != Standing::admitted) {
          failed.push_back({one.who, entry.kind, name, one.standing == Standing::waiting});
          one.standing = Standing::confirmed;  // It is told once, and leaves.
        } else if (was_on) {
          missed.push_back(one.who);
        }
      }
    }
  }
  std::ranges::sort(missed);
  missed.erase(std::ranges::unique(missed).begin(), missed.end());
  if (!missed.empty()) {
    base::log(base::LogLevel::warning,
              "proxy: cluster {}: the connection for subscriptions to member {} broke ({}): disconnected {} "
              "clients, which may have missed messages",
              upstream_.name(), link.member, reason, missed.size());
    counters_.add(Counter::subscribers_cut, missed.size());
  }
  for (const Told& one : failed) one.who->failed(one.kind, one.name, text, one.was_waiting);
  for (Subscriber* who : missed) who->cut();
  for (const auto& [kind, name] : touched) {
    Entry* entry = find(kind, name);
    if (entry == nullptr) continue;
    reconcile(*entry);
    settle(*entry);
  }
  tick_soon();
}

// The pool has closed their connections without a word, as far as we are concerned: whoever publishes there
// still is more than one snapshot behind.
void PubsubHub::drop_links_of_absent_members() {
  for (const auto& [member, link] : links_) {
    if (upstream_.snapshot().index_of(member) != topology::kNoMember) continue;
    link->disconnect();
    for (Entries& some : entries_) {
      for (auto& [name, entry] : some) {
        for (Leg& leg : entry.legs) {
          if (leg.link == link.get()) change(leg, State::off, leg.wanted);
        }
      }
    }
  }
}

void PubsubHub::tick_soon() {
  if (ticking_ || closed_) return;
  ticking_ = true;
  timer_->arm(kFirstBackoff);
}

void PubsubHub::tick() {
  ticking_ = false;
  const base::TimePoint now = loop_.now();
  bool hurry = !settled_.empty();
  std::vector<std::pair<Link*, Failure>> dead;
  std::vector<std::string> idle;
  for (const auto& [member, link] : links_) {
    if (link->legs != 0) link->idle_since = now;
    if (link->legs == 0 && now - link->idle_since >= kIdleLinger) {
      idle.push_back(member);
    } else if (link->connection == nullptr && link->legs != 0) {
      (void)link_to(member);
      hurry = true;
    } else if (link->ready && link->ping_sent && now - *link->ping_sent >= kDeadAfter) {
      dead.push_back({link.get(), {Failure::Kind::unsent, member, "has not answered a PING"}});
    } else if (link->ready && !link->ping_sent && now - link->last_ping >= kPingEvery) {
      link->ping_sent = link->last_ping = now;
      link->connection->send_untimed("*1\r\n$4\r\nPING\r\n", *link, 0);
    }
  }
  for (const auto& [link, failure] : dead) on_lost(*link, failure);
  for (const std::string& member : idle) links_.erase(member);
  look_at_settled();
  if (links_.empty() || closed_) return;
  ticking_ = true;
  timer_->arm(hurry ? std::chrono::milliseconds(kFirstBackoff) : std::chrono::milliseconds(1000));
}

}  // namespace ringshift::proxy
