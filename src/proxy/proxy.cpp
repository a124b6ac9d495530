#include "proxy/proxy.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "proxy/worker.h"

namespace ringshift::proxy {

struct Proxy::Impl {
  Shared shared;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;

  std::mutex applied_mutex;
  std::vector<topology::Version> applied;  // Of each worker. This and the next two: guarded by applied_mutex.
  topology::Version reported;
  std::function<void(topology::Version)> on_applied;

  void worker_applied(std::size_t worker, topology::Version version) {
    const std::lock_guard lock(applied_mutex);
    // A worker's drains may end out of order; the newest counts, since it covers the older ones.
    applied[worker] = std::max(applied[worker], version);
    const topology::Version lowest = *std::ranges::min_element(applied);
    if (lowest <= reported) return;
    reported = lowest;
    if (on_applied) on_applied(lowest);
  }
};

Proxy::Proxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Proxy::~Proxy() { stop(); }

Result<std::unique_ptr<Proxy>> Proxy::start(Options options, std::shared_ptr<Holder> holder,
                                            Authority* authority) {
  if (options.threads == 0) options.threads = std::max(1U, std::thread::hardware_concurrency());
  auto impl = std::make_unique<Impl>();
  Impl& self = *impl;
  self.shared.options = std::move(options);
  self.shared.holder = std::move(holder);
  self.shared.authority = authority;
  self.shared.address = self.shared.options.listen;
  self.shared.applied = [&self](std::size_t worker, topology::Version version) {
    self.worker_applied(worker, version);
  };
  self.shared.stats = [&self] {
    telemetry::Totals totals{};
    for (const auto& worker : self.workers) worker->counters().add_to(totals);
    return totals;
  };
  self.applied.resize(self.shared.options.threads);
  const bool is_unix = self.shared.address.starts_with("unix:");
  for (std::size_t i = 0; i < self.shared.options.threads; ++i) {
    auto worker = std::make_unique<Worker>(i, self.shared);
    const Worker* first = is_unix && i > 0 ? self.workers[0].get() : nullptr;
    if (const Status listening = worker->listen(self.shared.address, first); !listening) {
      return std::unexpected(listening.error());
    }
    self.workers.push_back(std::move(worker));
    // The port that the first one got is the port of all.
    if (i == 0) self.shared.address = self.workers[0]->listener().address();
  }
  for (const auto& worker : self.workers) {
    self.threads.emplace_back([&worker = *worker] { worker.run(); });
  }
  return std::unique_ptr<Proxy>(new Proxy(std::move(impl)));
}

const std::string& Proxy::address() const noexcept { return impl_->shared.address; }

void Proxy::notify() {
  for (const auto& worker : impl_->workers) worker->post([&worker = *worker] { worker.adopt_newest(); });
}

void Proxy::set_on_applied(std::function<void(topology::Version)> callback) {
  const std::lock_guard lock(impl_->applied_mutex);
  impl_->on_applied = std::move(callback);
  if (impl_->on_applied && impl_->reported != topology::Version{}) impl_->on_applied(impl_->reported);
}

telemetry::Totals Proxy::stats() const { return impl_->shared.stats(); }

void Proxy::stop() {
  for (const auto& worker : impl_->workers) worker->post([&worker = *worker] { worker.stop_soon(); });
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

}  // namespace ringshift::proxy
