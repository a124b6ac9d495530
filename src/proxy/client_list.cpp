// A client as CLIENT LIST shows it, with all fields of Redis 7.0 in its order. What a proxy does not have (a
// file descriptor that means something to others, argument memory) is 0.
#include <fmt/format.h>
#include <sys/socket.h>

#include <chrono>

#include "net/address.h"
#include "proxy/session.h"

namespace ringshift::proxy {

std::string Session::local_address() const {
  net::SocketAddress address;
  address.size = sizeof(address.storage);
  if (!stream_ || stream_->fd() < 0 ||
      ::getsockname(stream_->fd(), reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    return shared().address;
  }
  return address.text();
}

std::string Session::describe() const {
  const base::TimePoint now = worker_.loop().now();
  const auto seconds = [&](base::TimePoint since) {
    return std::chrono::duration_cast<std::chrono::seconds>(now - since).count();
  };
  std::string flags;
  if (subscribed()) flags += 'P';
  if (blocked_ && in_flight() != 0) flags += 'b';
  if (transaction_ != nullptr && transaction_->queueing()) flags += 'x';
  if (closing_) flags += 'c';
  if (no_evict_) flags += 'e';
  if (flags.empty()) flags = "N";
  const std::size_t output = stream_ ? stream_->queued_bytes() : 0;
  const std::size_t stored = stored_bytes_;
  return fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} "
      "qbuf=0 "
      "qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={} oll={} omem={} tot-mem={} events={} cmd={} "
      "user={} redir=-1 resp={}",
      id_, peer(), local_address(), stream_ ? stream_->fd() : -1, name_, seconds(since_),
      seconds(last_active_), flags, database_, subscriptions(ChannelKind::channel),
      subscriptions(ChannelKind::pattern), subscriptions(ChannelKind::shard),
      transaction_ != nullptr && transaction_->queueing() ? transaction_->count() : -1, output, in_flight(),
      stored, sizeof(*this) + slots_.size() * sizeof(Slot) + output + stored,
      paused_ ? (output != 0 ? "w" : "") : (output != 0 ? "rw" : "r"),
      last_command_ != nullptr ? last_command_->name : "NULL", user(), resp_ == backend::Resp::v3 ? 3 : 2);
}

}  // namespace ringshift::proxy
