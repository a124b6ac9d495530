#include "proxy/pubsub_hub.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "proxy/pubsub_link.h"
#include "proxy/subscriber.h"
#include "proxy/upstream.h"

namespace ringshift::proxy {

bool is_keyspace_channel(std::string_view channel) noexcept {
  return channel.starts_with("__keyspace@") || channel.starts_with("__keyevent@");
}

bool PubsubHub::Entry::confirmed() const noexcept { return std::ranges::none_of(legs, &Leg::missing); }

PubsubHub::PubsubHub(net::Loop& loop, Upstream& upstream, telemetry::Counters& counters, PubsubCounts& counts)
    : loop_(loop), upstream_(upstream), counters_(counters), counts_(counts) {
  timer_ = loop.timer([this] { tick(); });
}

PubsubHub::~PubsubHub() = default;

// --- for subscribers --------------------------------------------------------------------------------------

PubsubHub::Entry* PubsubHub::find(ChannelKind kind, std::string_view name) {
  Entries& all = entries(kind);
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

void PubsubHub::count_client(const Entry& entry, int by) {
  counts_.add(upstream_.name(), entry.kind, entry.name, 0, by);
}

bool PubsubHub::join(ChannelKind kind, const std::string& name, Subscriber& who) {
  Entry* entry = find(kind, name);
  if (entry == nullptr) {
    entry = &entries(kind).emplace(name, Entry{kind, name, {}, {}, {}}).first->second;
    ++names_;
    counts_.add(upstream_.name(), kind, name, 1, 0);
  }
  entry->subscribers.push_back({&who});
  reconcile(*entry);
  if (closed_ || !entry->confirmed()) return false;
  entry->subscribers.back().standing = Standing::confirmed;
  return true;
}

void PubsubHub::admit(ChannelKind kind, const std::string& name, Subscriber& who) {
  Entry* entry = find(kind, name);
  if (entry == nullptr) return;
  const auto one = std::ranges::find(entry->subscribers, &who, &Subscription::who);
  if (one == entry->subscribers.end() || one->standing == Standing::admitted) return;
  one->standing = Standing::admitted;
  count_client(*entry, 1);
}

bool PubsubHub::leave(ChannelKind kind, const std::string& name, Subscriber& who, bool tell) {
  Entry* entry = find(kind, name);
  if (entry == nullptr) return true;
  const auto one = std::ranges::find(entry->subscribers, &who, &Subscription::who);
  if (one == entry->subscribers.end()) return true;
  if (one->standing == Standing::admitted) count_client(*entry, -1);
  *one = entry->subscribers.back();
  entry->subscribers.pop_back();
  if (!entry->subscribers.empty()) return true;
  reconcile(*entry);
  const bool over = entry->legs.empty();
  if (!over && tell) entry->leavers.push_back(&who);
  if (over) settle(*entry);  // Erases it; those that left before are told.
  return over;
}

void PubsubHub::forget(ChannelKind kind, std::string_view name, const Subscriber& who) {
  if (Entry* entry = find(kind, name); entry != nullptr) std::erase(entry->leavers, &who);
}

std::string PubsubHub::unconfirmed(ChannelKind kind, std::string_view name) const {
  const Entries& all = entries_[static_cast<std::size_t>(kind)];
  const auto found = all.find(name);
  if (found == all.end()) return {};
  const auto leg = std::ranges::find_if(found->second.legs, &Leg::missing);
  return leg == found->second.legs.end() ? std::string() : leg->link->member;
}

// --- what is wanted, and what is --------------------------------------------------------------------------

void PubsubHub::change(Leg& leg, State state, bool wanted) {
  if (leg.missing()) --missing_;
  leg.state = state;
  leg.wanted = wanted;
  if (leg.missing()) ++missing_;
}

void PubsubHub::want_at(Entry& entry, topology::MemberIndex member) {
  Link& link = link_to(upstream_.snapshot().members()[member].id);
  auto leg = std::ranges::find(entry.legs, &link, &Leg::link);
  if (leg == entry.legs.end()) {
    ++link.legs;
    leg = entry.legs.insert(leg, Leg{&link});
  }
  change(*leg, leg->state, true);
}

void PubsubHub::reconcile(Entry& entry) {
  for (Leg& leg : entry.legs) change(leg, leg.state, false);
  if (!entry.subscribers.empty() && !closed_) {
    const topology::Snapshot& snapshot = upstream_.snapshot();
    if (entry.kind == ChannelKind::pattern ||
        (entry.kind == ChannelKind::channel && is_keyspace_channel(entry.name))) {
      for (topology::MemberIndex i = 0; i < snapshot.members().size(); ++i) want_at(entry, i);
    } else {
      const topology::Route route = snapshot.route(entry.name);
      for (const auto member : {route.member, route.source, snapshot.owner_before(entry.name),
                                snapshot.owner_after(entry.name)}) {
        want_at(entry, member);
      }
    }
  }
  for (Leg& leg : entry.legs) step(entry, leg);
  std::erase_if(entry.legs, [](const Leg& leg) {
    const bool over = !leg.wanted && leg.state == State::off;
    if (over) --leg.link->legs;
    return over;
  });
}

// Whatever is under way is waited for first.
void PubsubHub::step(Entry& entry, Leg& leg) {
  Link& link = *leg.link;
  if (!link.ready) {
    if (leg.wanted) tick_soon();
    return;
  }
  if (leg.wanted && leg.state == State::off) {
    link.send(entry.kind, true, entry.name);
    change(leg, State::subscribing, true);
  } else if (!leg.wanted && leg.state == State::on) {
    link.send(entry.kind, false, entry.name);
    change(leg, State::unsubscribing, false);
  }
}

void PubsubHub::settle(Entry& entry) {
  std::vector<Subscriber*> left, confirmed;
  const bool alive = !entry.subscribers.empty();
  if (alive || entry.legs.empty()) left.swap(entry.leavers);
  if (alive && entry.confirmed()) {
    for (Subscription& one : entry.subscribers) {
      if (one.standing != Standing::waiting) continue;
      one.standing = Standing::confirmed;
      confirmed.push_back(one.who);
    }
  }
  if (!alive && entry.legs.empty()) {
    const std::string name = std::move(entry.name);
    const ChannelKind kind = entry.kind;
    --names_;
    counts_.add(upstream_.name(), kind, name, -1, 0);
    entries(kind).erase(name);
  }
  for (Subscriber* who : left) who->left();
  for (Subscriber* who : confirmed) who->confirmed();
}

void PubsubHub::topology_changed() {
  drop_links_of_absent_members();
  std::vector<std::pair<ChannelKind, std::string>> all;
  for (const Entries& some : entries_) {
    for (const auto& [name, entry] : some) all.emplace_back(entry.kind, name);
  }
  for (const auto& [kind, name] : all) {
    Entry* entry = find(kind, name);
    if (entry == nullptr) continue;
    reconcile(*entry);
    settle(*entry);
  }
  std::erase_if(links_, [](const auto& one) {
    return one.second->legs == 0 && !one.second->connection && !one.second->listed;
  });
}

void PubsubHub::when_settled(std::function<void()> done) {
  if (missing_ == 0 || closed_) return done();
  settled_.push_back({std::move(done), loop_.now() + kSettleTime});
  tick_soon();
}

void PubsubHub::look_at_settled() {
  if (settled_.empty()) return;
  const auto is_due = [&](const Settled& one) { return missing_ == 0 || one.until <= loop_.now(); };
  if (std::ranges::none_of(settled_, is_due)) return;
  std::vector<Settled> due;
  for (Settled& one : settled_) {
    if (is_due(one)) due.push_back(std::move(one));
  }
  std::erase_if(settled_, [](const Settled& one) { return !one.done; });
  if (missing_ != 0) {
    base::log(base::LogLevel::warning,
              "proxy: cluster {}: {} subscriptions are not confirmed after {} s; the resize goes on",
              upstream_.name(), missing_, kSettleTime.count());
  }
  for (Settled& one : due) one.done();
}

void PubsubHub::flush() {
  for (Link* link : unsent_) {
    link->send_unsent();
    link->listed = false;
  }
  unsent_.clear();
  look_at_settled();
}

void PubsubHub::close() {
  closed_ = true;
  settled_.clear();
  timer_->cancel();
  for (const auto& [member, link] : links_) link->disconnect();
}

}  // namespace ringshift::proxy
