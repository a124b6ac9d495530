#include "tests/contract/registry_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "coord/coordinator.h"
#include "http/client.h"
#include "registry/server.h"

namespace ringshift::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int listen_on(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = loopback(port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(fd, 512) != 0)
    std::abort();
  return fd;
}

std::uint16_t port_of(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace

std::uint16_t free_port() {
  const int fd = listen_on(0);
  const std::uint16_t port = port_of(fd);
  close(fd);
  return port;
}

namespace {

// The ZooKeeper that a test left running for the next one.
struct LeftRunning {
  std::string directory;
  std::uint16_t port = 0;
  pid_t pid = -1;
  int tests = 0;
  ~LeftRunning() {
    if (pid > 0) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }
} left_running;

}  // namespace

RegistryProcess::RegistryProcess(Kind kind) : kind_(kind), port_(free_port()), peer_port_(free_port()) {
  if (kind_ == Kind::zookeeper) below_ = fmt::format("/test-{}", ++left_running.tests);
  if (kind_ == Kind::zookeeper && left_running.pid > 0) {
    directory_ = left_running.directory;
    port_ = left_running.port;
    pid_ = left_running.pid;
    return;
  }
  std::string pattern = std::filesystem::temp_directory_path() / "ringshift-registry-XXXXXX";
  directory_ = mkdtemp(pattern.data());
  start();
}

RegistryProcess::~RegistryProcess() {
  if (kind_ == Kind::zookeeper && pid_ > 0) {
    left_running.directory = directory_;
    left_running.port = port_;
    left_running.pid = pid_;
    return;
  }
  if (pid_ > 0) kill9();
  std::filesystem::remove_all(directory_);
}

std::string RegistryProcess::url_at(std::uint16_t port) const {
  return fmt::format("{}://127.0.0.1:{}{}", kind_ == Kind::zookeeper ? "zk" : "http", port, below_);
}

std::vector<std::string> RegistryProcess::command() {
  const std::string peer = fmt::format("http://127.0.0.1:{}", peer_port_);
  const std::string data = directory_ + "/data";
  if (kind_ == Kind::ours) return {"/proc/self/exe", "--serve-registry", std::to_string(port_), data};
  if (kind_ == Kind::etcd) {
    return {"/usr/bin/etcd",
            "--name=test",
            "--data-dir=" + data,
            "--listen-client-urls=" + url(),
            "--advertise-client-urls=" + url(),
            "--listen-peer-urls=" + peer,
            "--initial-advertise-peer-urls=" + peer,
            "--initial-cluster=test=" + peer,
            "--bcrypt-cost=4",  // What a password costs is not tested here.
            "--log-level=error"};
  }
  const std::string file = directory_ + "/zoo.cfg";
  std::ofstream(file) << fmt::format(
      "dataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\ntickTime=500\nmaxSessionTimeout=120000\n"
      "maxClientCnxns=0\nadmin.enableServer=false\n",
      data, port_);
  // No fsync: what is killed is the process, not the machine.
  return {"/usr/bin/java",
          "-Xmx256m",
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1",
          "-Dzookeeper.forceSync=no",
          "-cp",
          "/usr/share/java/zookeeper.jar",
          "org.apache.zookeeper.server.ZooKeeperServerMain",
          file};
}

bool RegistryProcess::answers() const {
  if (kind_ == Kind::zookeeper) {
    const auto coordinator = coord::connect({{url()}, std::chrono::milliseconds(3000)});
    return coordinator && (*coordinator)->get("/ringshift/there").has_value();
  }
  http::Client client;
  http::Call health;
  health.method = "GET";
  health.url = url() + "/health";
  const auto answer = client.send(health);
  return answer && answer->body.find("true") != std::string::npos;
}

void RegistryProcess::start() {
  std::vector<std::string> words = command();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // Nothing outlives the test.
    const int log = open((directory_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(log, 1);
    dup2(log, 2);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  for (int i = 0; i < 1200; ++i) {
    if (answers()) return;
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) break;  // It ended: is it installed?
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::fprintf(stderr, "%s did not start (scripts/setup installs it); its log is in %s\n", words[0].c_str(),
               directory_.c_str());
  std::abort();
}

void RegistryProcess::signal(int number) { kill(pid_, number); }

void RegistryProcess::kill9() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  if (kind_ == Kind::zookeeper) left_running = {"", 0, -1, left_running.tests};
}

void RegistryProcess::wipe() {
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove_all(directory_ + "/data" + suffix);
}

Relay::Relay(std::uint16_t target) : target_(target), listener_(listen_on(0)) {
  port_ = port_of(listener_);
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  stopping_ = true;
  thread_.join();
  close(listener_);
}

void Relay::cut() {
  cut_ = true;
  while (open_ != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Relay::restore() { cut_ = false; }

void Relay::run() {
  std::vector<std::pair<int, int>> pairs;
  const auto close_pair = [&](std::size_t index) {
    close(pairs[index].first);
    close(pairs[index].second);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(index));
  };
  while (!stopping_) {
    if (cut_) {
      while (!pairs.empty()) close_pair(0);
    }
    open_ = static_cast<int>(pairs.size());
    std::vector<pollfd> ready = {{listener_, POLLIN, 0}};
    for (const auto& [a, b] : pairs) {
      ready.push_back({a, POLLIN, 0});
      ready.push_back({b, POLLIN, 0});
    }
    poll(ready.data(), ready.size(), 5);
    for (std::size_t i = pairs.size(); i-- > 0;) {
      const auto [a, b] = pairs[i];
      char buffer[65536];
      bool dead = false;
      for (const auto& [from, to, events] :
           {std::tuple{a, b, ready[1 + 2 * i].revents}, {b, a, ready[2 + 2 * i].revents}}) {
        if (events == 0) continue;
        const ssize_t count = recv(from, buffer, sizeof buffer, 0);
        dead = dead || count <= 0 || send(to, buffer, static_cast<std::size_t>(count), MSG_NOSIGNAL) != count;
      }
      if (dead) close_pair(i);
    }
    if ((ready[0].revents & POLLIN) == 0) continue;
    const int client = accept(listener_, nullptr, nullptr);
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(target_);
    const bool connected = connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    pairs.emplace_back(client, server);
    open_ = static_cast<int>(pairs.size());
    if (cut_ || !connected) close_pair(pairs.size() - 1);
  }
  while (!pairs.empty()) close_pair(0);
}

}  // namespace ringshift::test

// The tests' own program is the registry, too, when asked so.
int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--serve-registry") {
    const auto server = ringshift::registry::Server::start(
        {"127.0.0.1", static_cast<std::uint16_t>(std::atoi(argv[2])), argv[3]});
    if (!server) {
      std::fprintf(stderr, "%s\n", server.error().message.c_str());
      return 1;
    }
    pause();
    return 0;
  }
  signal(SIGPIPE, SIG_IGN);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
