#include "drill/redis_fleet.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "drill/child_process.h"
#include "drill/client.h"

namespace ringshift::drill {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kPortTries = 8;
constexpr milliseconds kStopTimeout{3000};

// Binds 127.0.0.1:port; gives the port bound, 0 when that failed.
std::uint16_t try_bind(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  // As servers do: a port whose last connections linger in TIME_WAIT is free.
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     ::listen(fd, 1) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  return bound ? ntohs(address.sin_port) : 0;
}

enum class Wait { ready, exited, timed_out };

// Ready when the server on `address` answers and is the very process `pid`: on a port lost to somebody else
// another server would answer.
Wait wait_ready(const std::string& address, pid_t pid, milliseconds timeout) {
  const auto end = steady_clock::now() + timeout;
  const std::string id = fmt::format("process_id:{}\r", pid);
  while (steady_clock::now() < end) {
    if (::waitpid(pid, nullptr, WNOHANG) != 0) return Wait::exited;
    if (Result<Client> client = Client::connect(address, milliseconds(500))) {
      const auto pong = client->call({"PING"});
      const auto info = client->call({"INFO", "server"});
      if (pong && pong->text == "PONG" && info && info->text.find(id) != std::string::npos)
        return Wait::ready;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  return Wait::timed_out;
}

}  // namespace

std::uint16_t free_port() { return try_bind(0); }
bool port_is_free(std::uint16_t port) { return port != 0 && try_bind(port) == port; }

Result<RedisNode> RedisFleet::add() {
  std::string last_error = "no free port on 127.0.0.1";
  for (int attempt = 0; attempt < kPortTries; ++attempt) {
    const std::uint16_t port = free_port();
    if (port == 0) break;
    const std::string log = fmt::format("{}/redis-{}.log", options_.directory, port);
    SpawnOptions spawning;
    spawning.install_hint = "run scripts/setup, or apt-get install redis-server";
    const Result<pid_t> pid = spawn({options_.program, "--port", std::to_string(port), "--bind", "127.0.0.1",
                                     "--save", "", "--appendonly", "no", "--maxmemory", "0", "--daemonize",
                                     "no", "--dir", options_.directory, "--logfile", log},
                                    spawning);
    if (!pid) return std::unexpected(pid.error());
    RedisNode node{fmt::format("127.0.0.1:{}", port), port, *pid};
    switch (wait_ready(node.address, *pid, options_.ready_timeout)) {
      case Wait::ready:
        nodes_.push_back(node);
        return node;
      case Wait::exited:
        last_error = last_line_of(log);
        break;  // Most likely the port; the next one, then.
      case Wait::timed_out:
        end_process(*pid, steady_clock::now());
        return fail(ErrorKind::retryable,
                    fmt::format("redis-server on {} did not answer PING within {} ms; its log: {}",
                                node.address, options_.ready_timeout.count(), log));
    }
  }
  return fail(ErrorKind::internal, fmt::format("redis-server ended at once on {} ports; the last said: {}",
                                               kPortTries, last_error.empty() ? "nothing" : last_error));
}

void RedisFleet::kill(std::size_t index) {
  RedisNode& node = nodes_[index];
  if (node.pid < 0) return;
  ::kill(node.pid, SIGKILL);
  ::waitpid(node.pid, nullptr, 0);
  node.pid = -1;
}

void RedisFleet::stop() {
  std::erase_if(nodes_, [](const RedisNode& node) { return node.pid < 0; });
  for (const RedisNode& node : nodes_) ::kill(node.pid, SIGTERM);
  const auto deadline = steady_clock::now() + kStopTimeout;
  for (const RedisNode& node : nodes_) end_process(node.pid, deadline);
  nodes_.clear();
}

}  // namespace ringshift::drill
