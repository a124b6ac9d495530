#include "proxy/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

namespace ringshift::proxy {
namespace {

constexpr double kSecond = 1e9;

double burst_of(double burst, double rate) { return burst > 0 ? burst : std::max(1.0, rate); }

}  // namespace

Bucket::Bucket(double per_second, double burst) noexcept
    : cost_(per_second > 0 ? kSecond / per_second : 0),
      allow_(static_cast<std::int64_t>(cost_ * burst_of(burst, per_second))) {}

std::int64_t Bucket::take(double n, std::int64_t now) noexcept {
  if (cost_ == 0) return 0;
  const auto cost = static_cast<std::int64_t>(cost_ * n);
  std::int64_t full_at = full_at_.load(std::memory_order_relaxed);
  while (true) {
    const std::int64_t from = std::max(full_at, now);
    const std::int64_t wait = from + cost - now - allow_;
    if (wait > 0 && from > now) return wait;
    if (full_at_.compare_exchange_weak(full_at, from + cost, std::memory_order_relaxed)) return 0;
  }
}

void Bucket::give_back(double n) noexcept {
  full_at_.fetch_sub(static_cast<std::int64_t>(cost_ * n), std::memory_order_relaxed);
}

Meter::Meter(const LimitRule& rule, std::string name)
    : rule_(rule),
      name_(std::move(name)),
      requests_(rule.requests_per_second, rule.burst),
      bytes_(rule.bytes_per_second, rule.burst_bytes) {}

std::string Meter::error(double rate, std::string_view unit, std::int64_t wait) const {
  return fmt::format("-ERR rate limit exceeded for {}: {:.17g} {} per second; retry after {} ms", name_, rate,
                     unit, (wait + 999'999) / 1'000'000);
}

std::string Meter::take(std::size_t bytes, std::int64_t now) {
  if (const std::int64_t wait = requests_.take(1, now); wait > 0) {
    return error(rule_.requests_per_second, "requests", wait);
  }
  if (const std::int64_t wait = bytes_.take(static_cast<double>(bytes), now); wait > 0) {
    requests_.give_back(1);
    return error(rule_.bytes_per_second, "bytes", wait);
  }
  return {};
}

void Meter::give_back(std::size_t bytes) noexcept {
  requests_.give_back(1);
  bytes_.give_back(static_cast<double>(bytes));
}

struct Limits::Made {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Meter>> users;
};

Limits::Limits(const std::vector<LimitRule>& rules) : any_(!rules.empty()), made_(std::make_shared<Made>()) {
  for (const LimitRule& rule : rules) {
    switch (rule.scope) {
      case LimitRule::Scope::user:
        if (rule.name == "*") {
          each_user_.push_back(rule);
        } else {
          users_[rule.name] = std::make_unique<Meter>(rule, fmt::format("user '{}'", rule.name));
        }
        break;
      case LimitRule::Scope::client:
        each_client_.push_back(rule);
        break;
      case LimitRule::Scope::prefix:
        prefixes_.push_back(
            {rule.name, std::make_unique<Meter>(rule, fmt::format("prefix '{}'", rule.name))});
        break;
      case LimitRule::Scope::cluster:
        clusters_[rule.name] = std::make_unique<Meter>(rule, fmt::format("cluster '{}'", rule.name));
        break;
    }
  }
  std::ranges::stable_sort(
      prefixes_, [](const Prefix& a, const Prefix& b) { return a.prefix.size() > b.prefix.size(); });
}

Meter* Limits::user(const std::string& name) const {
  if (const auto found = users_.find(name); found != users_.end()) return found->second.get();
  if (each_user_.empty()) return nullptr;
  const std::lock_guard lock(made_->mutex);
  std::unique_ptr<Meter>& meter = made_->users[name];
  if (meter == nullptr) meter = std::make_unique<Meter>(each_user_[0], fmt::format("user '{}'", name));
  return meter.get();
}

std::unique_ptr<Meter> Limits::fresh_client() const {
  return each_client_.empty() ? nullptr : std::make_unique<Meter>(each_client_[0], "this connection");
}

Meter* Limits::prefix(std::string_view key) const {
  const auto found =
      std::ranges::find_if(prefixes_, [&](const Prefix& p) { return key.starts_with(p.prefix); });
  return found == prefixes_.end() ? nullptr : found->meter.get();
}

Meter* Limits::cluster(std::string_view name) const {
  const auto found = clusters_.find(name);
  return found == clusters_.end() ? nullptr : found->second.get();
}

}  // namespace ringshift::proxy
