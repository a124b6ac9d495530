// One DNS question at a time, by c-ares. One thread; cancel() from any other ends the question under way.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "discovery/dns.h"

namespace ringshift::discovery {

class DnsQuery {
 public:
  DnsQuery(std::vector<std::string> servers, std::chrono::milliseconds timeout);
  ~DnsQuery();
  DnsQuery(const DnsQuery&) = delete;
  DnsQuery& operator=(const DnsQuery&) = delete;

  // The reply's bytes; "" for NXDOMAIN and no data. Any other failure is retryable.
  [[nodiscard]] Result<std::string> ask(const std::string& name, RecordType type);
  void cancel() { cancelled_.store(true); }

 private:
  struct Channel;
  const std::vector<std::string> servers_;
  const std::chrono::milliseconds timeout_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace ringshift::discovery
