#include "proxy/worker.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "proxy/session.h"

namespace ringshift::proxy {
namespace {

using telemetry::Counter;

constexpr std::string_view kTooManyClients = "-ERR max number of clients reached\r\n";

}  // namespace

Worker::Worker(std::size_t number, Shared& shared) : number_(number), shared_(shared) {}
Worker::~Worker() = default;

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
  loop_.set_after_wakeup([this] { end_of_wakeup(); });
  loop_.run();
  listeners_.clear();
  // First: the connections may call sessions until they are gone.
  for (const auto& upstream : upstreams_) upstream->close();
  shared_.clients.fetch_sub(sessions_.size());
  sessions_.clear();
  upstreams_.clear();
  linger_timer_.reset();
  grace_timer_.reset();
}

void Worker::adopt_newest() {
  for (const auto& upstream : upstreams_) upstream->adopt_newest();
}

void Worker::topology_changed() {
  for (const auto& session : sessions_) session->topology_changed();
}

// --- clients ---------------------------------------------------------------------------------------------

void Worker::accept(int fd, bool tls) {
  if (shared_.clients.fetch_add(1) >= shared_.options.max_clients) {
    shared_.clients.fetch_sub(1);
    counters_.add(Counter::clients_rejected);
    // A fresh socket has room for this line; if not, closing says enough.
    if (!tls) (void)::send(fd, kTooManyClients.data(), kTooManyClients.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(fd);
    return;
  }
  counters_.add(Counter::clients_accepted);
  sessions_.push_back(std::make_unique<Session>(*this, fd, shared_.last_client_id.fetch_add(1) + 1,
                                                tls ? shared_.options.tls.get() : nullptr));
  sessions_.back()->set_index(sessions_.size() - 1);
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
  listeners_.clear();
  for (const auto& session : sessions_) session->close_when_done();
  grace_timer_->arm(shared_.options.shutdown_grace);
}

}  // namespace ringshift::proxy
