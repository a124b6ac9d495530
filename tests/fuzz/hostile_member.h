// A member that lies: a real member's answers go through it, until it is given a script. Then what it says to
// commands is the script's bytes. No real server sends garbage, so this one is made by hand.
//
// A thread of its own. Thread-safe. Which commands a connection read is kept, so that each reply in its lies
// can be traced to the command that it stands for; one at the place of a command that was not read may be
// anybody's.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "protocol/resp/command_parser.h"
#include "protocol/resp/reply_framer.h"
#include "tests/fuzz/proxy_world.h"

namespace ringshift::proxy::fuzz {

struct Lies {
  std::string bytes;
  std::size_t piece = 4096;
  bool close_after = true;
  bool from_handshake = false;  // The handshake is answered by lies, too.
};

class HostileMember {
 public:
  static constexpr const char* kUntraced = "";  // Stands for every key.

  HostileMember(std::string path, std::string real_path)
      : path_(std::move(path)), real_path_(std::move(real_path)) {
    listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un at = unix_address(path_);
    if (::bind(listening_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(listening_, 128) != 0 || ::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) {
      found("the hostile member cannot listen on " + path_);
    }
    thread_ = std::thread([this] { serve(); });
  }
  ~HostileMember() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake();
    thread_.join();
    for (One& one : connections_) one.close();
    ::close(listening_);
    ::close(wake_[0]);
    ::close(wake_[1]);
  }
  HostileMember(const HostileMember&) = delete;
  HostileMember& operator=(const HostileMember&) = delete;
  [[nodiscard]] std::string address() const { return "unix:" + path_; }

  void lie(Lies lies) {
    const std::lock_guard lock(mutex_);
    truths_.clear();
    lies_ = std::move(lies);
    replies_ = framed(lies_.bytes);
    lying_ = true;
    if (lies_.from_handshake) {
      for (One& one : connections_) one.close();
      wake();
    }
  }
  // Honest again. Gives the replies that each key could rightly get.
  std::map<std::string, std::set<std::string>> be_honest() {
    const std::lock_guard lock(mutex_);
    lying_ = false;
    for (One& one : connections_) {
      if (one.lied) keep_untraced(one);
      if (one.lied || one.swallowed != 0) one.close();
    }
    wake();
    return std::exchange(truths_, {});
  }

 private:
  using Framer = protocol::resp::ReplyFramer;
  struct One {
    int fd = -1, real = -1;
    std::string input;
    protocol::resp::CommandParser parser;
    bool lied = false;
    std::size_t swallowed = 0;  // Commands that the lies are the answers to.
    void close() {
      if (fd >= 0) ::close(std::exchange(fd, -1));
      if (real >= 0) ::close(std::exchange(real, -1));
    }
  };

  static sockaddr_un unix_address(const std::string& path) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    return at;
  }
  static std::vector<std::string> framed(std::string_view bytes) {
    std::vector<std::string> out;
    Framer framer;
    while (!bytes.empty()) {
      const Framer::Frame frame = framer.next(bytes);
      if (frame.state != Framer::State::complete) break;
      if (!frame.push) out.emplace_back(bytes.substr(0, frame.size));
      bytes.remove_prefix(frame.size);
    }
    return out;
  }
  void wake() const {
    if (::write(wake_[1], "x", 1) < 0 && errno != EAGAIN) found("the hostile member cannot be woken");
  }

  void serve() {
    while (true) {
      std::vector<pollfd> waiting{{listening_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
      std::vector<One*> of;
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        connections_.remove_if([](const One& one) { return one.fd < 0; });
        for (One& one : connections_) {
          waiting.push_back({one.fd, POLLIN, 0});
          of.push_back(&one);
        }
      }
      ::poll(waiting.data(), waiting.size(), -1);
      const std::lock_guard lock(mutex_);
      char drained[64];
      while (::read(wake_[0], drained, sizeof drained) > 0) {
      }
      for (std::size_t i = 0; i < of.size(); ++i) {
        if (waiting[i + 2].revents != 0 && of[i]->fd == waiting[i + 2].fd) readable(*of[i]);
      }
      if (waiting[0].revents != 0) {
        const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd >= 0) connections_.emplace_back().fd = fd;
      }
    }
  }

  void readable(One& one) {
    char block[16384];
    const ssize_t n = ::recv(one.fd, block, sizeof block, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      one.close();
      return;
    }
    one.input.append(block, static_cast<std::size_t>(n));
    bool asked = false;
    using State = protocol::resp::CommandParser::State;
    while (one.fd >= 0 && !one.input.empty()) {
      const State state = one.parser.parse(one.input);
      if (state == State::error) found("the proxy sends what is no command: " + one.parser.error());
      if (state == State::need_more) {
        one.input.erase(0, one.parser.consumed());
        one.parser.drop_front();
        break;
      }
      asked = take(one) || asked;
      one.input.erase(0, one.parser.consumed());
    }
    if (asked && !one.lied) tell_lies(one);
  }
  // Whether it waits for lies.
  bool take(One& one) {
    using protocol::resp::equals_ignoring_case;
    const std::string_view name = one.parser.argument(0);
    const bool greeting = equals_ignoring_case(name, "client") || equals_ignoring_case(name, "info") ||
                          equals_ignoring_case(name, "hello");
    // Not past a command that waits for lies: answers come in the order of the commands.
    const bool honest = !lying_ || (greeting && !lies_.from_handshake && one.swallowed == 0);
    if (!one.lied && honest) {
      relay(one);
      return false;
    }
    if (one.swallowed < replies_.size() && one.parser.argument_count() > 1) {
      truths_[std::string(one.parser.argument(1))].insert(replies_[one.swallowed]);
    }
    ++one.swallowed;
    return true;
  }
  void tell_lies(One& one) {
    one.lied = true;
    for (std::size_t at = 0; at < lies_.bytes.size() && one.fd >= 0; at += lies_.piece) {
      const std::string_view piece = std::string_view(lies_.bytes).substr(at, lies_.piece);
      if (::send(one.fd, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) one.close();
    }
    if (lies_.close_after || one.fd < 0) keep_untraced(one);
    if (lies_.close_after) one.close();
  }
  void keep_untraced(const One& one) {
    for (std::size_t i = one.swallowed; i < replies_.size(); ++i) truths_[kUntraced].insert(replies_[i]);
  }
  void relay(One& one) {
    if (one.real < 0) {
      one.real = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_un at = unix_address(real_path_);
      const timeval limit{.tv_sec = 0, .tv_usec = 500'000};  // What blocks has no answer.
      ::setsockopt(one.real, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      if (::connect(one.real, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
        found("no real member");
    }
    const std::string_view raw = one.parser.raw();
    std::string reply;
    Framer framer;
    Framer::Frame frame;
    if (::send(one.real, raw.data(), raw.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(raw.size()))
      return one.close();
    while (frame.state != Framer::State::complete) {
      char block[16384];
      const ssize_t n = ::recv(one.real, block, sizeof block, 0);
      if (n <= 0) return one.close();
      reply.append(block, static_cast<std::size_t>(n));
      frame = framer.next(reply);
    }
    if (::send(one.fd, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) one.close();
  }

  const std::string path_, real_path_;
  int listening_ = -1;
  int wake_[2] = {-1, -1};
  std::mutex mutex_;  // Guards all that follows.
  std::list<One> connections_;
  bool lying_ = false, stopping_ = false;
  Lies lies_;
  std::vector<std::string> replies_;
  std::map<std::string, std::set<std::string>> truths_;
  std::thread thread_;
};

}  // namespace ringshift::proxy::fuzz
