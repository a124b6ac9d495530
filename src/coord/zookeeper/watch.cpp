#include "coord/zookeeper/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/retry_thread.h"
#include "coord/watch.h"

namespace ringshift::coord::zookeeper {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kWatchSession{10};

class ZooKeeperWatch final : public Watch {
 public:
  ZooKeeperWatch(std::shared_ptr<Servers> servers, std::shared_ptr<Identity> identity, milliseconds timeout,
                 std::string prefix, Watcher& watcher)
      : servers_(std::move(servers)),
        identity_(std::move(identity)),
        layout_(servers_->layout()),
        timeout_(timeout),
        prefix_(std::move(prefix)),
        watcher_(watcher) {
    thread_.start([this] { run(); });
  }
  ~ZooKeeperWatch() override {
    thread_.stop([this] { canceller_.fire(); });
  }
  ZooKeeperWatch(const ZooKeeperWatch&) = delete;
  ZooKeeperWatch& operator=(const ZooKeeperWatch&) = delete;

 private:
  void run() {
    while (!thread_.stopping()) {
      const Status ended = follow();
      if (connection_ != nullptr) connection_->close_session();
      connection_.reset();
      if (thread_.stopping()) return;
      watcher_.on_disconnected(ended.error());
      thread_.back_off();
    }
  }

  // From the connection's beginning to its end, which is an error.
  Status follow() {
    auto connection = servers_->open_next(kWatchSession, deadline(), canceller_);
    if (!connection) return std::unexpected(std::move(connection.error()));
    connection_ = *std::move(connection);
    watched_.clear();
    const auto place = place_of(layout_.chroot, prefix_);
    if (!place) return std::unexpected(place.error());
    // Before anything is listed, so that nothing falls between.
    if (Status added = add_watches({place->directory}, place->stem.empty()); !added) return added;
    if (Status listed = list_again(*place); !listed) return listed;
    if (Status told = take_news(*place); !told) return told;  // wait() tells of later ones only.
    thread_.done();
    const milliseconds silence = connection_->timeout() / 3;
    Clock::time_point pinged_at = Clock::now();
    while (true) {
      const Clock::time_point now = Clock::now();
      if (now - connection_->heard_at() > 2 * silence) {
        return fail(ErrorKind::retryable,
                    fmt::format("zk://{}: silent for {} ms", connection_->endpoint(), 2 * silence.count()));
      }
      if (now - pinged_at >= silence) {
        if (Status sent = connection_->send_ping(deadline()); !sent) return sent;
        pinged_at = now;
      }
      const Result<bool> came = connection_->wait(pinged_at + silence);
      if (!came) return std::unexpected(came.error());
      if (Status told = take_news(*place); !told) return told;
    }
  }

  Status take_news(const PrefixPlace& place) {
    // Reading brings more notifications, as a rule none.
    while (true) {
      const std::vector<Notification> news = connection_->take_notifications();
      if (news.empty()) return {};
      std::set<std::string> changed;
      bool list = false;
      for (const Notification& one : news) {
        if (one.path == place.directory && !place.stem.empty()) {
          list = true;  // Another name may match now.
        } else {
          changed.insert(one.path);
        }
      }
      Status told = list ? list_again(place) : read_again(place, changed);
      if (!told) return told;
    }
  }

  Status add_watches(const std::vector<std::string>& paths, bool recursive) {
    std::vector<std::string> requests;
    for (const std::string& path : paths) {
      if (watched_.insert(path).second) requests.push_back(add_watch_request(path, recursive));
    }
    if (requests.empty()) return {};
    const auto replies = call_all(*connection_, std::move(requests), deadline());
    if (!replies) return std::unexpected(replies.error());
    for (const Reply& reply : *replies) {
      if (reply.header.code != Code::ok) return std::unexpected(to_error(reply.header.code, paths.front()));
    }
    return {};
  }

  Result<Listing> list() { return list_keys(*connection_, layout_, *identity_, prefix_, deadline()); }

  Status list_again(const PrefixPlace& place) {
    auto listing = list();
    if (!listing) return std::unexpected(std::move(listing.error()));
    if (!place.stem.empty()) {
      // A name that matches gets a watch of its own; what it held before that is read once more.
      const std::size_t before = watched_.size();
      if (Status added = add_watches(listing->top, true); !added) return added;
      if (watched_.size() != before) listing = list();
      if (!listing) return std::unexpected(std::move(listing.error()));
    }
    tell(listing->range);
    return {};
  }

  void tell(const Range& range) {
    if (range.cluster_id != cluster_id_) {
      cluster_id_ = range.cluster_id;
      known_.clear();
      for (const KeyValue& kv : range.kvs) known_[kv.key] = kv.mod_revision;
      return watcher_.on_resync(range);
    }
    std::vector<Event> events;
    std::map<std::string, Revision> gone = known_;
    for (const KeyValue& kv : range.kvs) {
      gone.erase(kv.key);
      note_put(kv, events);
    }
    for (const auto& [key, revision] : gone) note_removed(key, range.revision, events);
    send(std::move(events));
  }

  Status read_again(const PrefixPlace& place, const std::set<std::string>& paths) {
    std::vector<std::string> requests = {exists_request(layout_.root())}, keys;
    for (const std::string& path : paths) {
      auto key = key_of(layout_.chroot, path);
      if (!key || !key->starts_with(prefix_)) continue;
      keys.push_back(*std::move(key));
      requests.push_back(get_data_request(path));
    }
    if (keys.empty()) return {};
    const auto replies = call_all(*connection_, std::move(requests), deadline());
    if (!replies) return std::unexpected(replies.error());
    // Removed by hand and maybe made again: that is another life.
    if (replies->front().header.code != Code::ok) return list_again(place);
    const auto root = read_stat(replies->front().body);
    if (!root) return std::unexpected(root.error());
    if (std::exchange(root_czxid_, root->czxid) != root->czxid) return list_again(place);
    std::vector<Event> events;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Reply& reply = (*replies)[i + 1];
      if (reply.header.code != Code::ok && reply.header.code != Code::no_node) {
        return std::unexpected(to_error(reply.header.code, keys[i]));
      }
      Result<Node> node = reply.header.code == Code::ok ? read_node(reply.body) : Result<Node>(Node{});
      if (!node) return std::unexpected(std::move(node.error()));
      if (node->data) {
        note_put(to_key_value(keys[i], *std::move(node)), events);
      } else if (known_.contains(keys[i])) {
        note_removed(keys[i], reply.header.zxid, events);
      }
    }
    send(std::move(events));
    return {};
  }

  void note_put(const KeyValue& kv, std::vector<Event>& events) {
    Revision& known = known_[kv.key];
    if (kv.mod_revision <= known) return;
    known = kv.mod_revision;
    identity_->saw(cluster_id_, kv.mod_revision);
    events.push_back({Event::Kind::put, kv});
  }

  void note_removed(const std::string& key, Revision revision, std::vector<Event>& events) {
    known_.erase(key);
    Event event;
    event.kind = Event::Kind::remove;
    event.kv.key = key;
    event.kv.mod_revision = revision;
    events.push_back(std::move(event));
  }

  void send(std::vector<Event> events) {
    if (events.empty()) return;
    std::ranges::stable_sort(events, {}, [](const Event& event) { return event.kv.mod_revision; });
    watcher_.on_events(events);
  }

  [[nodiscard]] Deadline deadline() const { return Clock::now() + timeout_; }

  const std::shared_ptr<Servers> servers_;
  const std::shared_ptr<Identity> identity_;
  const Layout layout_;
  const milliseconds timeout_;
  const std::string prefix_;
  Watcher& watcher_;
  Canceller canceller_;

  // The thread's own.
  std::unique_ptr<Connection> connection_;
  std::set<std::string> watched_;          // Paths, on this connection.
  std::map<std::string, Revision> known_;  // What the watcher was told.
  std::uint64_t cluster_id_ = 0;
  std::int64_t root_czxid_ = 0;

  base::RetryThread thread_{kWatchRetryFirst, kWatchRetryMax};  // Last: it uses all above.
};

}  // namespace

std::unique_ptr<Watch> start_watch(std::shared_ptr<Servers> servers, std::shared_ptr<Identity> identity,
                                   milliseconds request_timeout, std::string prefix, Watcher& watcher) {
  return std::make_unique<ZooKeeperWatch>(std::move(servers), std::move(identity), request_timeout,
                                          std::move(prefix), watcher);
}

}  // namespace ringshift::coord::zookeeper
