#include "registry/watch_hub.h"

#include <fmt/format.h>

#include <algorithm>

#include "registry/answer.h"

namespace ringshift::registry {
namespace {

constexpr std::size_t kHistoryEvents = 500;  // Read at a time.

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

bool wants(const WatchCreate& wanted, const store::Event& event) {
  return !(event.removed ? wanted.no_delete : wanted.no_put) &&
         store::in_range(event.kv.key, wanted.key, wanted.range_end);
}

}  // namespace

WatchHub::WatchHub(store::Store& store, std::function<void()> settle)
    : store_(store), settle_(std::move(settle)) {}

void WatchHub::send(Client& client, std::int64_t watch_id, std::string_view fields,
                    store::Revision revision) {
  const std::string inner =
      to_json({store_.cluster_id(), revision}, number_field("watch_id", watch_id) + std::string(fields));
  client.stream->write("{\"result\":" + inner + "}\n");
  client.owned->backlog += inner.size();
}

// Half of the owner's is for streams that have read all: some that hang must not hold up the others.
bool WatchHub::room(const Client& client) {
  const std::size_t own = client.stream->backlog();
  return own < kBacklogMax &&
         client.owned->backlog < (own == 0 ? kBacklogOfOwnerMax : kBacklogOfOwnerMax / 2);
}

void WatchHub::end_unless(const std::function<bool(const Owner&)>& alive) {
  remove_if([&](const Client& client) { return !alive(client.owner); });
}

std::size_t WatchHub::size_of(const std::string& owner) const {
  const auto found = of_owner_.find(owner);
  return found == of_owner_.end() ? 0 : std::max(found->second.watches, found->second.streams);
}

void WatchHub::add(std::unique_ptr<http::Stream> stream, const std::vector<WatchCommand>& commands,
                   Owner owner) {
  flush();  // What was committed before must not reach the newcomer as news.
  Client& client = clients_.emplace_back();
  client.stream = std::move(stream);
  client.owner = std::move(owner);
  client.owned = &of_owner_[client.owner.name];
  ++client.owned->streams;
  client.stream->on_drained([this, &client] {
    settle_();
    catch_up(client);
  });
  for (const WatchCommand& command : commands) {
    std::visit(Overloaded{[&](const WatchCreate& wanted) { create(client, wanted); },
                          [&](const WatchCancel& cancel) {
                            if (!client.watches.contains(cancel.watch_id)) return;
                            forget(client, cancel.watch_id);
                            send(client, cancel.watch_id, ",\"canceled\":true", store_.revision());
                          },
                          [&](const WatchProgress&) { send(client, -1, "", store_.revision()); }},
               command);
  }
  catch_up(client);
}

void WatchHub::create(Client& client, const WatchCreate& wanted) {
  const store::Revision now = store_.revision();
  const auto refuse = [&](std::string_view reason) {
    send(client, -1, fmt::format(R"(,"created":true,"canceled":true,"cancel_reason":"{}")", reason), now);
  };
  const bool to_the_end = wanted.range_end.size() == 1 && wanted.range_end[0] == '\0';
  if (!wanted.range_end.empty() && !to_the_end && wanted.range_end <= wanted.key) {
    return refuse("mvcc: watcher range is empty");
  }
  if (client.watches.size() >= kWatchesPerStream) return refuse("too many watches on one stream");
  std::int64_t id = wanted.watch_id;
  if (id != 0 && client.watches.contains(id))
    return refuse("mvcc: duplicate watch ID provided on the WatchStream");
  while (client.watches.contains(id)) ++id;
  Watch& watch = client.watches[id];
  (wanted.range_end.empty() ? of_one_key_[wanted.key] : of_ranges_).insert({&client, id});
  ++size_;
  ++client.owned->watches;
  watch.wanted = wanted;
  watch.next = wanted.start_revision > 0 ? wanted.start_revision : now + 1;
  watch.synced = watch.next > now;
  send(client, id, ",\"created\":true", now);
}

void WatchHub::forget(Client& client, std::int64_t id) {
  const auto found = client.watches.find(id);
  const WatchCreate& wanted = found->second.wanted;
  if (!wanted.range_end.empty()) {
    of_ranges_.erase({&client, id});
  } else if (const auto seats = of_one_key_.find(wanted.key); seats != of_one_key_.end()) {
    seats->second.erase({&client, id});
    if (seats->second.empty()) of_one_key_.erase(seats);
  }
  client.watches.erase(found);
  --size_;
  --client.owned->watches;
}

std::string WatchHub::events_json(const Watch& watch, std::span<const store::Event> events,
                                  std::span<std::string> made) {
  std::string out;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const store::Event& event = events[i];
    if (!wants(watch.wanted, event)) continue;
    out += out.empty() ? ",\"events\":[" : ",";
    if (watch.wanted.previous) {
      const auto previous = store_.before(event.kv.key, event.kv.mod_revision).value_or(std::nullopt);
      out += to_json(event, previous ? &*previous : nullptr);
    } else if (made.empty()) {
      out += to_json(event, nullptr);
    } else {
      if (made[i].empty()) made[i] = to_json(event, nullptr);
      out += made[i];
    }
  }
  return out.empty() ? out : out + "]";
}

void WatchHub::catch_up(Client& client) {
  for (auto entry = client.watches.begin(); entry != client.watches.end();) {
    auto& [id, watch] = *entry;
    bool compacted = false;
    while (!watch.synced && !compacted && !client.stream->closed() && room(client)) {
      const auto history =
          store_.history(watch.wanted.key, watch.wanted.range_end, watch.next, kHistoryEvents);
      if (!history) {
        compacted = history.error().kind == ErrorKind::stale;
        if (compacted)
          send(client, id, ",\"canceled\":true" + number_field("compact_revision", store_.compacted()), 0);
        break;  // Any other failure is the disk's: try again when something happens.
      }
      const std::string events = events_json(watch, history->events, {});
      if (!events.empty()) send(client, id, events, store_.revision());
      watch.next = history->next;
      watch.synced = watch.next > store_.revision();
    }
    const std::int64_t done = id;
    ++entry;
    if (compacted) forget(client, done);
  }
}

void WatchHub::committed(const std::vector<store::Event>& events, store::Revision revision) {
  commits_.push_back({events, std::vector<std::string>(events.size()), revision});
}

// REQUIRES: `count` events from `first` on are all that the watch may want of the commit.
void WatchHub::hand_on(const Seat& seat, Commit& commit, std::size_t first, std::size_t count) {
  Watch& watch = seat.client->watches.at(seat.id);
  // One that was caught up from the history has seen this commit already.
  if (!watch.synced || commit.revision < watch.next || seat.client->stream->closed()) return;
  if (!room(*seat.client)) {
    watch.next = commit.revision;
    watch.synced = false;
    return;
  }
  const std::string events = events_json(watch, std::span(commit.events).subspan(first, count),
                                         std::span(commit.json).subspan(first, count));
  if (!events.empty()) send(*seat.client, seat.id, events, commit.revision);
  watch.next = commit.revision + 1;
}

void WatchHub::flush() {
  std::vector<Commit> commits;
  commits.swap(commits_);
  for (Commit& commit : commits) {
    // A transaction writes a key once, so that one who watches one key wants one event of it.
    for (std::size_t i = 0; i < commit.events.size(); ++i) {
      const auto seats = of_one_key_.find(commit.events[i].kv.key);
      if (seats == of_one_key_.end()) continue;
      for (const Seat& seat : seats->second) hand_on(seat, commit, i, 1);
    }
    for (const Seat& seat : of_ranges_) hand_on(seat, commit, 0, commit.events.size());
  }
}

void WatchHub::send_progress() {
  flush();
  for (Client& client : clients_) {
    if (client.stream->closed()) continue;
    for (const auto& [id, watch] : client.watches) {
      if (watch.wanted.progress_notify && watch.synced && watch.next <= store_.revision() + 1) {
        send(client, id, "", store_.revision());
      }
    }
  }
}

void WatchHub::sweep() {
  for (auto& [name, owned] : of_owner_) owned.backlog = 0;
  for (const Client& client : clients_) client.owned->backlog += client.stream->backlog();
  for (Client& client : clients_) {
    if (!client.stream->closed() && client.stream->backlog() == 0) catch_up(client);
  }
  remove_if([](const Client& client) { return client.stream->closed(); });
}

void WatchHub::remove_if(const std::function<bool(const Client&)>& unwanted) {
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (!unwanted(*client)) {
      ++client;
      continue;
    }
    while (!client->watches.empty()) forget(*client, client->watches.begin()->first);
    const std::string owner = client->owner.name;
    const bool last = --client->owned->streams == 0;
    client = clients_.erase(client);
    if (last) of_owner_.erase(owner);
  }
}

}  // namespace ringshift::registry
