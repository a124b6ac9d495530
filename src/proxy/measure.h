// The commands of one client that are being measured: from the wakeup that read a command to the one in which
// its answer was put out, in its turn. The loop's clock, which is read once a wakeup, is all it costs.
//
// Exists while slowlog-log-slower-than, latency-monitor-threshold, latency-tracking or ringshift-slow-log-ms
// ask for it. The worker's thread. Bound: kMaxUnderWay, beyond which the oldest is not measured.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"
#include "protocol/resp/command_parser.h"
#include "protocol/resp/command_table.h"

namespace ringshift::proxy {

class Session;

class Measure {
 public:
  static constexpr std::size_t kMaxUnderWay = 4096;
  static constexpr std::size_t kMaxArguments = 32;  // That the slow log shows, as in Redis,
  static constexpr std::size_t kMaxText = 128;      // each up to so many bytes.

  // `member`: for the log of slow requests; "" when it has none or is not to be logged.
  void begin(std::uint64_t number, base::TimePoint now, const protocol::resp::Command& command,
             const protocol::resp::CommandParser& arguments, std::string member);
  // The answer is there, but not its turn. (Else that is when it is put out.)
  void ready(std::uint64_t number, base::TimePoint now);
  // Those before `head` are answered.
  void settle(Session& session, std::uint64_t head, base::TimePoint now);
  [[nodiscard]] bool empty() const noexcept { return under_way_.empty(); }

 private:
  struct UnderWay {
    std::uint64_t number;
    base::TimePoint since;
    const protocol::resp::Command* command;
    std::vector<std::string> arguments;
    std::string member;
    base::TimePoint ready{};
  };
  static void log_slow(const Session& session, const UnderWay& done, base::TimePoint now);
  std::deque<UnderWay> under_way_;
};

}  // namespace ringshift::proxy
