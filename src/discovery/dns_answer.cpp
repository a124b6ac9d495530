#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <fmt/format.h>
#include <resolv.h>

#include <algorithm>

#include "base/ascii.h"
#include "discovery/dns.h"

namespace ringshift::discovery {
namespace {

constexpr std::size_t kDnsBytesMax = 65'535;
constexpr std::size_t kSrvFixedBytes = 6;  // Before the target.

std::uint16_t short_at(const unsigned char* at) { return static_cast<std::uint16_t>(at[0] << 8 | at[1]); }

bool read_address(const ns_rr& record, int family, DnsAnswer& answer) {
  const std::size_t size = family == AF_INET ? 4 : 16;
  char text[INET6_ADDRSTRLEN];
  if (ns_rr_rdlen(record) != size || inet_ntop(family, ns_rr_rdata(record), text, sizeof text) == nullptr)
    return false;
  answer.addresses.emplace_back(text);
  return true;
}

bool read_service(const ns_msg& message, const ns_rr& record, DnsAnswer& answer) {
  const unsigned char* data = ns_rr_rdata(record);
  if (ns_rr_rdlen(record) <= kSrvFixedBytes) return false;
  char target[NS_MAXDNAME];
  if (dn_expand(ns_msg_base(message), ns_msg_end(message), data + kSrvFixedBytes, target, sizeof target) < 0)
    return false;
  // "." says: this service is not to be had here.
  if (target[0] == '\0') return true;
  // Servers may spell a name now so and now so (RFC 4343), and it becomes an id.
  answer.services.push_back(
      {short_at(data), short_at(data + 2), short_at(data + 4), base::ascii_lower(std::string_view(target))});
  return true;
}

}  // namespace

Result<DnsAnswer> parse_dns_answer(std::string_view bytes, RecordType type) {
  const auto bad = [](std::string_view what) {
    return fail(ErrorKind::invalid, fmt::format("the DNS answer is none: {}", what));
  };
  ns_msg message;
  if (bytes.size() > kDnsBytesMax || ns_initparse(reinterpret_cast<const unsigned char*>(bytes.data()),
                                                  static_cast<int>(bytes.size()), &message) != 0)
    return bad("its form is not a message's");
  DnsAnswer answer;
  std::uint32_t ttl = 0x7fffffff;
  for (int i = 0; i < ns_msg_count(message, ns_s_an); ++i) {
    ns_rr record;
    if (ns_parserr(&message, ns_s_an, i, &record) != 0) return bad("a record is cut short");
    if (ns_rr_class(record) != ns_c_in) continue;
    ttl = std::min(ttl, static_cast<std::uint32_t>(ns_rr_ttl(record)));
    if (static_cast<int>(ns_rr_type(record)) != static_cast<int>(type)) continue;  // An alias on the way.
    const bool good = type == RecordType::srv
                          ? read_service(message, record, answer)
                          : read_address(record, type == RecordType::a ? AF_INET : AF_INET6, answer);
    if (!good) return bad("a record has the wrong form");
  }
  answer.ttl = std::chrono::seconds(ns_msg_count(message, ns_s_an) == 0 ? 0 : ttl);
  return answer;
}

Seen dns_instances(const DnsAnswer& answer, std::uint16_t port) {
  Seen seen;
  for (const std::string& address : answer.addresses) {
    Instance instance;
    instance.id = fmt::format("{}:{}", address, port);
    instance.address = join_address(address, port);
    seen.add(std::move(instance));
  }
  std::uint16_t lowest = 0xffff;
  for (const auto& service : answer.services) lowest = std::min(lowest, service.priority);
  for (const auto& service : answer.services) {
    if (service.priority != lowest) continue;
    Instance instance;
    instance.id = fmt::format("{}:{}", service.target, service.port);
    instance.address = instance.id;
    add_label(instance, "dns.weight", fmt::format("{}", service.weight));
    seen.add(std::move(instance));
  }
  // Answers may name a record twice, and in any order.
  std::ranges::sort(seen.all, {}, &Instance::id);
  const auto same = [](const Instance& a, const Instance& b) { return a.id == b.id; };
  seen.all.erase(std::unique(seen.all.begin(), seen.all.end(), same), seen.all.end());
  return seen;
}

}  // namespace ringshift::discovery
