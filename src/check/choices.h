// What a client does next: seeded choices, no more.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "check/operation.h"

namespace ringshift::check {

class Choices {
 public:
  struct Options {
    std::vector<Kind> kinds;  // Not empty.
    std::uint32_t clients = 1, keys = 1;
    std::size_t max_value = 0;
  };
  Choices(Options options, std::uint64_t seed, std::uint32_t client);

  std::uint32_t below(std::uint32_t bound) {
    return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(random_);
  }
  [[nodiscard]] Kind kind();
  [[nodiscard]] std::uint32_t key();  // Low numbers are hot, so that clients meet.
  // Verb, field and time to live, and whether it writes a value of its own (then the caller makes it).
  [[nodiscard]] bool operation(Kind kind, std::uint32_t key, Operation& out);
  [[nodiscard]] std::size_t value_size();  // 0: the token alone.

 private:
  const Options options_;
  const std::uint32_t client_;
  std::mt19937_64 random_;
  std::uint32_t all_weights_ = 0;
};

}  // namespace ringshift::check
