#include "backend/sync_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "net/address.h"

namespace ringshift::backend {
namespace {

using protocol::resp::append_command;
using protocol::resp::ReplyFramer;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kReadSize = 64U << 10;

// Waits for `events`; 0 when the deadline passed.
int wait_for(int fd, short events, steady_clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd one{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&one, 1, left < 0 ? 0 : static_cast<int>(left));
    if (ready > 0) return one.revents;
    if (ready == 0 && left <= 0) return 0;
    if (ready < 0 && errno != EINTR) return POLLERR;
  }
}

}  // namespace

SyncClient::SyncClient(std::string address, SyncOptions options)
    : address_(std::move(address)), options_(std::move(options)) {}

SyncClient::~SyncClient() { hang_up(); }

void SyncClient::hang_up() {
  tls_.reset();  // Says goodbye, so the socket must be open.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<std::unique_ptr<SyncClient>> SyncClient::connect(std::string_view address, SyncOptions options) {
  std::unique_ptr<SyncClient> client(new SyncClient(std::string(address), std::move(options)));
  if (Status status = client->dial(); !status) return std::unexpected(std::move(status.error()));
  if (Status status = client->introduce(); !status) return std::unexpected(std::move(status.error()));
  return client;
}

Status SyncClient::dial() {
  const Result<net::Endpoint> endpoint = net::parse_endpoint(address_);
  if (!endpoint) return std::unexpected(endpoint.error());
  const Result<std::vector<net::SocketAddress>> candidates = net::resolve(*endpoint);
  if (!candidates) return std::unexpected(candidates.error());
  const Deadline deadline = steady_clock::now() + options_.connect_timeout;
  std::string reason;
  for (const net::SocketAddress& candidate : *candidates) {
    fd_ = ::socket(candidate.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = fd_ < 0 ? errno : 0;
    if (error == 0 && ::connect(fd_, candidate.get(), candidate.size) != 0) {
      error = errno;
      if (error == EINPROGRESS) {
        socklen_t size = sizeof(error);
        if (wait_for(fd_, POLLOUT, deadline) == 0) {
          error = ETIMEDOUT;
        } else if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
          error = errno;
        }
      }
    }
    if (error == 0) {
      const int on = 1;
      (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      if (options_.access && options_.access->tls() != nullptr) return start_tls(endpoint->host, deadline);
      return {};
    }
    reason = error == ETIMEDOUT
                 ? "no answer within " + std::to_string(options_.connect_timeout.count()) + " ms"
                 : std::strerror(error);
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  return fail(ErrorKind::retryable, "cannot connect to " + address_ + ": " + reason);
}

Status SyncClient::start_tls(std::string_view host, Deadline deadline) {
  tls_ = std::make_unique<net::TlsSession>(*options_.access->tls(), fd_, host);
  for (;;) {
    const net::TlsSession::Step step = tls_->handshake();
    if (step == net::TlsSession::Step::done) return {};
    std::string reason = tls_->problem();
    if (step != net::TlsSession::Step::failed) {
      const short wanted = step == net::TlsSession::Step::wants_read ? POLLIN : POLLOUT;
      if (wait_for(fd_, wanted, deadline) != 0) continue;
      reason = "TLS handshake: no answer within " + std::to_string(options_.connect_timeout.count()) + " ms";
    }
    hang_up();
    return fail(ErrorKind::retryable, "cannot connect to " + address_ + ": " + reason);
  }
}

Status SyncClient::introduce() {
  const Credentials credentials = options_.access ? options_.access->credentials() : Credentials{};
  if (!credentials.password.empty()) {
    std::string command;
    append_auth(command, credentials);
    const Result<std::vector<Value>> reply = pipeline(command, 1);
    if (!reply) return std::unexpected(reply.error());
    if (const Value& answer = reply->front(); answer.is_error() && auth_refused(answer.text)) {
      return std::unexpected(broke("the member refuses our password: " + answer.text, false));
    }
  }
  if (options_.name.empty()) return {};
  std::string commands;
  append_command(commands, {"CLIENT", "SETNAME", options_.name});
  append_command(commands, {"CLIENT", "ID"});
  Result<std::vector<Value>> replies = pipeline(commands, 2);
  if (!replies) return std::unexpected(std::move(replies.error()));
  for (const Value& reply : *replies) {
    if (reply.is_error())
      return std::unexpected(broke("it does not let us name the connection: " + reply.text, false));
  }
  client_id_ = static_cast<std::uint64_t>((*replies)[1].integer);
  return {};
}

Result<SyncClient::Value> SyncClient::call(std::span<const std::string_view> arguments) {
  std::string command;
  append_command(command, arguments);
  Result<std::vector<Value>> replies = exchange(command, 1);
  if (!replies) return std::unexpected(std::move(replies.error()));
  return std::move(replies->front());
}

Result<SyncClient::Value> SyncClient::call(std::initializer_list<std::string_view> arguments) {
  return call(std::span(arguments.begin(), arguments.size()));
}

Result<std::vector<SyncClient::Value>> SyncClient::pipeline(std::string_view raw_commands,
                                                            std::size_t count) {
  return exchange(raw_commands, count);
}

Status SyncClient::send(std::string_view raw_commands) {
  Result<std::vector<Value>> nothing = exchange(raw_commands, 0);
  if (!nothing) return std::unexpected(std::move(nothing.error()));
  return {};
}

Result<std::vector<SyncClient::Value>> SyncClient::receive(std::size_t count) { return exchange({}, count); }

// Writes all of `output` and takes `count` replies, whatever comes first.
Result<std::vector<SyncClient::Value>> SyncClient::exchange(std::string_view output, std::size_t count) {
  if (fd_ < 0) {
    return fail(ErrorKind::retryable, "the connection to " + address_ + " was closed before (" +
                                          closed_because_ + "): the command was not executed; connect again");
  }
  const Deadline deadline = steady_clock::now() + options_.request_timeout;
  const bool receive_only = output.empty();
  bool wrote = receive_only;  // Whether the member may have got a whole command.
  std::vector<Value> replies;
  if (const Status status = take_replies(replies, count); !status) return std::unexpected(status.error());
  while (!output.empty() || replies.size() < count) {
    // Optimistic: mostly the socket takes everything at once.
    if (!output.empty()) {
      const ssize_t sent = send_some(output);
      if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        return std::unexpected(broke(failure(errno), wrote));
      }
      if (sent > 0) {
        output.remove_prefix(static_cast<std::size_t>(sent));
        // One command that has not left as a whole cannot be executed; of several, some may be.
        wrote = wrote || output.empty() || count != 1;
        if (output.empty() && replies.size() == count) break;
      }
    }
    const bool to_write = !output.empty() || (tls_ && tls_->read_wants_write());
    const auto events = static_cast<short>(POLLIN | (to_write ? POLLOUT : 0));
    const int ready = tls_ && tls_->holds() ? POLLIN : wait_for(fd_, events, deadline);
    if (ready == 0) {
      return std::unexpected(
          broke("timed out after " + std::to_string(options_.request_timeout.count()) + " ms", wrote));
    }
    if (tls_ && tls_->read_wants_write() && (ready & POLLOUT) != 0) {
      tls_->socket_writable();
    } else if ((ready & ~POLLOUT) == 0) {
      continue;
    }
    if (const Status status = read_some(); !status) {
      return std::unexpected(broke(status.error().message, wrote));
    }
    if (const Status status = take_replies(replies, count); !status) return std::unexpected(status.error());
  }
  return replies;
}

ssize_t SyncClient::send_some(std::string_view bytes) {
  if (tls_) return tls_->write(bytes.data(), bytes.size());
  return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

ssize_t SyncClient::receive_some(char* data, std::size_t size) {
  return tls_ ? tls_->read(data, size) : ::recv(fd_, data, size, 0);
}

std::string SyncClient::failure(int error) const {
  return tls_ && !tls_->problem().empty() ? tls_->problem() : std::strerror(error);
}

Status SyncClient::read_some() {
  ssize_t size = 0;
  int error = 0;
  const std::size_t old = input_.size();
  // A long reply is read in steps as long as what is there, so that it costs few calls.
  const std::size_t want = old > kReadSize ? std::min<std::size_t>(old, 1U << 20) : kReadSize;
  input_.resize_and_overwrite(old + want, [&](char* data, std::size_t) {
    size = receive_some(data + old, want);
    error = errno;
    return old + (size > 0 ? static_cast<std::size_t>(size) : 0);
  });
  if (size > 0 || (size < 0 && (error == EAGAIN || error == EWOULDBLOCK || error == EINTR))) return {};
  return fail(ErrorKind::retryable, size == 0 ? "the member closed the connection" : failure(error));
}

// Moves whole replies from the input to `out`, up to `count` in all.
Status SyncClient::take_replies(std::vector<Value>& out, std::size_t count) {
  while (out.size() < count && input_used_ < input_.size()) {
    const std::string_view rest = std::string_view(input_).substr(input_used_);
    const ReplyFramer::Frame frame = framer_.next(rest);
    if (frame.state == ReplyFramer::State::more) {
      if (rest.size() > kMaxReplyBytes) {
        return std::unexpected(
            broke("a reply is longer than " + std::to_string(kMaxReplyBytes) + " bytes", true));
      }
      break;
    }
    if (frame.state == ReplyFramer::State::broken) return std::unexpected(broke(framer_.problem(), true));
    if (!frame.push) {
      Result<std::optional<protocol::resp::Decoded>> decoded =
          protocol::resp::decode(rest.substr(0, frame.size));
      if (!decoded) return std::unexpected(broke(decoded.error().message, true));
      if (!*decoded) return std::unexpected(broke("a reply is not whole", true));
      out.push_back(std::move((*decoded)->value));
    }
    input_used_ += frame.size;
  }
  if (input_used_ == input_.size()) {
    input_.clear();
    if (input_.capacity() > (1U << 20)) input_.shrink_to_fit();
    input_used_ = 0;
  } else if (input_used_ > input_.size() / 2) {
    input_.erase(0, input_used_);
    input_used_ = 0;
  }
  return {};
}

Error SyncClient::broke(std::string_view why, bool maybe_executed) {
  closed_because_ = why;
  hang_up();
  return Error{ErrorKind::retryable, address_ + ": " + closed_because_ +
                                         (maybe_executed ? ": the command may have been executed"
                                                         : ": the command was not executed")};
}

}  // namespace ringshift::backend
