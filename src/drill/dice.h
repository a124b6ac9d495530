// Chance that depends on nothing but its seed and a number: the n-th request of a load is the same one in
// every run, whoever executes it and when. A generator of its own for each (seed, stream, n); splitmix64
// (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). Not for secrets.
#pragma once
#include <cstdint>

namespace ringshift::drill {

class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t stream, std::uint64_t n) : state_(mixed(mixed(seed) + stream) + n) {
    state_ = next();
  }

  [[nodiscard]] std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15ULL); }
  [[nodiscard]] double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // In [0, 1).

 private:
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace ringshift::drill
