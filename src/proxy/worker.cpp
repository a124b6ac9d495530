#include "proxy/worker.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "proxy/session.h"
#include "transfer/steps.h"

namespace ringshift::proxy {
namespace {

using telemetry::Counter;

constexpr std::string_view kTooManyClients = "-ERR max number of clients reached\r\n";

}  // namespace

// Answers of the authority come from other threads, maybe after the worker is gone.
struct Worker::Gate {
  std::mutex mutex;
  net::Loop* loop = nullptr;  // Guarded by mutex; null once the worker is gone.
};

Worker::Worker(std::size_t number, Shared& shared)
    : number_(number), shared_(shared), snapshot_(shared.holder->load()), gate_(std::make_shared<Gate>()) {
  gate_->loop = &loop_;
}

Worker::~Worker() {
  const std::lock_guard lock(gate_->mutex);
  gate_->loop = nullptr;
}

Status Worker::listen(const std::string& address, const Worker* first) {
  auto on_accept = [this](int fd) { accept(fd); };
  auto listener = first != nullptr ? net::Listener::share(loop_, first->listener(), std::move(on_accept))
                                   : net::Listener::open(loop_, address, std::move(on_accept));
  if (!listener) return std::unexpected(listener.error());
  listener_ = std::move(*listener);
  return {};
}

void Worker::run() {
  const Options& options = shared_.options;
  backend::Options pool_options;
  pool_options.name = "rs:" + options.router_id;
  pool_options.connect_timeout = options.connect_timeout;
  pool_options.request_timeout = options.request_timeout;
  pool_options.max_queued_bytes = options.max_member_queue_bytes;
  pool_ = backend::make_pool(loop_, pool_options, shared_.authority != nullptr ? this : nullptr);
  DualRouter::Options dual_options;
  dual_options.request_timeout = options.request_timeout;
  dual_options.hold_timeout = options.hold_timeout;
  dual_options.counters = &counters_;
  dual_ = std::make_unique<DualRouter>(loop_, *pool_, dual_options);
  linger_timer_ = loop_.timer([this] {
    lingering_ = false;
    for (const auto& session : sessions_) session->linger_over();
  });
  grace_timer_ = loop_.timer([this] { loop_.stop(); });
  loop_.set_after_wakeup([this] { end_of_wakeup(); });
  adopt(shared_.holder->load());
  loop_.run();
  listener_.reset();
  pool_.reset();  // First: it may call the router and the sessions until it is gone.
  dual_.reset();
  shared_.clients.fetch_sub(sessions_.size());
  sessions_.clear();
  linger_timer_.reset();
  grace_timer_.reset();
}

void Worker::adopt_newest() {
  auto newest = shared_.holder->load();
  if (newest->version > snapshot_->version) adopt(std::move(newest));
}

void Worker::adopt(std::shared_ptr<const topology::Snapshot> snapshot) {
  snapshot_ = std::move(snapshot);
  pool_->adopt(snapshot_);
  dual_->adopt(snapshot_);
  // Whatever was sent so far went by older snapshots. A drain may wait long, and a later one end first.
  pool_->drain([this, version = snapshot_->version] { shared_.applied(number_, version); });
}

// --- clients ---------------------------------------------------------------------------------------------

void Worker::accept(int fd) {
  if (shared_.clients.fetch_add(1) >= shared_.options.max_clients) {
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
  pool_->flush();
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

// --- backend::Look ---------------------------------------------------------------------------------------

bool Worker::stamp_matches(std::string_view member_id, const std::optional<std::string>& stamp,
                           std::string_view run_id) {
  const topology::Fence& fence = snapshot_->topology().fence;
  if (fence.epoch == 0) return !stamp;
  if (!stamp) return false;
  const auto parsed = transfer::step_of_stamp(*stamp);
  const auto bound = fence.run_ids.find(std::string(member_id));
  return parsed && bound != fence.run_ids.end() && parsed->epoch == fence.epoch &&
         parsed->step == fence.step && bound->second == run_id &&
         stamp->ends_with(fmt::format(".{}", run_id));
}

void Worker::confirm(std::function<void(bool)> done) {
  shared_.authority->confirm([this, gate = gate_, done = std::move(done)](bool read) {
    const std::lock_guard lock(gate->mutex);
    if (gate->loop == nullptr) return;
    gate->loop->post([this, read, done] {
      if (!pool_) return;  // The worker has stopped.
      if (read) adopt_newest();
      done(read);
    });
  });
}

}  // namespace ringshift::proxy
