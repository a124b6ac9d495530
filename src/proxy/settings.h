// The proxy's settings that CONFIG SET changes while it serves.
//
// Each is an atomic of its own, read and written without order: a change reaches every worker at its next
// look, and no reader ever waits. Any thread. The rest of Options stands still.
#pragma once
#include <atomic>
#include <cstdint>

#include "proxy/proxy.h"

namespace ringshift::proxy {

class Setting {
 public:
  explicit Setting(std::int64_t value) : value_(value) {}
  [[nodiscard]] std::int64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(get()); }
  void set(std::int64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_;
};

struct Settings {
  static constexpr std::int64_t kPubsubOutput = 32LL << 20;  // As in Redis.
  explicit Settings(const Options& options)
      : max_clients(static_cast<std::int64_t>(options.max_clients)),
        timeout(options.idle_timeout.count()),
        tcp_keepalive(options.tcp_keepalive.count()),
        cut_output(static_cast<std::int64_t>(options.cut_output_bytes)),
        cut_pubsub(kPubsubOutput),
        total_output(static_cast<std::int64_t>(options.max_total_output_bytes)),
        slow_client_timeout(options.slow_client_timeout.count()),
        slowlog_slower_than(options.slowlog_slower_than),
        slowlog_max_len(options.slowlog_max_len),
        slow_log_ms(options.slow_log.count()) {}

  Setting max_clients;
  Setting timeout;              // Seconds; 0: never.
  Setting tcp_keepalive;        // Seconds; 0: off.
  Setting cut_output;           // Bytes of one client's unread answers.
  Setting cut_pubsub;           // The same of one that is subscribed.
  Setting total_output;         // Of all clients'.
  Setting slow_client_timeout;  // Seconds.
  Setting slowlog_slower_than;  // Microseconds; negative: off.
  Setting slowlog_max_len;
  Setting slow_log_ms;           // Milliseconds; 0: off.
  Setting latency_threshold{0};  // Milliseconds; 0: off.
  Setting latency_tracking{0};   // 1: statistics of each command.
};

}  // namespace ringshift::proxy
