#include "drill/zipf.h"

#include <algorithm>
#include <cmath>

namespace ringshift::drill {
namespace {

constexpr double kTiny = 1e-8;  // Below it, series replace what would divide zero by zero (s near 1).

double log1p_over(double x) { return std::abs(x) > kTiny ? std::log1p(x) / x : 1 - x / 2 + x * x / 3; }
double expm1_over(double x) { return std::abs(x) > kTiny ? std::expm1(x) / x : 1 + x / 2 + x * x / 6; }

}  // namespace

Zipf::Zipf(std::uint64_t n, double s, std::uint64_t seed) : n_(static_cast<double>(n)), s_(s), random_(seed) {
  area_first_ = area(1.5) - 1;
  area_last_ = area(n_ + 0.5);
  shortcut_ = 2 - area_inverse(area(2.5) - height(2));
}

double Zipf::area(double x) const {
  const double log_x = std::log(x);
  return expm1_over((1 - s_) * log_x) * log_x;
}

double Zipf::area_inverse(double y) const {
  const double t = std::max(-1.0, y * (1 - s_));
  return std::exp(log1p_over(t) * y);
}

double Zipf::height(double x) const { return std::exp(-s_ * std::log(x)); }

std::optional<std::uint64_t> Zipf::accepted(double unit) const {
  const double u = area_last_ + unit * (area_first_ - area_last_);
  const double x = area_inverse(u);
  const double k = std::clamp(std::floor(x + 0.5), 1.0, n_);
  if (k - x <= shortcut_ || u >= area(k + 0.5) - height(k)) return static_cast<std::uint64_t>(k) - 1;
  return std::nullopt;
}

std::uint64_t Zipf::next() {
  return rank([this] { return static_cast<double>(random_() >> 11) * 0x1p-53; });
}

}  // namespace ringshift::drill
