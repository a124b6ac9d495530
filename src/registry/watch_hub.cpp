#include "registry/watch_hub.h"

#include <fmt/format.h>

#include "registry/answer.h"

namespace ringshift::registry {
namespace {

constexpr std::size_t kHistoryEvents = 500;  // Read at a time.

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace

WatchHub::WatchHub(store::Store& store) : store_(store) {}

std::size_t WatchHub::size() const noexcept {
  std::size_t count = 0;
  for (const Client& client : clients_) count += client.watches.size();
  return count;
}

void WatchHub::send(Client& client, std::int64_t watch_id, std::string_view fields,
                    store::Revision revision) {
  const std::string inner =
      to_json({store_.cluster_id(), revision}, number_field("watch_id", watch_id) + std::string(fields));
  client.stream->write("{\"result\":" + inner + "}\n");
}

void WatchHub::end_unless(const std::function<bool(const Owner&)>& alive) {
  clients_.remove_if([&](const Client& client) { return !alive(client.owner); });
}

std::size_t WatchHub::size_of(const std::string& owner) const {
  std::size_t count = 0;
  for (const Client& client : clients_) count += client.owner.name == owner ? client.watches.size() : 0;
  return count;
}

void WatchHub::add(std::unique_ptr<http::Stream> stream, const std::vector<WatchCommand>& commands,
                   Owner owner) {
  flush();  // What was committed before must not reach the newcomer as news.
  Client& client = clients_.emplace_back();
  client.stream = std::move(stream);
  client.owner = std::move(owner);
  client.stream->on_drained([this, &client] { catch_up(client); });
  for (const WatchCommand& command : commands) {
    std::visit(Overloaded{[&](const WatchCreate& wanted) { create(client, wanted); },
                          [&](const WatchCancel& cancel) {
                            if (client.watches.erase(cancel.watch_id) == 0) return;
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
  watch.wanted = wanted;
  watch.next = wanted.start_revision > 0 ? wanted.start_revision : now + 1;
  watch.synced = watch.next > now;
  send(client, id, ",\"created\":true", now);
}

std::string WatchHub::events_json(const Watch& watch, const std::vector<store::Event>& events) {
  std::string out;
  for (const store::Event& event : events) {
    if (event.removed ? watch.wanted.no_delete : watch.wanted.no_put) continue;
    if (!store::in_range(event.kv.key, watch.wanted.key, watch.wanted.range_end)) continue;
    std::optional<store::KeyValue> previous;
    if (watch.wanted.previous) {
      previous = store_.before(event.kv.key, event.kv.mod_revision).value_or(std::nullopt);
    }
    out += out.empty() ? ",\"events\":[" : ",";
    out += to_json(event, previous ? &*previous : nullptr);
  }
  return out.empty() ? out : out + "]";
}

void WatchHub::catch_up(Client& client) {
  for (auto entry = client.watches.begin(); entry != client.watches.end();) {
    auto& [id, watch] = *entry;
    bool compacted = false;
    while (!watch.synced && !compacted && !client.stream->closed() &&
           client.stream->backlog() < kBacklogMax) {
      const auto history =
          store_.history(watch.wanted.key, watch.wanted.range_end, watch.next, kHistoryEvents);
      if (!history) {
        compacted = history.error().kind == ErrorKind::stale;
        if (compacted)
          send(client, id, ",\"canceled\":true" + number_field("compact_revision", store_.compacted()), 0);
        break;  // Any other failure is the disk's: try again when something happens.
      }
      const std::string events = events_json(watch, history->events);
      if (!events.empty()) send(client, id, events, store_.revision());
      watch.next = history->next;
      watch.synced = watch.next > store_.revision();
    }
    entry = compacted ? client.watches.erase(entry) : std::next(entry);
  }
}

void WatchHub::committed(const std::vector<store::Event>& events, store::Revision revision) {
  commits_.push_back({events, revision});
}

void WatchHub::hand_on(Client& client, const Commit& commit) {
  for (auto& [id, watch] : client.watches) {
    // One that was caught up from the history has seen this commit already.
    if (!watch.synced || commit.revision < watch.next) continue;
    if (client.stream->backlog() >= kBacklogMax) {
      watch.next = commit.revision;
      watch.synced = false;
      continue;
    }
    const std::string events = events_json(watch, commit.events);
    if (!events.empty()) send(client, id, events, commit.revision);
    watch.next = commit.revision + 1;
  }
}

void WatchHub::flush() {
  std::vector<Commit> commits;
  commits.swap(commits_);
  for (const Commit& commit : commits) {
    for (Client& client : clients_) {
      if (!client.stream->closed()) hand_on(client, commit);
    }
  }
}

void WatchHub::send_progress() {
  flush();
  for (Client& client : clients_) {
    if (client.stream->closed()) continue;
    for (const auto& [id, watch] : client.watches) {
      if (watch.wanted.progress_notify && watch.synced && watch.next == store_.revision() + 1) {
        send(client, id, "", store_.revision());
      }
    }
  }
}

void WatchHub::sweep() {
  for (Client& client : clients_) {
    if (!client.stream->closed() && client.stream->backlog() == 0) catch_up(client);
  }
  clients_.remove_if([](const Client& client) { return client.stream->closed(); });
}

}  // namespace ringshift::registry
