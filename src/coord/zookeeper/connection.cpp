#include "coord/zookeeper/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "net/address.h"

namespace ringshift::coord::zookeeper {
namespace {

constexpr std::size_t kReadBytes = 64U << 10;

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

enum class Ready { yes, late, cancelled };

Ready wait_for(int fd, short events, const Canceller* canceller, Hurry* hurry, Deadline deadline) {
  const Clock::time_point since = Clock::now();
  while (true) {
    const bool hurried = hurry != nullptr && hurry->begun();
    const Deadline until = hurried ? std::min(deadline, hurry->limit(since)) : deadline;
    pollfd fds[3] = {{fd, events, 0},
                     {canceller == nullptr ? -1 : canceller->fd(), POLLIN, 0},
                     {hurry == nullptr || hurried ? -1 : hurry->fd(), POLLIN, 0}};
    const int count = ::poll(fds, 3, milliseconds_until(until));
    if (count > 0 && fds[1].revents != 0) return Ready::cancelled;
    if (count > 0 && fds[0].revents != 0) return Ready::yes;
    if (count > 0) continue;  // The hurry has begun.
    if (count == 0 && Clock::now() >= until) {
      if (hurried) hurry->in_vain();
      return Ready::late;
    }
    if (count < 0 && errno != EINTR) return Ready::yes;  // The call that follows tells why.
  }
}

Result<net::Descriptor> connect_to(const net::SocketAddress& address, const Connection::Target& target,
                                   Deadline deadline) {
  const std::string& endpoint = target.endpoint;
  net::Descriptor fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(ErrorKind::internal, fmt::format("socket: {}", std::strerror(errno)));
  int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int error = ::connect(fd.get(), address.get(), address.size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    switch (wait_for(fd.get(), POLLOUT, target.canceller, target.hurry, deadline)) {
      case Ready::late:
        error = ETIMEDOUT;
        break;
      case Ready::cancelled:
        error = ECANCELED;
        break;
      case Ready::yes: {
        socklen_t size = sizeof error;
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
    }
  }
  if (error != 0) {
    return fail(ErrorKind::retryable, fmt::format("zk://{}: {}", endpoint, std::strerror(error)));
  }
  return fd;
}

std::string packet_of(std::string_view body) {
  std::string out;
  const auto size = static_cast<std::uint32_t>(body.size());
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>((size >> shift) & 0xff));
  out.append(body);
  return out;
}

}  // namespace

Canceller::Canceller() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Canceller::fire() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

void Hurry::begin(std::chrono::milliseconds most) noexcept {
  most_ = most;
  began_ = Clock::now();
  begun_ = true;
  signal_.fire();
}

Deadline Hurry::limit(Clock::time_point since) const noexcept {
  return lost_ ? since : std::max(since, began_) + most_;
}

Connection::Connection(const Target& target, net::Descriptor socket)
    : endpoint_(target.endpoint),
      canceller_(target.canceller),
      hurry_(target.hurry),
      socket_(std::move(socket)) {}

Result<std::unique_ptr<Connection>> Connection::open(const Target& target, Deadline deadline) {
  const auto endpoint = net::parse_endpoint(target.endpoint);
  if (!endpoint) return std::unexpected(endpoint.error());
  const auto addresses = net::resolve(*endpoint);
  if (!addresses) return fail(ErrorKind::retryable, addresses.error().message);
  Error last;
  for (const net::SocketAddress& address : *addresses) {
    auto socket = connect_to(address, target, deadline);
    if (!socket) {
      last = std::move(socket.error());
      continue;
    }
    std::unique_ptr<Connection> connection(new Connection(target, *std::move(socket)));
    if (Status greeted = connection->greet(target, deadline); !greeted) {
      return std::unexpected(std::move(greeted.error()));
    }
    return connection;
  }
  return std::unexpected(std::move(last));
}

Status Connection::greet(const Target& target, Deadline deadline) {
  const auto timeout = static_cast<std::int32_t>(
      std::min<std::int64_t>(target.timeout.count(), std::numeric_limits<std::int32_t>::max()));
  const std::string hello = connect_request(timeout, target.session.id, target.session.password);
  if (Status sent = send(packet_of(hello), deadline); !sent) return sent;
  const Result<std::string> packet = read_packet(deadline);
  if (!packet) return std::unexpected(packet.error());
  Result<Connected> answer = read_connected(*packet);
  if (!answer)
    return fail(ErrorKind::internal, fmt::format("zk://{}: {}", endpoint_, answer.error().message));
  if (answer->timeout_ms <= 0 || answer->session == 0) {
    broken_ = true;
    return fail(ErrorKind::not_found, fmt::format("zk://{}: the session is over", endpoint_));
  }
  session_ = {answer->session, std::move(answer->password)};
  timeout_ = std::chrono::milliseconds(answer->timeout_ms);
  greeted_ = true;
  if (target.credentials.empty()) return {};
  if (Status sent = send(packet_of(auth_request("digest", target.credentials)), deadline); !sent) return sent;
  while (true) {
    const Result<std::string> packet_now = read_packet(deadline);
    if (!packet_now) return std::unexpected(packet_now.error());
    std::string_view rest = *packet_now;
    const Result<Header> header = read_header(rest);
    if (!header) return std::unexpected(header.error());
    if (header->xid != kXidAuth) continue;
    if (header->code == Code::ok) return {};
    broken_ = true;
    return std::unexpected(to_error(header->code, endpoint_));
  }
}

Result<std::vector<Reply>> Connection::call(std::vector<std::string> requests, Deadline deadline) {
  std::string out;
  const std::int32_t first = next_xid_;
  for (std::string& request : requests) {
    if (request.size() > kRequestBytesMax) {  // Nothing is sent yet.
      return fail(
          ErrorKind::invalid,
          fmt::format("a request of {} bytes: ZooKeeper takes {} at once (its jute.maxbuffer); what is "
                      "written together must be smaller",
                      request.size(), kRequestBytesMax));
    }
    set_xid(request, next_xid_);
    next_xid_ = next_xid_ == std::numeric_limits<std::int32_t>::max() ? 1 : next_xid_ + 1;
    out += packet_of(request);
  }
  if (Status sent = send(out, deadline); !sent) return std::unexpected(std::move(sent.error()));
  std::vector<Reply> replies;
  std::int32_t expected = first;
  while (replies.size() < requests.size()) {
    Result<std::string> packet = read_packet(deadline);
    if (!packet) return std::unexpected(std::move(packet.error()));
    std::string_view rest = *packet;
    const Result<Header> header = read_header(rest);
    if (!header) return std::unexpected(break_off(header.error().message));
    if (header->xid == kXidNotification) {
      if (Status noted = note(rest); !noted) return std::unexpected(std::move(noted.error()));
      continue;
    }
    if (header->xid < 0) continue;
    if (header->xid != expected) {
      return std::unexpected(break_off(fmt::format("answers {} instead of {}", header->xid, expected)));
    }
    expected = expected == std::numeric_limits<std::int32_t>::max() ? 1 : expected + 1;
    replies.push_back({*header, std::string(rest)});
  }
  return replies;
}

Result<Reply> Connection::call(std::string request, Deadline deadline) {
  std::vector<std::string> one;
  one.push_back(std::move(request));
  Result<std::vector<Reply>> replies = call(std::move(one), deadline);
  if (!replies) return std::unexpected(std::move(replies.error()));
  return std::move(replies->front());
}

Status Connection::ping(Deadline deadline) {
  if (Status sent = send_ping(deadline); !sent) return sent;
  while (true) {
    const Result<std::string> packet = read_packet(deadline);
    if (!packet) return std::unexpected(packet.error());
    std::string_view rest = *packet;
    const Result<Header> header = read_header(rest);
    if (!header) return std::unexpected(break_off(header.error().message));
    if (header->xid == kXidNotification) {
      if (Status noted = note(rest); !noted) return noted;
    }
    if (header->xid == kXidPing) return {};
  }
}

Status Connection::send_ping(Deadline deadline) { return send(packet_of(ping_request()), deadline); }

Result<bool> Connection::wait(Deadline until) {
  bool any = false;
  while (true) {
    while (std::optional<std::string> packet = cut_packet()) {
      std::string_view rest = *packet;
      const Result<Header> header = read_header(rest);
      if (!header) return std::unexpected(break_off(header.error().message));
      any = true;
      if (header->xid != kXidNotification) continue;
      if (Status noted = note(rest); !noted) return std::unexpected(std::move(noted.error()));
    }
    if (broken_) return std::unexpected(break_off("sent what is no packet"));
    if (any) return true;
    const Result<bool> more = fill(until);
    if (!more || !*more) return more;
  }
}

void Connection::close_session() noexcept {
  if (broken_) return;
  const std::string bytes = packet_of(close_request());
  static_cast<void>(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  broken_ = true;
}

std::vector<Notification> Connection::take_notifications() { return std::exchange(notifications_, {}); }

bool Connection::hung_up() {
  if (broken_) return true;
  char byte = 0;
  const ssize_t count = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool alive = count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  if (!alive) broken_ = true;
  return !alive;
}

Status Connection::send(std::string_view bytes, Deadline deadline) {
  if (broken_) return fail(ErrorKind::retryable, fmt::format("zk://{}: the connection is lost", endpoint_));
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return std::unexpected(break_off(std::strerror(errno)));
    switch (wait_for(socket_.get(), POLLOUT, canceller_, hurry_, deadline)) {
      case Ready::yes:
        break;
      case Ready::late:
        return std::unexpected(break_off("no answer in time"));
      case Ready::cancelled:
        return std::unexpected(break_off("cancelled"));
    }
  }
  return {};
}

Result<std::string> Connection::read_packet(Deadline deadline) {
  while (true) {
    if (std::optional<std::string> packet = cut_packet()) return *std::move(packet);
    if (broken_) return std::unexpected(break_off("sent what is no packet"));
    const Result<bool> more = fill(deadline);
    if (!more) return std::unexpected(more.error());
    if (!*more) return std::unexpected(break_off("no answer in time"));
  }
}

std::optional<std::string> Connection::cut_packet() {
  const std::string_view rest = std::string_view(input_).substr(consumed_);
  if (rest.size() < 4) return std::nullopt;
  std::size_t size = 0;
  for (int i = 0; i < 4; ++i)
    size = (size << 8) | static_cast<unsigned char>(rest[static_cast<std::size_t>(i)]);
  if (size > kReplyBytesMax) {  // Also what a negative length looks like.
    broken_ = true;
    return std::nullopt;
  }
  if (rest.size() < 4 + size) return std::nullopt;
  std::string packet(rest.substr(4, size));
  consumed_ += 4 + size;
  if (consumed_ == input_.size()) {
    input_.clear();
    consumed_ = 0;
  }
  return packet;
}

Result<bool> Connection::fill(Deadline deadline) {
  switch (wait_for(socket_.get(), POLLIN, canceller_, hurry_, deadline)) {
    case Ready::yes:
      break;
    case Ready::late:
      return false;
    case Ready::cancelled:
      return std::unexpected(break_off("cancelled"));
  }
  input_.erase(0, std::exchange(consumed_, 0));
  const std::size_t before = input_.size();
  input_.resize(before + kReadBytes);
  const ssize_t count = ::recv(socket_.get(), input_.data() + before, kReadBytes, 0);
  input_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count > 0) {
    heard_at_ = Clock::now();
    return true;
  }
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  return std::unexpected(
      break_off(count < 0  ? std::strerror(errno)
                : greeted_ ? "the server closed the connection"
                           : "the server closed the connection before its greeting: it has no quorum, or its "
                             "maxClientCnxns is reached"));
}

Status Connection::note(std::string_view body) {
  Result<Notification> notification = read_notification(body);
  if (!notification) return std::unexpected(break_off(notification.error().message));
  if (notification->type < 0) return {};  // The session's state, which replies tell as well.
  if (notifications_.size() >= kNotificationsMax) {
    return std::unexpected(break_off(fmt::format("more than {} unread notifications", kNotificationsMax)));
  }
  notifications_.push_back(*std::move(notification));
  return {};
}

Error Connection::break_off(std::string why) {
  broken_ = true;
  return {ErrorKind::retryable, fmt::format("zk://{}: {}", endpoint_, why)};
}

}  // namespace ringshift::coord::zookeeper
