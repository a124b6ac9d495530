// What a worker keeps for the administration of the proxy: its letters from other workers, whether commands
// wait (CLIENT PAUSE), and what it has measured of commands.
//
// The worker's thread alone, but for Mailbox::put(). `until_look` is the one thing that the data path
// touches: while no command may have to wait and none is measured, only a sample of them, see
// kSampledFirst, comes by here.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "net/loop.h"
#include "protocol/resp/command_table.h"
#include "telemetry/times.h"

namespace ringshift::proxy {

// Functions for one worker's thread. Unlike Loop::post, what is put is run in any case, or refused.
class Mailbox {
 public:
  // Any thread. False once the worker has ended.
  [[nodiscard]] bool put(std::function<void()> letter) {
    const std::lock_guard lock(mutex_);
    if (!open_) return false;
    letters_.push_back(std::move(letter));
    return true;
  }
  // On the worker's thread. `for_good`: no more are taken.
  void read(bool for_good = false) {
    std::vector<std::function<void()>> letters;
    {
      const std::lock_guard lock(mutex_);
      letters.swap(letters_);
      if (for_good) open_ = false;
    }
    for (const auto& letter : letters) letter();
  }

 private:
  std::mutex mutex_;
  bool open_ = true;                            // Guarded by mutex_.
  std::vector<std::function<void()>> letters_;  // Guarded by mutex_.
};

enum class PauseMode : std::uint8_t { none, write, all };

// One entry of the slow log.
struct SlowCommand {
  std::uint64_t id = 0;
  std::int64_t at = 0;  // Unix time.
  std::int64_t micros = 0;
  std::vector<std::string> arguments;
  std::string peer, name;
};

// Times of one command: bucket i counts those up to 2^i microseconds.
struct CommandTimes {
  static constexpr std::size_t kBuckets = 32;
  std::uint64_t calls = 0;
  std::int64_t micros = 0;
  std::array<std::uint64_t, kBuckets> buckets{};

  void add(const CommandTimes& other) {
    calls += other.calls;
    micros += other.micros;
    for (std::size_t i = 0; i < kBuckets; ++i) buckets[i] += other.buckets[i];
  }
};

struct LatencySample {
  std::int64_t at = 0;  // Unix time.
  std::int64_t ms = 0;
};

struct WorkerAdmin {
  static constexpr std::size_t kMaxErrors = 128;
  static constexpr std::size_t kMaxSamples = 160;  // As many as Redis keeps of an event.

  bool attentive = false;  // Some command may have to wait, or be measured: each is looked at.
  bool measuring = false;
  // How long a client's command took, and which keys it named, is looked at for a sample of all commands: the
  // first kSampledFirst of each second, and of those behind them one in kSampleGap, as chance has it. So at a
  // low rate all are, and at a high one it costs each some four instructions. Any thread may read `sampled`.
  static constexpr std::uint32_t kSampledFirst = 64, kSampleGap = 64;
  std::uint32_t until_look = 1, until_sample = 1, left_of_first = kSampledFirst;
  std::uint32_t random = 0x9E3779B9;
  telemetry::Times sampled;
  std::atomic<std::uint64_t> sampled_micros{0};
  std::uint64_t samples_taken = 0;
  [[nodiscard]] bool look_due() noexcept { return --until_look == 0; }
  [[nodiscard]] std::uint32_t next_gap() noexcept {
    if (left_of_first != 0) {
      --left_of_first;
      return 1;
    }
    random ^= random << 13;  // xorshift32
    random ^= random >> 17;
    random ^= random << 5;
    // 1 .. 2 * kSampleGap - 1: in the mean the gap, and never in step with what clients do in turns.
    return 1 + static_cast<std::uint32_t>((std::uint64_t{random} * (2 * kSampleGap - 1)) >> 32);
  }
  void arm_look() noexcept { until_look = attentive ? 1 : next_gap(); }
  // While each command is looked at: whether it is one of the sample.
  [[nodiscard]] bool sample_due() noexcept {
    if (--until_sample != 0) return false;
    until_sample = next_gap();
    return true;
  }
  void a_second_begins() noexcept {
    left_of_first = kSampledFirst;
    until_sample = 1;
    until_look = 1;
  }
  void add_sample(base::Duration time) noexcept {
    const std::int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    sampled.add(micros);
    sampled_micros.store(sampled_micros.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(micros),
                         std::memory_order_relaxed);
  }
  PauseMode pause = PauseMode::none;
  base::TimePoint paused_until{};
  std::unique_ptr<net::Timer> pause_timer, every_second;

  // Requests, bytes read and bytes written of the last whole second, and all of them before it.
  std::array<std::int64_t, 3> last_second{}, counted{};
  std::deque<SlowCommand> slow;       // The newest first; bounded by slowlog-max-len.
  std::deque<LatencySample> samples;  // Of the event "command"; the oldest first.
  std::map<std::string, std::uint64_t, std::less<>>
      errors;                                // By their first word, at most kMaxErrors of them.
  void count_error(std::string_view reply);  // "-ERR ..."
  std::unordered_map<const protocol::resp::Command*, CommandTimes> times;
  Mailbox mailbox;
};

}  // namespace ringshift::proxy
