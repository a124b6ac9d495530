// Real redis-server processes on free loopback ports, for the playground and the drills.
//
// Invariant: every process started here is a child that dies with us, also when we are killed (the kernel
// sends it SIGKILL with the thread that started it; so start from a thread that lives as long as the fleet,
// such as main's). They hold memory only: no snapshot, no append-only file; a log each in `directory`.
// Not thread-safe. A start costs about 20 ms; stop() waits for each process to end.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ringshift/error.h"

namespace ringshift::drill {

struct RedisNode {
  std::string address;  // 127.0.0.1:port
  std::uint16_t port = 0;
  pid_t pid = -1;  // -1: it was killed.
};

struct FleetOptions {
  std::string directory;  // For logs; exists.
  std::string program = "redis-server";
  std::chrono::milliseconds ready_timeout{10000};
};

// A TCP port on 127.0.0.1 that was free just now. 0 when there is none.
[[nodiscard]] std::uint16_t free_port();
[[nodiscard]] bool port_is_free(std::uint16_t port);

class RedisFleet {
 public:
  explicit RedisFleet(FleetOptions options) : options_(std::move(options)) {}
  ~RedisFleet() { stop(); }
  RedisFleet(const RedisFleet&) = delete;
  RedisFleet& operator=(const RedisFleet&) = delete;

  // Starts one more and waits until it answers PING. A port that somebody took meanwhile is replaced.
  [[nodiscard]] Result<RedisNode> add();
  [[nodiscard]] std::span<const RedisNode> nodes() const noexcept { return nodes_; }
  // Ends the index-th at once (SIGKILL), with what it holds.
  void kill(std::size_t index);
  void stop();

 private:
  FleetOptions options_;
  std::vector<RedisNode> nodes_;
};

}  // namespace ringshift::drill
