// A real redis-server for tests: on a free port of 127.0.0.1, without persistence, in a directory of its
// own under /tmp. It is ended by its pid with the object, and dies with the test process in any case.
//
//   RedisProcess redis;             // serves when the constructor returns
//   redis.address()                 // "127.0.0.1:43121"
//   redis.pause(); redis.resume();  // SIGSTOP, SIGCONT
//   redis.kill(); redis.start();    // kill -9, and again on the same port
//   redis.command("SET a b")        // inline command over a connection of its own: the raw reply
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ringshift::test {

// A port that was free a moment ago.
inline std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(in);
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&in), size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&in), &size) != 0) {
    throw std::runtime_error("no free port");
  }
  ::close(fd);
  return ntohs(in.sin_port);
}

class RedisProcess {
 public:
  // `arguments` are appended to the command line, for example {"--maxmemory", "10mb"}.
  explicit RedisProcess(std::vector<std::string> arguments = {}) : arguments_(std::move(arguments)) {
    std::string pattern = "/tmp/rs_redis_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    directory_ = pattern;
    for (int attempt = 0;; ++attempt) {  // Somebody else may take the port first.
      port_ = free_port();
      if (try_start()) return;
      if (attempt == 5) throw std::runtime_error("redis-server does not start; see " + directory_ + "/log");
    }
  }
  ~RedisProcess() {
    kill();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  RedisProcess(const RedisProcess&) = delete;
  RedisProcess& operator=(const RedisProcess&) = delete;

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  void pause() const { ::kill(pid_, SIGSTOP); }
  void resume() const { ::kill(pid_, SIGCONT); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void start() {
    if (!try_start()) throw std::runtime_error("redis-server does not start again on " + address());
  }

  // Sends one inline command and returns the raw reply, up to its first pause of 2 s. Throws when nothing
  // comes.
  [[nodiscard]] std::string command(std::string_view line) const {
    const int fd = dial();
    if (fd < 0) throw std::runtime_error("cannot connect to " + address());
    // With a PING behind it, so that the end of the reply shows without parsing.
    const std::string text = std::string(line) + "\r\nECHO rs-end-of-reply\r\n";
    constexpr std::string_view kEnd = "$15\r\nrs-end-of-reply\r\n";
    std::string reply;
    if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) {
      char buffer[16384];
      while (!reply.ends_with(kEnd)) {
        const ssize_t size = ::recv(fd, buffer, sizeof(buffer), 0);
        if (size <= 0) break;
        reply.append(buffer, static_cast<std::size_t>(size));
      }
    }
    ::close(fd);
    if (!reply.ends_with(kEnd))
      throw std::runtime_error("no reply from " + address() + " to " + std::string(line));
    reply.resize(reply.size() - kEnd.size());
    return reply;
  }

 private:
  [[nodiscard]] int dial() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit{.tv_sec = 2, .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons(port_);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&in), sizeof(in)) == 0) return fd;
    ::close(fd);
    return -1;
  }

  bool try_start() {
    std::vector<std::string> words{"redis-server",
                                   "--port",
                                   std::to_string(port_),
                                   "--bind",
                                   "127.0.0.1",
                                   "--save",
                                   "",
                                   "--appendonly",
                                   "no",
                                   "--dir",
                                   directory_,
                                   "--logfile",
                                   directory_ + "/log",
                                   "--enable-debug-command",
                                   "yes"};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);  // The parent died before prctl.
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    for (int i = 0; i < 500; ++i) {
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return false;
      }
      const int fd = dial();
      if (fd >= 0) {
        ::close(fd);
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill();
    return false;
  }

  std::vector<std::string> arguments_;
  std::string directory_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace ringshift::test
