#include "cli/handover.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <utility>

#include "base/log.h"

namespace ringshift::cli {
namespace {

using base::LogLevel;

constexpr std::chrono::milliseconds kAnswerWithin{5000};      // Of a predecessor, with all its sockets.
constexpr std::chrono::milliseconds kFirstWordsWithin{2000};  // Of whoever connects: he holds up all others.
constexpr std::chrono::milliseconds kServingWithin{60000};    // Of a successor, once it has the sockets.
constexpr std::chrono::milliseconds kLookAround{100};         // How soon a stop is seen.
constexpr std::chrono::milliseconds kDrainLook{10};
constexpr std::string_view kTakesOver = "takes over";  // A successor's first words.
constexpr std::string_view kListening = "listening ";  // An address, with its sockets.
constexpr std::string_view kEnd = "end";
constexpr std::string_view kBusy = "busy";
constexpr std::string_view kServing = "serving";  // And addresses, each behind a line end.
constexpr std::string_view kDrains = "draining";

// Only this user, and root, may take the listeners.
bool may_succeed(int connection, pid_t& pid) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  pid = peer.pid;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

// --- the successor's part --------------------------------------------------------------------------------

Result<std::unique_ptr<Handover>> Handover::begin(std::string path, proxy::Options& options) {
  std::unique_ptr<Handover> handover(new Handover(std::move(path)));
  if (handover->path_.empty()) return handover;
  if (const Status asked = handover->ask(); !asked) {
    return fail(asked.error().kind, "--handover " + handover->path_ + ": " + asked.error().message);
  }
  options.inherited = handover->taken_;
  return handover;
}

Status Handover::ask() {
  auto connected = net::connect_packets(path_);
  if (!connected) return std::unexpected(connected.error());
  if (!*connected) return {};
  // One that has ended meanwhile shows at the first packet.
  (void)net::send_packet(connected->get(), kTakesOver, {});
  auto sockets = std::make_shared<net::ListeningSockets>();
  const auto give_up = std::chrono::steady_clock::now() + kAnswerWithin;
  while (true) {
    auto packet = net::receive_packet(connected->get(), left_until(give_up));
    if (!packet && packet.error().kind == ErrorKind::not_found) {
      return fail(ErrorKind::retryable,
                  fmt::format("the proxy there did not hand over within {} ms", kAnswerWithin.count()));
    }
    if (!packet) return std::unexpected(packet.error());
    if (packet->text == kEnd) break;
    if (packet->text == kBusy) {
      return fail(ErrorKind::retryable, "another proxy is about to take over, or it is draining already");
    }
    if (!packet->text.starts_with(kListening)) {
      return fail(ErrorKind::denied, "the process there gives us nothing: it is another user's, or stopping");
    }
    auto& of = (*sockets)[packet->text.substr(kListening.size())];
    for (net::Descriptor& socket : packet->descriptors) of.push_back(std::move(socket));
  }
  for (const auto& [address, of] : *sockets) taken_addresses_.push_back(address);
  base::log(LogLevel::info, "proxy: takes over from the proxy at {}: {}", path_,
            fmt::join(taken_addresses_, ", "));
  predecessor_ = std::move(*connected);
  taken_ = std::move(sockets);
  return {};
}

// Our own socket is ready before the predecessor is told: what fails now leaves him as he was.
Status Handover::serving(proxy::Proxy& proxy) {
  if (path_.empty()) return {};
  proxy_ = &proxy;
  const std::string own = fmt::format("{}.{}", path_, ::getpid());
  ::unlink(own.c_str());  // Of a process of old that had our number.
  auto socket = net::listen_packets(own);
  Status done = socket ? Status() : Status(std::unexpected(socket.error()));
  if (done && predecessor_) done = tell(proxy);
  if (!done) {
    if (socket) ::unlink(own.c_str());
    return fail(done.error().kind, "--handover " + path_ + ": " + done.error().message);
  }
  proxy.predecessor_left();
  predecessor_.reset();
  if (::rename(own.c_str(), path_.c_str()) != 0) {
    ::unlink(own.c_str());
    base::log(LogLevel::error, "proxy: no successor can take over: {} cannot be made", path_);
    return {};
  }
  listening_ = std::move(*socket);
  thread_ = std::thread([this] { wait_for_successor(); });
  return {};
}

// A predecessor that has ended meanwhile is as good as one that drains.
Status Handover::tell(const proxy::Proxy& proxy) {
  std::string text(kServing);
  for (const proxy::Options::Listen& at : proxy.listening()) {
    if (std::ranges::find(taken_addresses_, at.address) != taken_addresses_.end()) text += "\n" + at.address;
  }
  Status told = net::send_packet(predecessor_.get(), text, {});
  if (told) {
    const auto answer = net::receive_packet(predecessor_.get(), kAnswerWithin);
    if (answer && answer->text == kDrains) return {};
  }
  const auto still = net::connect_packets(path_);
  if (still && !*still) return {};
  return fail(ErrorKind::retryable, "the proxy there does not drain; it serves on as before");
}

// --- the predecessor's part ------------------------------------------------------------------------------

Handover::~Handover() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  // A successor has put its own there.
  if (listening_ && !replaced_) ::unlink(path_.c_str());
}

std::vector<std::string> Handover::passed_on() const {
  const std::lock_guard lock(mutex_);
  return passed_on_;
}

void Handover::wait_for_successor() {
  while (!stopping_ && !replaced_) {
    pollfd waits{listening_.get(), POLLIN, 0};
    if (::poll(&waits, 1, static_cast<int>(kLookAround.count())) <= 0) continue;
    const net::Descriptor connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) serve(connection.get());
    if (replaced_) break;
    const std::lock_guard lock(mutex_);
    passed_on_.clear();
  }
}

void Handover::serve(int connection) {
  pid_t pid = 0;
  if (!may_succeed(connection, pid)) {
    base::log(LogLevel::warning, "proxy: process {} of another user asked for the listeners: refused", pid);
    return;
  }
  if (!says_that_it_takes_over(connection)) {
    base::log(LogLevel::warning,
              "proxy: process {} connected to the handover socket and did not ask for anything", pid);
    return;
  }
  if (!send_sockets(connection)) return;
  const auto give_up = std::chrono::steady_clock::now() + kServingWithin;
  while (!stopping_ && std::chrono::steady_clock::now() < give_up) {
    const auto packet = net::receive_packet(connection, kLookAround);
    if (!packet && packet.error().kind == ErrorKind::not_found) {
      // Others that would take over must not wait for this one.
      const net::Descriptor other(
          ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (other) (void)net::send_packet(other.get(), kBusy, {});
      continue;
    }
    if (!packet || !packet->text.starts_with(kServing)) break;
    {
      const std::lock_guard lock(mutex_);
      passed_on_ = lines_of(std::string_view(packet->text).substr(kServing.size()));
    }
    replaced_ = true;
    (void)net::send_packet(connection, kDrains, {});
    listening_.reset();
    base::log(LogLevel::info, "proxy: process {} has taken over", pid);
    (void)::kill(::getpid(), SIGTERM);
    return;
  }
  base::log(LogLevel::warning, "proxy: process {} asked for the listeners and did not come to serve", pid);
}

// Others wait meanwhile, no longer than a successor waits for an answer.
bool Handover::says_that_it_takes_over(int connection) const {
  const auto give_up = std::chrono::steady_clock::now() + kFirstWordsWithin;
  while (!stopping_ && std::chrono::steady_clock::now() < give_up) {
    const auto packet = net::receive_packet(connection, std::min(kLookAround, left_until(give_up)));
    if (packet) return packet->text == kTakesOver;
    if (packet.error().kind != ErrorKind::not_found) return false;
  }
  return false;
}

bool Handover::send_sockets(int connection) {
  net::ListeningSockets sockets = proxy_->sockets();
  if (sockets.empty()) {
    (void)net::send_packet(connection, kBusy, {});
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, of] : sockets) passed_on_.push_back(address);
  }
  for (const auto& [address, of] : sockets) {
    for (std::size_t at = 0; at < of.size(); at += net::kMaxPacketDescriptors) {
      const auto part = std::span(of).subspan(at, std::min(net::kMaxPacketDescriptors, of.size() - at));
      if (!net::send_packet(connection, std::string(kListening) + address, part)) return false;
    }
  }
  return net::send_packet(connection, kEnd, {}).has_value();
}

// ---------------------------------------------------------------------------------------------------------

void drain(proxy::Proxy& proxy, const Signals& signals, const proxy::Options& options,
           const Handover& handover) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const std::vector<std::string> passed_on = handover.passed_on();
  auto limit = handover.replaced() ? options.drain_timeout : options.shutdown_grace;
  base::TimePoint until = now() + limit;
  base::log(LogLevel::info, "proxy: drains: {} clients, at most {} ms", proxy.clients(), limit.count());
  proxy.drain(until, passed_on);
  while (!proxy.drained() && now() < until) {
    const auto signal = signals.wait_for(kDrainLook);
    if (!signal || *signal == SIGHUP || now() + options.shutdown_grace >= until) continue;
    until = now() + options.shutdown_grace;
    proxy.drain(until, passed_on);
  }
  if (const std::size_t left = proxy.clients(); left != 0) {
    base::log(LogLevel::warning, "proxy: {} clients are left and disconnected", left);
  }
}

}  // namespace ringshift::cli
