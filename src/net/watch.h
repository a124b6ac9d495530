// What Stream and Listener are made of: a descriptor whose readiness a loop reports, and a call that comes
// from the loop in a moment. For net/ alone, on the loop's thread.
//
// Watch: level-triggered. Once destroyed or stopped nothing is called any more, not even what the kernel has
// reported already. Wanting to read less is free: the kernel hears of it only when there is something to
// read, so that stopping and going on within a moment costs nothing.
#pragma once
#include <cstdint>

#include "net/loop.h"

namespace ringshift::net {

class Watch {
 public:
  using Ready = void (*)(void* self);

  explicit Watch(Loop& loop) noexcept : loop_(loop) {}
  ~Watch() { stop(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Either may destroy the watch. An error or a hang-up counts as both. Nothing is wanted at first.
  void start(int fd, Ready readable, Ready writable, void* self) noexcept;
  void stop() noexcept;  // Before the descriptor is closed.
  // Other functions for the same descriptor, with what is wanted as it is.
  void redirect(Ready readable, Ready writable) noexcept {
    readable_ = readable;
    writable_ = writable;
  }
  // False, with errno, when the kernel cannot watch it. Nothing happens before start() and after stop().
  [[nodiscard]] bool want_read(bool on) noexcept;
  [[nodiscard]] bool want_write(bool on) noexcept;

 private:
  friend class Loop;
  [[nodiscard]] bool tell_kernel() noexcept;

  Loop& loop_;
  Ready readable_ = nullptr;
  Ready writable_ = nullptr;
  void* self_ = nullptr;
  int fd_ = -1;
  std::uint32_t wanted_ = 0;  // EPOLLIN, EPOLLOUT.
  std::uint32_t armed_ = 0;   // What the kernel was told; 0: it does not know the descriptor.
};

// Called once after each ask(), at the end of the same wakeup; or first thing in the next one, when asked
// from a Soon or from outside of a wakeup.
class Soon {
 public:
  Soon(Loop& loop, void (*call)(void* self), void* self) noexcept : loop_(loop), call_(call), self_(self) {}
  ~Soon() {
    if (next_ != nullptr) withdraw();
  }
  Soon(const Soon&) = delete;
  Soon& operator=(const Soon&) = delete;

  void ask() noexcept;

 private:
  friend class Loop;
  void withdraw() noexcept;

  Loop& loop_;
  void (*call_)(void* self);
  void* self_;
  Soon* previous_ = nullptr;  // A ring with the loop's own, while it is asked for.
  Soon* next_ = nullptr;
};

}  // namespace ringshift::net
