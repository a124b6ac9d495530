#include "net/loop.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

namespace ringshift::net {
namespace {

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::abort();
}

class EventTimer final : public Timer {
 public:
  EventTimer(event_base* base, std::function<void()> on_fire)
      : on_fire_(std::make_shared<std::function<void()>>(std::move(on_fire))) {
    if (evtimer_assign(&event_, base, &EventTimer::fired, this) != 0) die("event loop: cannot make a timer");
  }
  ~EventTimer() override { event_del(&event_); }
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  void arm(base::Duration after) override {
    // Rounded up, so that a timer is late rather than early.
    const std::int64_t us = after.count() <= 0 ? 0 : (after.count() + 999) / 1000;
    const timeval delay{.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    event_add(&event_, &delay);
  }
  void cancel() override { event_del(&event_); }

 private:
  static void fired(evutil_socket_t, short, void* self) {
    // The callback may destroy its timer, so it is kept alive from here.
    const std::shared_ptr<std::function<void()>> callback = static_cast<EventTimer*>(self)->on_fire_;
    (*callback)();
  }

  event event_{};
  std::shared_ptr<std::function<void()>> on_fire_;
};

}  // namespace

struct Loop::Impl {
  event_base* base = nullptr;
  int wake_fd = -1;
  event wake{};
  std::function<void()> after_wakeup;
  bool stopping = false;           // Loop thread only: stop() arrives as a task.
  mutable bool now_known = false;  // now() reads the clock once a wakeup, and only if somebody asks.
  mutable base::TimePoint now;

  std::mutex mutex;
  std::deque<std::function<void()>> tasks;  // Guarded by mutex.

  void on_wake() {
    std::uint64_t count = 0;
    // EAGAIN is fine: the counter was read before.
    if (::read(wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN && errno != EINTR)
      die("event loop: eventfd");
    std::deque<std::function<void()>> batch;
    {
      const std::lock_guard lock(mutex);
      batch.swap(tasks);
    }
    for (std::function<void()>& task : batch) task();
  }
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {
  event_config* config = event_config_new();
  if (config == nullptr) die("event loop: out of memory");
  // One thread owns the base; other threads only write to the eventfd.
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  impl_->base = event_base_new_with_config(config);
  event_config_free(config);
  if (impl_->base == nullptr) die("event loop: cannot make an event base");
  impl_->wake_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (impl_->wake_fd < 0) die("event loop: cannot make an eventfd");
  const auto on_wake = [](evutil_socket_t, short, void* impl) { static_cast<Impl*>(impl)->on_wake(); };
  if (event_assign(&impl_->wake, impl_->base, impl_->wake_fd, EV_READ | EV_PERSIST, on_wake, impl_.get()) !=
          0 ||
      event_add(&impl_->wake, nullptr) != 0) {
    die("event loop: cannot watch the eventfd");
  }
}

Loop::~Loop() {
  // Tasks that never ran are destroyed first: what they hold may refer to the base.
  impl_->tasks.clear();
  event_del(&impl_->wake);
  ::close(impl_->wake_fd);
  event_base_free(impl_->base);
}

void Loop::run() {
  Impl& impl = *impl_;
  while (!impl.stopping) {
    impl.now_known = false;
    if (event_base_loop(impl.base, EVLOOP_ONCE) < 0) die("event loop: event_base_loop");
    if (impl.after_wakeup) impl.after_wakeup();
  }
  impl.stopping = false;  // run() may be called again.
  impl.now_known = false;
}

void Loop::stop() {
  post([impl = impl_.get()] { impl->stopping = true; });
}

void Loop::post(std::function<void()> task) {
  bool first = false;
  {
    const std::lock_guard lock(impl_->mutex);
    first = impl_->tasks.empty();
    impl_->tasks.push_back(std::move(task));
  }
  if (!first) return;  // Whoever made the queue non-empty has rung the bell.
  const std::uint64_t one = 1;
  while (::write(impl_->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

std::unique_ptr<Timer> Loop::timer(std::function<void()> on_fire) {
  return std::make_unique<EventTimer>(impl_->base, std::move(on_fire));
}

void Loop::set_after_wakeup(std::function<void()> hook) { impl_->after_wakeup = std::move(hook); }

base::TimePoint Loop::now() const noexcept {
  if (!impl_->now_known) {
    impl_->now = std::chrono::steady_clock::now();
    impl_->now_known = true;
  }
  return impl_->now;
}

event_base* Loop::native() noexcept { return impl_->base; }

}  // namespace ringshift::net
