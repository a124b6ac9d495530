// One thread of the load; see load.h. Everything but the figures in Shared belongs to the worker's thread.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "drill/client.h"
#include "drill/ledger.h"
#include "drill/load.h"
#include "drill/zipf.h"

namespace ringshift::drill {

inline constexpr std::size_t kRegisters = 64;
inline constexpr std::size_t kCounters = 64;
inline constexpr std::size_t kMaxExamples = 8;

// What the workers share.
struct Shared {
  Shared(LoadOptions o, base::TimePoint start) : options(std::move(o)), recorder(options.threads, start) {}

  const LoadOptions options;
  Recorder recorder;
  std::array<Register, kRegisters> registers;  // Register r is written by worker r modulo threads.
  std::array<Counter, kCounters> counters;
  std::atomic<std::uint64_t> lost{0}, stale{0}, checked{0}, acknowledged{0}, unknown{0}, unreadable{0};
  std::atomic<std::uint64_t> progress{0};
  std::atomic<bool> cancelled{false};

  void judge(Verdict verdict, std::string_view key, std::string_view detail);
  [[nodiscard]] std::vector<std::string> examples() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> examples_;  // Guarded by mutex_.
};

[[nodiscard]] std::string register_key(std::size_t index);
[[nodiscard]] std::string counter_key(std::size_t index);

class Worker {
 public:
  Worker(Shared& shared, std::size_t index, Origin::Session session);

  [[nodiscard]] Status fill();            // Its own keys, but for the share that is absent on average.
  void run(const std::stop_token& stop);  // Until asked to stop.
  [[nodiscard]] Status verify();          // Its own keys.
  [[nodiscard]] std::uint64_t clouded() const;

 private:
  enum class Kind : std::uint8_t { object_get, register_get, register_set, increment };
  struct Request {
    Kind kind = Kind::object_get;
    std::size_t key = 0;      // Local index of the object, or the register or counter.
    std::uint64_t value = 0;  // register_set: what was written. Else the floor when it was sent.
  };
  struct Change {  // A SET after a miss, or a DEL after an update.
    std::size_t key = 0;
    bool fill = false;
  };
  enum class Outcome : std::uint8_t { done, not_executed, unknown };

  [[nodiscard]] std::uint64_t id_of(std::size_t key) const { return key * shared_.options.threads + index_; }
  [[nodiscard]] std::size_t sample_key();
  [[nodiscard]] bool connect();
  void batch(base::TimePoint scheduled);
  void choose();
  void append(Request& request);
  void answer(const Request& request, const Client::Value& value, base::TimePoint when);
  void answer_object(const Request& request, const Client::Value& value, base::TimePoint when);
  void judge_object(std::size_t key, const Client::Value& value);
  void no_answer(const Request& request, base::TimePoint when);
  void update_one();
  void refill(std::size_t key, bool allowed, base::TimePoint when);
  void flush_changes();
  void settle(const Change& change, Outcome outcome);
  [[nodiscard]] static Outcome outcome_of(const Client::Value& value);
  [[nodiscard]] Status verify_range(std::size_t first, std::size_t last);

  Shared& shared_;
  const std::size_t index_;
  Origin::Session session_;
  KeyLedger ledger_;
  Zipf zipf_;
  std::mt19937_64 random_;
  std::optional<Client> client_;
  base::TimePoint next_attempt_{};   // Of a connection.
  std::vector<Request> requests_;    // The pipeline under way.
  std::vector<Change> changes_;      // What the answers and updates ask for, sent as a second pipeline.
  std::vector<std::string> values_;  // The SETs' values, in the order of changes_.
  std::deque<std::size_t>
      pending_deletes_;  // Invalidations not executed yet, tried again; at most one a key.
  std::uint64_t batches_ = 0;
};

}  // namespace ringshift::drill
