#include "proxy/worker.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
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

constexpr std::string_view kTooManyClients = "-ERR max number of clients reached\r\n";

}  // namespace

Worker::Worker(std::size_t number, Shared& shared) : number_(number), shared_(shared) {}
Worker::~Worker() = default;

Status Worker::listen(const std::string& address, const Worker* first) {
  auto on_accept = [this](int fd) { accept(fd); };
  auto listener = first != nullptr ? net::Listener::share(loop_, first->listener(), std::move(on_accept))
                                   : net::Listener::open(loop_, address, std::move(on_accept));
  if (!listener) return std::unexpected(listener.error());
  listener_ = std::move(*listener);
  return {};
}

void Worker::run() {
  for (std::size_t i = 0; i < shared_.clusters.size(); ++i) {
    upstreams_.push_back(std::make_unique<Upstream>(
        loop_, shared_.options, shared_.clusters[i], counters_,
        Upstream::Listeners{[this] { topology_changed(); },
                            [this, i](topology::Version version) { shared_.applied(number_, i, version); }}));
  }
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
  listener_.reset();
  // First: the connections may call sessions until they are gone.
  for (const auto& upstream : upstreams_) upstream->close();
  shared_.clients.fetch_sub(sessions_.size());
  sessions_.clear();
  upstreams_.clear();
  linger_timer_.reset();
  grace_timer_.reset();
  admin_.pause_timer.reset();
  admin_.every_second.reset();
  admin_.mailbox.read(/*for_good=*/true);
}

void Worker::adopt_newest() {
  for (const auto& upstream : upstreams_) upstream->adopt_newest();
}

void Worker::topology_changed() {
  for (const auto& session : sessions_) session->topology_changed();
}

// --- clients ---------------------------------------------------------------------------------------------

void Worker::accept(int fd) {
  if (shared_.clients.fetch_add(1) >= shared_.settings.max_clients.size()) {
    shared_.clients.fetch_sub(1);
    counters_.add(Counter::clients_rejected);
    // A fresh socket has room for this line; if not, closing says enough.
    (void)::send(fd, kTooManyClients.data(), kTooManyClients.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(fd);
    return;
  }
  counters_.add(Counter::clients_accepted);
  sessions_.push_back(std::make_unique<Session>(*this, fd, shared_.last_client_id.fetch_add(1) + 1));
  sessions_.back()->set_index(sessions_.size() - 1);
  if (const std::int64_t seconds = shared_.settings.tcp_keepalive.get(); seconds != kStreamKeepalive) {
    set_keepalive(fd, static_cast<int>(seconds));
  }
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
  for (const auto& upstream : upstreams_) upstream->pool().flush();
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

void Worker::stop_soon() {
  if (stopping_) return;
  stopping_ = true;
  listener_.reset();
  for (const auto& session : sessions_) session->close_when_done();
  grace_timer_->arm(shared_.options.shutdown_grace);
}

}  // namespace ringshift::proxy
