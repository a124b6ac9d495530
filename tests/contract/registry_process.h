// A registry in a process of its own, ours, Debian's etcd or Debian's ZooKeeper, in a temporary directory: to
// be killed, stopped and started again on the same port. ZooKeeper takes seconds to start: one that was not
// killed serves the next test, too, each below a node of its own.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ringshift::test {

enum class Kind { ours, etcd, zookeeper };

class RegistryProcess {
 public:
  explicit RegistryProcess(Kind kind);
  ~RegistryProcess();  // Kills it and removes its directory.
  RegistryProcess(const RegistryProcess&) = delete;
  RegistryProcess& operator=(const RegistryProcess&) = delete;

  void start();  // Returns when it answers; aborts the test program when it does not.
  void signal(int number);
  void kill9();
  void wipe();  // REQUIRES: not running. Removes what it stored.
  [[nodiscard]] std::string url() const { return url_at(port_); }
  [[nodiscard]] std::string url_at(std::uint16_t port) const;  // As if it were there: a relay's.
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  [[nodiscard]] std::vector<std::string> command();
  [[nodiscard]] bool answers() const;
  Kind kind_;
  std::string directory_;
  std::uint16_t port_, peer_port_;
  pid_t pid_ = -1;
  std::string below_;  // ZooKeeper: the node that is this test's root.
};

// A TCP relay that can be cut: a network that fails, as the client sees it.
class Relay {
 public:
  explicit Relay(std::uint16_t target);
  ~Relay();
  void cut();  // Drops every connection and refuses new ones.
  void restore();
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  void run();
  std::uint16_t target_, port_;
  int listener_;
  std::atomic<bool> stopping_{false}, cut_{false};
  std::atomic<int> open_{0};
  std::thread thread_;
};

[[nodiscard]] std::uint16_t free_port();

}  // namespace ringshift::test
