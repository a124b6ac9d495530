// The clusters that one user's routes lead to, as one worker sees them. A command of a session never goes
// anywhere else.
//
// Immutable; lives until its worker has adopted other rules, which gives every session its new one. Worker's
// thread. Cost: of RouteTable::cluster_of.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "proxy/routes.h"

namespace ringshift::proxy {

class Upstream;

class Reach {
 public:
  Reach(const RouteTable& routes, std::span<const std::unique_ptr<Upstream>> all) : routes_(routes) {
    for (const auto& upstream : all) by_cluster_.push_back(upstream.get());
    for (const std::size_t cluster : routes.clusters()) reached_.push_back(by_cluster_[cluster]);
  }
  // The cluster that the key belongs to; null when no route takes it.
  [[nodiscard]] Upstream* upstream_of(std::string_view key) const noexcept {
    const std::size_t cluster = routes_.cluster_of(key);
    return cluster == RouteTable::kNone ? nullptr : by_cluster_[cluster];
  }
  // Each once, in the order of the proxy's clusters.
  [[nodiscard]] std::span<Upstream* const> upstreams() const noexcept { return reached_; }
  // Every key of every cluster reached belongs there: none is to be hidden.
  [[nodiscard]] bool whole() const noexcept { return routes_.takes_all(); }

 private:
  const RouteTable routes_;
  std::vector<Upstream*> by_cluster_, reached_;
};

}  // namespace ringshift::proxy
