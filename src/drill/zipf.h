// Zipf-distributed ranks: rank k (0-based) has probability proportional to 1 / (k + 1)^s.
//
// Rejection-inversion (W. Hoermann, G. Derflinger, "Rejection-inversion to generate variates from monotone
// discrete distributions", 1996): O(1) expected (under 1.1 tries for usual s), no table, exact for any
// number of ranks. REQUIRES: n >= 1, s > 0. next() is for one thread, and the same seed gives the same ranks;
// rank() is for any.
#pragma once
#include <cstdint>
#include <optional>
#include <random>

namespace ringshift::drill {

class Zipf {
 public:
  Zipf(std::uint64_t n, double s, std::uint64_t seed);
  [[nodiscard]] std::uint64_t next();  // 0 .. n-1
  // With the caller's chance: unit() gives numbers in [0, 1).
  template <class Unit>
  [[nodiscard]] std::uint64_t rank(Unit unit) const {
    for (;;) {
      if (const auto rank = accepted(unit())) return *rank;
    }
  }

 private:
  // The integral of x^-s up to a constant, its inverse, and x^-s itself.
  [[nodiscard]] double area(double x) const;
  [[nodiscard]] double area_inverse(double y) const;
  [[nodiscard]] double height(double x) const;
  [[nodiscard]] std::optional<std::uint64_t> accepted(double unit) const;

  double n_, s_;
  double area_first_, area_last_, shortcut_;
  std::mt19937_64 random_;
};

}  // namespace ringshift::drill
