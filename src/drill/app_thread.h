// What app.cpp and app_thread.cpp share: one thread of an App, and the registers and counters.
#pragma once
#include <array>
#include <mutex>
#include <optional>

#include "drill/app.h"
#include "drill/ledger.h"

namespace ringshift::drill {

inline constexpr std::size_t kAppRegisters = 64, kAppCounters = 64;

struct App::Probes {
  std::array<Register, kAppRegisters> registers;
  std::array<std::mutex, kAppRegisters> writing;                    // A register has one writer at a time.
  std::array<std::atomic<std::uint64_t>, kAppRegisters> lost_at{};  // The value whose loss was reported.
  std::array<Counter, kAppCounters> counters;

  [[nodiscard]] static std::string register_key(std::size_t i) {
    return "probe:register:" + std::to_string(i);
  }
  [[nodiscard]] static std::string counter_key(std::size_t i) { return "probe:counter:" + std::to_string(i); }
};

class App::Thread {
 public:
  explicit Thread(App& app) : app_(app), client_(app.cache_.client()) {}

  void run(const std::stop_token& stop, const Schedule& schedule);

 private:
  using Outcome = CacheClient::Outcome;

  void serve(std::uint64_t slot, base::TimePoint due);
  [[nodiscard]] bool read(std::uint64_t key, std::uint64_t slot, base::TimePoint due);
  [[nodiscard]] bool refill(std::uint64_t key, const std::string& name, Ttl ttl, bool may_set,
                            base::TimePoint due);
  [[nodiscard]] bool update(std::uint64_t key, base::TimePoint due);
  [[nodiscard]] bool probe(std::uint64_t slot, base::TimePoint due);
  [[nodiscard]] bool read_register(std::size_t i, base::TimePoint due);
  [[nodiscard]] bool write_register(std::size_t i, base::TimePoint due);
  [[nodiscard]] bool increment(std::size_t i, base::TimePoint due);
  void note(Outcome outcome, base::TimePoint due);

  App& app_;
  const std::unique_ptr<CacheClient> client_;
};

}  // namespace ringshift::drill
