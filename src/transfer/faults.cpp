#include "transfer/faults.h"

#if defined(RINGSHIFT_PROTOCOL_FAULTS)
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace ringshift::transfer {
namespace {

constexpr auto kFaultNames = std::to_array<std::string_view>(
    {"no_hold", "write_without_pull", "restore_without_token", "no_seal_after_busy",
     "compare_and_delete_seal", "wrong_copy", "no_fence", "no_purge", "no_gate", "exists_on_new_is_enough",
     "read_miss_without_seal", "new_first_only"});

// A misspelt switch would make a test pass for the wrong reason, so it ends the process.
std::uint32_t from_environment() {
  const char* value = std::getenv("RINGSHIFT_BREAK");
  std::uint32_t mask = 0;
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    std::size_t index = 0;
    while (index < kFaultNames.size() && kFaultNames[index] != name) ++index;
    if (index == kFaultNames.size()) {
      std::fprintf(stderr, "ringshift: RINGSHIFT_BREAK: unknown switch '%.*s'\n",
                   static_cast<int>(name.size()), name.data());
      std::abort();
    }
    mask |= 1U << index;
  }
  return mask;
}

std::atomic<std::uint32_t>& mask() {
  static std::atomic<std::uint32_t> value{from_environment()};
  return value;
}

}  // namespace

bool broken(Fault fault) noexcept { return (mask().load() >> static_cast<unsigned>(fault) & 1U) != 0; }

void set_broken(Fault fault, bool on) noexcept {
  const std::uint32_t bit = 1U << static_cast<unsigned>(fault);
  if (on) {
    mask().fetch_or(bit);
  } else {
    mask().fetch_and(~bit);
  }
}

void crash_point(std::string_view point) noexcept {
  static const char* const value = std::getenv("RINGSHIFT_CRASH_AT");
  static std::atomic<int> passed{0};
  if (value == nullptr) return;
  const std::string_view wanted = value;
  const std::size_t colon = wanted.find(':');
  if (wanted.substr(0, colon) != point) return;
  const int times = colon == std::string_view::npos ? 1 : std::atoi(value + colon + 1);
  if (++passed == times) static_cast<void>(::kill(::getpid(), SIGKILL));
}

}  // namespace ringshift::transfer
#endif
