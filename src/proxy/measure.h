// The commands of one client that are being measured: from the wakeup that read a command to the one in which
// its answer was put out, in its turn. The loop's clock, which is read once a wakeup, is all it costs.
//
// Exists while slowlog-log-slower-than, latency-monitor-threshold or latency-tracking ask for it, and, for
// one command in some, while a resize runs. The worker's thread. Bound: kMaxUnderWay, beyond which the oldest
// is not measured.
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

  // `arguments`: for the slow log; null when only the time is wanted.
  void begin(std::uint64_t number, base::TimePoint now, const protocol::resp::Command& command,
             const protocol::resp::CommandParser* arguments);
  // Those before `head` are answered.
  void settle(Session& session, std::uint64_t head, base::TimePoint now);
  [[nodiscard]] bool empty() const noexcept { return under_way_.empty(); }

 private:
  struct UnderWay {
    std::uint64_t number;
    base::TimePoint since;
    const protocol::resp::Command* command;
    std::vector<std::string> arguments;
  };
  std::deque<UnderWay> under_way_;
};

}  // namespace ringshift::proxy
