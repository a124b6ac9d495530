// Which cluster behind one listener a key belongs to: the route with the longest prefix of the key.
//
// Immutable once built; any thread. Cost: nothing with one route for all keys, else O(routes).
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringshift::proxy {

struct RouteRule {
  std::string prefix;       // "" takes every key that no longer prefix takes.
  std::size_t cluster = 0;  // Into the clusters that the proxy was started with.
};

class RouteTable {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  RouteTable() : RouteTable(std::vector<RouteRule>{{"", 0}}) {}
  explicit RouteTable(std::vector<RouteRule> rules) : rules_(std::move(rules)) {
    std::ranges::stable_sort(
        rules_, [](const RouteRule& a, const RouteRule& b) { return a.prefix.size() > b.prefix.size(); });
    if (rules_.size() == 1 && rules_[0].prefix.empty()) only_ = rules_[0].cluster;
    for (const RouteRule& rule : rules_) clusters_.push_back(rule.cluster);
    std::ranges::sort(clusters_);
    clusters_.erase(std::ranges::unique(clusters_).begin(), clusters_.end());
  }

  // kNone when no route takes the key.
  [[nodiscard]] std::size_t cluster_of(std::string_view key) const noexcept {
    if (only_ != kNone) [[likely]]
      return only_;
    for (const RouteRule& rule : rules_) {
      if (key.starts_with(rule.prefix)) return rule.cluster;
    }
    return kNone;
  }
  // That some key may belong to: each once, ascending.
  [[nodiscard]] const std::vector<std::size_t>& clusters() const noexcept { return clusters_; }
  // There is one route, for all keys.
  [[nodiscard]] bool takes_all() const noexcept { return only_ != kNone; }

 private:
  std::vector<RouteRule> rules_;  // Longest prefix first.
  std::vector<std::size_t> clusters_;
  std::size_t only_ = kNone;  // The cluster of all keys, if there is but one.
};

}  // namespace ringshift::proxy
