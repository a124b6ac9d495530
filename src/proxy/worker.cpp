#include "proxy/worker.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "net/address.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using telemetry::Counter;

constexpr std::chrono::seconds kEverySecond{1};
constexpr std::int64_t kStreamKeepalive = 300;  // What net::Stream sets by itself.

// As Redis sets it: so many seconds of silence, three questions within as many again.
void set_keepalive(int fd, int seconds) {
  const auto set = [fd](int level, int name, int value) {
    (void)::setsockopt(fd, level, name, &value, sizeof value);  // Fails on unix sockets, which need none.
  };
  set(SOL_SOCKET, SO_KEEPALIVE, seconds > 0 ? 1 : 0);
  if (seconds <= 0) return;
  set(IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 3));
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// Word for word Redis', since clients look for it.
constexpr std::string_view kProtected =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for "
    "the default user. In this mode connections are only accepted from the loopback interface. If you want "
    "to "
    "connect from external computers to Redis you may adopt one of the following solutions: 1) Just disable "
    "protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by "
    "connecting to Redis from the same host the server is running, however MAKE SURE Redis is not publicly "
    "accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. 2) "
    "Alternatively "
    "you can just disable the protected mode by editing the Redis configuration file, and setting the "
    "protected mode option to 'no', and then restarting the server. 3) If you started the server manually "
    "just "
    "for testing, restart it with the '--protected-mode no' option. 4) Setup a an authentication password "
    "for "
    "the default user. NOTE: You only need to do one of the above things in order for the server to start "
    "accepting connections from the outside.\r\n";
constexpr std::string_view kTooManyClients = "-ERR max number of clients reached\r\n";

}  // namespace

Status Worker::listen(const Options::Listen& at, const Worker* first) {
  auto on_accept = [this, tls = at.tls](int fd) { accept(fd, tls); };
  auto listener =
      first != nullptr
          ? net::Listener::share(loop_, first->listener(listeners_.size()), std::move(on_accept))
          : net::Listener::open(loop_, at.address, std::move(on_accept), shared_.options.unix_permissions);
  if (!listener) return std::unexpected(listener.error());
  listeners_.push_back(std::move(*listener));
  return {};
}

Status Worker::listen_on(const Options::Listen& at, net::Descriptor socket) {
  auto listener =
      net::Listener::adopt(loop_, std::move(socket), [this, tls = at.tls](int fd) { accept(fd, tls); });
  if (!listener) return std::unexpected(listener.error());
  listeners_.push_back(std::move(*listener));
  return {};
}

void Worker::run() {
  for (std::size_t i = 0; i < shared_.clusters.size(); ++i) {
    upstreams_.push_back(std::make_unique<Upstream>(
        loop_, shared_.options, shared_.clusters[i], counters_, shared_.pubsub,
        Upstream::Listeners{[this] { topology_changed(); },
                            [this, i](topology::Version version) { applied(i, version); },
                            [this] { keep_order(); }}));
  }
  adopt(shared_.rules);
  linger_timer_ = loop_.timer([this] {
    lingering_ = false;
    for (const auto& session : sessions_) session->linger_over();
  });
  grace_timer_ = loop_.timer([this] { loop_.stop(); });
  admin_.pause_timer = loop_.timer([this] { unpause_clients(); });
  admin_.every_second = loop_.timer([this] { every_second(); });
  admin_.every_second->arm(kEverySecond);
  look_at_settings();
  loop_.set_after_wakeup([this] { end_of_wakeup(); });
  loop_.run();
  listeners_.clear();
  // First: the connections may call sessions until they are gone.
  for (const auto& upstream : upstreams_) upstream->close();
  for (const auto& [number, database] : databases_) {
    for (const auto& upstream : database.upstreams) upstream->close();
  }
  shared_.clients.fetch_sub(sessions_.size());
  sessions_.clear();
  databases_.clear();
  upstreams_.clear();
  linger_timer_.reset();
  grace_timer_.reset();
  admin_.pause_timer.reset();
  admin_.every_second.reset();
  admin_.mailbox.read(/*for_good=*/true);
}

void Worker::adopt_newest() {
  for (const auto& upstream : upstreams_) upstream->adopt_newest();
  for (const auto& [number, database] : databases_) {
    for (const auto& upstream : database.upstreams) upstream->adopt_newest();
  }
}

void Worker::keep_order() {
  for (const auto& session : sessions_) session->keep_order();
}

void Worker::topology_changed() {
  for (const auto& session : sessions_) session->topology_changed();
}

// --- clients ---------------------------------------------------------------------------------------------

void Worker::accept(int fd, bool tls) {
  if (shared_.clients.fetch_add(1) >= shared_.settings.max_clients.size()) {
    shared_.clients.fetch_sub(1);
    counters_.add(Counter::clients_rejected);
    // A fresh socket has room for this line; if not, closing says enough.
    if (!tls) (void)::send(fd, kTooManyClients.data(), kTooManyClients.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(fd);
    return;
  }
  if (refused_for_protection(fd)) {
    shared_.clients.fetch_sub(1);
    counters_.add(Counter::clients_rejected);
    (void)::send(fd, kProtected.data(), kProtected.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(fd);
    return;
  }
  counters_.add(Counter::clients_accepted);
  sessions_.push_back(std::make_unique<Session>(*this, fd, shared_.last_client_id.fetch_add(1) + 1,
                                                tls ? shared_.options.tls.get() : nullptr));
  sessions_.back()->set_index(sessions_.size() - 1);
  if (const std::int64_t seconds = shared_.settings.tcp_keepalive.get(); seconds != kStreamKeepalive) {
    set_keepalive(fd, static_cast<int>(seconds));
  }
  sessions_.back()->become_default_user();
}

// As Redis: without a password nobody else's machine is served by accident.
bool Worker::refused_for_protection(int fd) {
  const access::User& user = rules_->rules.users.default_user();
  if (!shared_.options.protected_mode || !rules_->rules.protected_mode || !user.needs_no_password())
    return false;
  return !net::is_local_peer(fd);
}

void Worker::adopt(std::shared_ptr<const RulesInForce> rules) {
  const std::shared_ptr<const RulesInForce> old = std::exchange(rules_, std::move(rules));
  const std::unique_ptr<const Reach> old_reach =
      std::exchange(reach_, std::make_unique<const Reach>(rules_->rules.routes, upstreams_));
  const auto old_user_reach = std::exchange(user_reach_, {});
  for (const auto& [user, routes] : rules_->rules.user_routes) {
    user_reach_.emplace(user, std::make_unique<const Reach>(routes, upstreams_));
  }
  std::vector<decltype(DatabaseSet::reach)> old_reach_there;
  for (auto& [number, database] : databases_) old_reach_there.push_back(std::exchange(database.reach, {}));
  for (const auto& session : sessions_) session->rules_adopted();
}

void Worker::remove(Session& session) {
  counters_.add(Counter::clients_closed);
  shared_.clients.fetch_sub(1);
  const std::size_t index = session.index();
  std::swap(sessions_[index], sessions_.back());
  sessions_[index]->set_index(index);
  sessions_.pop_back();
}

void Worker::end_of_wakeup() {
  for (const auto& upstream : upstreams_) upstream->flush();
  for (const auto& [number, database] : databases_) {
    for (const auto& upstream : database.upstreams) upstream->flush();
  }
  while (!dirty_.empty()) {
    dirty_now_.swap(dirty_);
    for (Session* session : dirty_now_) session->end_of_wakeup();
    dirty_now_.clear();
  }
  if (stopping_ && sessions_.empty()) loop_.stop();
}

void Worker::linger() {
  if (lingering_) return;
  lingering_ = true;
  linger_timer_->arm(kLinger);
}

void Worker::stop_soon(std::chrono::milliseconds grace) {
  if (stopping_) return;
  stopping_ = true;
  listeners_.clear();
  for (const auto& session : sessions_) session->close_when_done();
  grace_timer_->arm(grace);
}

}  // namespace ringshift::proxy
