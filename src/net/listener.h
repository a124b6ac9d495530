// A listening socket on a loop. TCP listeners share their port (SO_REUSEPORT), so that each worker has its
// own and the kernel spreads the connections; a unix socket is opened once and shared with share().
//
// When the process has no descriptors left, accepting rests for kRestAfterExhaustion instead of spinning;
// waiting connections stay in the kernel's queue.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/descriptor.h"
#include "net/loop.h"
#include "ringshift/error.h"

namespace ringshift::net {

class Listener {
 public:
  static constexpr std::chrono::milliseconds kRestAfterExhaustion{100};
  static constexpr int kMaxAcceptsPerWakeup = 64;

  // Gets a connected, non-blocking socket and owns it: pass it to Stream::adopt.
  using OnAccept = std::function<void(int fd)>;

  // `address` is "host:port", "[v6]:port" or "unix:/path"; port 0 takes any free one. May resolve a host
  // name, so call it before the loop runs. A unix socket's file that a dead process left is replaced; one
  // that somebody answers on, or that is no socket, is an error. `unix_mode`: its permissions, nobody can
  // connect before they hold; 0: as the umask says. REQUIRES: used and destroyed on the loop's thread, or
  // with the loop not running.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> open(Loop& loop, std::string_view address,
                                                              OnAccept on_accept, mode_t unix_mode = 0);
  // Accepts from the same socket on another loop.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> share(Loop& loop, const Listener& other,
                                                               OnAccept on_accept);
  // Accepts from a socket that listens already, as a predecessor process hands it over. Closes `socket` if it
  // fails.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> adopt(Loop& loop, Descriptor socket,
                                                               OnAccept on_accept);
  // Stops listening. A unix socket's file is removed by the listener that open() made, or own_file().
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] std::string address() const;  // With the actual port: "127.0.0.1:6380".
  // Another descriptor of the socket. Any thread, while the listener lives.
  [[nodiscard]] Descriptor duplicate() const;

  // The predecessor is done: a unix socket's file now goes with this listener, and gets `unix_mode`.
  void own_file(mode_t unix_mode = 0);
  // Before it is destroyed, so that no connection is lost: another process has the socket and its file, ...
  void leave_to_successor();
  // ... or the connections that wait are accepted now; at most as many as the queue holds.
  void accept_the_rest();

 private:
  struct Impl;
  explicit Listener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringshift::net
