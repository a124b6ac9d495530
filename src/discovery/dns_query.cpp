#include "discovery/dns_query.h"

#include <ares.h>
#include <fmt/format.h>
#include <poll.h>

#include <mutex>

namespace ringshift::discovery {
namespace {

constexpr int kDnsTries = 2;        // At each server.
constexpr int kDnsPollMs = 100;     // Within which cancel() is noticed.
constexpr int kDnsUdpBytes = 1232;  // What passes everywhere in one piece.
constexpr int kClassInternet = 1;

struct Outcome {
  bool done = false;
  int status = ARES_SUCCESS;
  std::string bytes;

  static void take(void* self, int status, int, unsigned char* bytes, int size) {
    auto* outcome = static_cast<Outcome*>(self);
    outcome->done = true;
    outcome->status = status;
    if (bytes != nullptr && size > 0)
      outcome->bytes.assign(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
};

// Until c-ares says that it is over, by its timeouts at the latest.
void drive(ares_channel channel, const Outcome& outcome, const std::atomic<bool>& cancelled) {
  while (!outcome.done) {
    if (cancelled.load()) ares_cancel(channel);
    if (outcome.done) return;
    ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
    const int wanted = ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
    pollfd waits[ARES_GETSOCK_MAXNUM];
    nfds_t count = 0;
    for (int i = 0; i < ARES_GETSOCK_MAXNUM; ++i) {
      short events = 0;
      if (ARES_GETSOCK_READABLE(wanted, i)) events |= POLLIN;
      if (ARES_GETSOCK_WRITABLE(wanted, i)) events |= POLLOUT;
      if (events != 0) waits[count++] = {sockets[i], events, 0};
    }
    timeval most{0, kDnsPollMs * 1000};
    timeval rest{};
    const timeval* until = ares_timeout(channel, &most, &rest);
    ::poll(waits, count, static_cast<int>(until->tv_sec * 1000 + until->tv_usec / 1000 + 1));
    if (count == 0) ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    for (nfds_t i = 0; i < count; ++i) {
      const bool in = (waits[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0;
      const bool out = (waits[i].revents & POLLOUT) != 0;
      ares_process_fd(channel, in ? waits[i].fd : ARES_SOCKET_BAD, out ? waits[i].fd : ARES_SOCKET_BAD);
    }
  }
}

}  // namespace

// A new one for each question: so resolv.conf is read as it is now, and a change of network does no harm.
struct DnsQuery::Channel {
  ares_channel channel = nullptr;
  ~Channel() {
    if (channel != nullptr) ares_destroy(channel);
  }
};

DnsQuery::DnsQuery(std::vector<std::string> servers, std::chrono::milliseconds timeout)
    : servers_(std::move(servers)), timeout_(timeout) {
  static std::once_flag once;
  std::call_once(once, [] { ares_library_init(ARES_LIB_INIT_ALL); });
}

DnsQuery::~DnsQuery() = default;

Result<std::string> DnsQuery::ask(const std::string& name, RecordType type) {
  Channel channel;
  ares_options options{};
  options.flags = ARES_FLAG_EDNS;
  options.ednspsz = kDnsUdpBytes;
  options.timeout = static_cast<int>(timeout_.count());
  options.tries = kDnsTries;
  int status = ares_init_options(&channel.channel, &options,
                                 ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
  if (status == ARES_SUCCESS && !servers_.empty())
    status = ares_set_servers_ports_csv(channel.channel, fmt::format("{}", fmt::join(servers_, ",")).c_str());
  if (status != ARES_SUCCESS) {
    return fail(ErrorKind::invalid,
                fmt::format("DNS servers '{}' are not usable ({}): give addresses, as 10.0.0.2:53",
                            fmt::join(servers_, ","), ares_strerror(status)));
  }
  Outcome outcome;
  ares_query(channel.channel, name.c_str(), kClassInternet, static_cast<int>(type), &Outcome::take, &outcome);
  drive(channel.channel, outcome, cancelled_);
  if (outcome.status == ARES_SUCCESS) return std::move(outcome.bytes);
  if (outcome.status == ARES_ENOTFOUND || outcome.status == ARES_ENODATA) return std::string();
  return fail(outcome.status == ARES_EBADNAME ? ErrorKind::invalid : ErrorKind::retryable,
              fmt::format("DNS name {}: {}", name, ares_strerror(outcome.status)));
}

}  // namespace ringshift::discovery
