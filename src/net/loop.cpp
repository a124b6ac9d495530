#include "net/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "net/watch.h"

namespace ringshift::net {
namespace {

constexpr std::size_t kFirstEvents = 64;  // That one wakeup takes; doubled while wakeups take all of them,
constexpr std::size_t kMaxEvents = 4096;  // up to this. The rest is ready for the next wakeup.

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::abort();
}

class LoopTimer;
using Deadlines = std::multimap<base::TimePoint, LoopTimer*>;  // Equal ones in the order of arming.

}  // namespace

struct Loop::Impl {
  int epoll_fd = -1;
  int wake_fd = -1;
  int timer_fd = -1;
  std::function<void()> after_wakeup;
  bool stopping = false;  // Loop thread only: stop() arrives as a task.

  std::vector<epoll_event> events{kFirstEvents};
  std::size_t at = 0, ready = 0;  // Of `events`: under way, and how many were reported.

  Deadlines deadlines;
  base::TimePoint kernel_deadline = base::TimePoint::max();  // What timer_fd is set to; max: nothing.
  bool timers_due = false;

  Soon soon;  // Its ring has those that wait; never called itself.

  std::mutex mutex;
  std::deque<std::function<void()>> tasks;  // Guarded by mutex.

  explicit Impl(Loop& loop) : soon(loop, nullptr, nullptr) { soon.previous_ = soon.next_ = &soon; }
  ~Impl() { soon.next_ = nullptr; }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] bool in_a_hurry() const { return timers_due || soon.next_ != &soon; }

  // Edge-triggered: never read, since each write or expiry is an edge of its own.
  void watch_own(int fd, void* mark) const {
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = mark}};
    if (::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) die("event loop: cannot watch");
  }

  void run_tasks() {
    std::deque<std::function<void()>> batch;
    {
      const std::lock_guard lock(mutex);
      batch.swap(tasks);
    }
    for (std::function<void()>& task : batch) task();
  }

  void dispatch() {
    for (; at < ready; ++at) {
      void* const mark = events[at].data.ptr;
      if (mark == &wake_fd) {
        run_tasks();
      } else if (mark == &timer_fd) {
        kernel_deadline = base::TimePoint::max();
        timers_due = true;
      } else if (mark != nullptr) {
        call(*static_cast<Watch*>(mark));
      }
    }
    ready = 0;
  }

  void call(Watch& watch) {
    std::uint32_t what = events[at].events;
    if ((what & (EPOLLERR | EPOLLHUP)) != 0) what = EPOLLIN | EPOLLOUT;
    if ((what & watch.armed_ & ~watch.wanted_) != 0) (void)watch.tell_kernel();  // Wants less: cannot fail.
    if ((what & watch.wanted_ & EPOLLIN) != 0) {
      watch.readable_(watch.self_);
      if ((what & EPOLLOUT) == 0 || events[at].data.ptr == nullptr) return;  // Destroyed meanwhile.
    }
    if ((what & watch.wanted_ & EPOLLOUT) != 0) watch.writable_(watch.self_);
  }

  // What was reported of it already must not reach it any more.
  void forget(const Watch* watch) {
    for (std::size_t i = at; i < ready; ++i) {
      if (events[i].data.ptr == watch) events[i].data.ptr = nullptr;
    }
  }

  void fire_timers();
  void set_kernel_timer();
  void call_soon() {
    if (soon.next_ != &soon) call_those_waiting();
  }
  void call_those_waiting();
};

namespace {

class LoopTimer final : public Timer {
 public:
  LoopTimer(Deadlines& deadlines, std::function<void(bool)> armed, std::function<void()> on_fire)
      : deadlines_(deadlines),
        armed_(std::move(armed)),
        on_fire_(std::make_shared<std::function<void()>>(std::move(on_fire))) {}
  ~LoopTimer() override { LoopTimer::cancel(); }
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;

  void arm(base::Duration after) override {
    cancel();
    // By the clock, not by the wakeup's time: rather late than early.
    const base::TimePoint due =
        std::chrono::steady_clock::now() + (after > base::Duration::zero() ? after : base::Duration::zero());
    if (node_.empty()) {
      place_ = deadlines_.emplace(due, this);
    } else {
      node_.key() = due;
      place_ = deadlines_.insert(std::move(node_));
    }
    waits_ = true;
    armed_(after <= base::Duration::zero());
  }
  void cancel() override {
    if (std::exchange(waits_, false)) node_ = deadlines_.extract(place_);  // Kept for the next time.
  }
  void fire() {
    cancel();
    // The callback may destroy its timer, so it is kept alive from here.
    const std::shared_ptr<std::function<void()>> callback = on_fire_;
    (*callback)();
  }

 private:
  Deadlines& deadlines_;
  const std::function<void(bool due_now)> armed_;
  const std::shared_ptr<std::function<void()>> on_fire_;
  Deadlines::node_type node_;
  Deadlines::iterator place_;
  bool waits_ = false;
};

}  // namespace

void Loop::Impl::fire_timers() {
  timers_due = false;
  // One that is armed again by its own callback is due later than this.
  const base::TimePoint now = std::chrono::steady_clock::now();
  while (!deadlines.empty() && deadlines.begin()->first <= now) deadlines.begin()->second->fire();
  set_kernel_timer();
}

// Only when the first deadline comes before what is set: one that was cancelled costs a wakeup for nothing.
void Loop::Impl::set_kernel_timer() {
  if (deadlines.empty() || deadlines.begin()->first >= kernel_deadline) return;
  kernel_deadline = deadlines.begin()->first;
  const std::int64_t ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(kernel_deadline.time_since_epoch()).count();
  const itimerspec when{.it_interval = {},
                        .it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};
  if (::timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, nullptr) != 0) die("event loop: timerfd_settime");
}

void Loop::Impl::call_those_waiting() {
  // Those that wait now move to a ring of their own: what they ask for comes in the next wakeup.
  Soon batch(soon.loop_, nullptr, nullptr);
  batch.next_ = soon.next_;
  batch.previous_ = soon.previous_;
  batch.next_->previous_ = batch.previous_->next_ = &batch;
  soon.previous_ = soon.next_ = &soon;
  while (batch.next_ != &batch) {
    Soon& one = *batch.next_;
    one.withdraw();
    one.call_(one.self_);  // May destroy it, or any other.
  }
  batch.next_ = nullptr;
}

Loop::Loop() : impl_(std::make_unique<Impl>(*this)) {
  Impl& impl = *impl_;
  impl.epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (impl.epoll_fd < 0) die("event loop: epoll");
  impl.wake_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (impl.wake_fd < 0) die("event loop: cannot make an eventfd");
  impl.timer_fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (impl.timer_fd < 0) die("event loop: cannot make a timerfd");
  impl.watch_own(impl.wake_fd, &impl.wake_fd);
  impl.watch_own(impl.timer_fd, &impl.timer_fd);
}

Loop::~Loop() {
  // Tasks that never ran are destroyed first: what they hold may refer to the loop.
  impl_->tasks.clear();
  ::close(impl_->timer_fd);
  ::close(impl_->wake_fd);
  ::close(impl_->epoll_fd);
}

void Loop::run() {
  Impl& impl = *impl_;
  while (!impl.stopping) {
    now_known_ = false;
    const int ready = ::epoll_wait(impl.epoll_fd, impl.events.data(), static_cast<int>(impl.events.size()),
                                   impl.in_a_hurry() ? 0 : -1);
    if (ready < 0 && errno != EINTR) die("event loop: epoll_wait");
    impl.at = 0;
    impl.ready = ready < 0 ? 0 : static_cast<std::size_t>(ready);
    const bool full = impl.ready == impl.events.size();
    impl.call_soon();
    impl.dispatch();
    if (impl.timers_due) impl.fire_timers();
    impl.call_soon();
    if (impl.after_wakeup) impl.after_wakeup();
    if (full && impl.events.size() < kMaxEvents) impl.events.resize(impl.events.size() * 2);
  }
  impl.stopping = false;  // run() may be called again.
  now_known_ = false;
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
  const auto armed = [impl = impl_.get()](bool due_now) {
    if (due_now) {
      impl->timers_due = true;
    } else {
      impl->set_kernel_timer();
    }
  };
  return std::make_unique<LoopTimer>(impl_->deadlines, armed, std::move(on_fire));
}

void Loop::set_after_wakeup(std::function<void()> hook) { impl_->after_wakeup = std::move(hook); }

base::TimePoint Loop::read_clock() const noexcept {
  now_known_ = true;
  return now_ = std::chrono::steady_clock::now();
}

// ---- Watch and Soon ----

void Watch::start(int fd, Ready readable, Ready writable, void* self) noexcept {
  stop();
  fd_ = fd;
  self_ = self;
  redirect(readable, writable);
}

void Watch::stop() noexcept {
  if (fd_ < 0) return;
  wanted_ = 0;
  if (armed_ != 0) (void)tell_kernel();
  fd_ = -1;
  loop_.impl_->forget(this);
}

bool Watch::want_read(bool on) noexcept {
  if (fd_ < 0) return true;
  wanted_ = on ? wanted_ | EPOLLIN : wanted_ & ~EPOLLIN;
  return !on || (armed_ & EPOLLIN) != 0 || tell_kernel();
}

bool Watch::want_write(bool on) noexcept {
  if (fd_ < 0) return true;
  wanted_ = on ? wanted_ | EPOLLOUT : wanted_ & ~EPOLLOUT;
  // Told at once, either way: a socket is writable nearly always.
  return ((wanted_ ^ armed_) & EPOLLOUT) == 0 || tell_kernel();
}

bool Watch::tell_kernel() noexcept {
  epoll_event event{.events = wanted_, .data = {.ptr = this}};
  // Of a descriptor it knows the kernel reports hang-ups for ever, so one that nothing is wanted of it
  // forgets.
  const int step = wanted_ == 0 ? EPOLL_CTL_DEL : (armed_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
  if (::epoll_ctl(loop_.impl_->epoll_fd, step, fd_, &event) != 0) return false;
  armed_ = wanted_;
  return true;
}

void Soon::ask() noexcept {
  if (next_ != nullptr) return;
  Soon& ring = loop_.impl_->soon;
  next_ = &ring;
  previous_ = ring.previous_;
  previous_->next_ = this;
  ring.previous_ = this;
}

void Soon::withdraw() noexcept {
  next_->previous_ = previous_;
  previous_->next_ = next_;
  next_ = previous_ = nullptr;
}

}  // namespace ringshift::net
