// How fast clients may send: token buckets for a user, a connection, a prefix of keys, a cluster.
//
// A bucket is one number, the time at which it will be full again, moved by compare-and-swap: all workers
// share it, so that a limit is exact however the connections are spread. Fresh buckets are full. Nothing is
// asked for sessions that no limit concerns. Thread-safe. Cost: one compare-and-swap a bucket and command.
// Bytes are those of the commands; one larger than a full bucket passes and leaves it in debt.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ringshift::proxy {

class Bucket {
 public:
  Bucket(double per_second, double burst) noexcept;
  // Takes `n`, or gives the nanoseconds until there is enough.
  [[nodiscard]] std::int64_t take(double n, std::int64_t now) noexcept;
  void give_back(double n) noexcept;

 private:
  const double cost_;         // Nanoseconds that one takes to flow in.
  const std::int64_t allow_;  // Nanoseconds from empty to full.
  std::atomic<std::int64_t> full_at_{0};
};

struct LimitRule {
  enum class Scope : std::uint8_t { user, client, prefix, cluster };
  Scope scope = Scope::client;
  std::string name;                // user: "*" is each one for itself. client: unused.
  double requests_per_second = 0;  // 0: any number.
  double bytes_per_second = 0;
  double burst = 0;  // Requests, and bytes, that may come at once; 0: what flows in within a second.
  double burst_bytes = 0;
};

// One rule's buckets.
class Meter {
 public:
  Meter(const LimitRule& rule, std::string name);
  // "" when it was taken, else the error without its line end.
  [[nodiscard]] std::string take(std::size_t bytes, std::int64_t now);
  void give_back(std::size_t bytes) noexcept;

 private:
  [[nodiscard]] std::string error(double rate, std::string_view unit, std::int64_t wait) const;

  const LimitRule rule_;
  const std::string name_;  // "user 'al'"
  Bucket requests_, bytes_;
};

class Limits {
 public:
  explicit Limits(const std::vector<LimitRule>& rules = {});
  [[nodiscard]] bool any() const noexcept { return any_; }
  [[nodiscard]] bool of_keys() const noexcept { return !prefixes_.empty() || !clusters_.empty(); }
  // Each null when nothing limits it.
  [[nodiscard]] Meter* user(const std::string& name) const;
  [[nodiscard]] std::unique_ptr<Meter> fresh_client() const;
  [[nodiscard]] Meter* prefix(std::string_view key) const;  // The longest one of the key.
  [[nodiscard]] Meter* cluster(std::string_view name) const;

 private:
  struct Prefix {
    std::string prefix;
    std::unique_ptr<Meter> meter;
  };
  bool any_ = false;
  std::map<std::string, std::unique_ptr<Meter>, std::less<>> users_, clusters_;
  std::vector<LimitRule> each_user_, each_client_;  // At most one.
  // By name, made on first use by any worker. Bounded by the users of the configuration.
  struct Made;
  std::shared_ptr<Made> made_;
  std::vector<Prefix> prefixes_;  // Longest first.
};

}  // namespace ringshift::proxy
