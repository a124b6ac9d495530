// Databases other than 0: see database_set.h.
#include <memory>
#include <utility>

#include "proxy/worker.h"

namespace ringshift::proxy {

std::span<const std::unique_ptr<Upstream>> Worker::upstreams_in(unsigned number) {
  if (number == 0) return upstreams_;
  const auto [found, fresh] = databases_.try_emplace(number);
  std::vector<std::unique_ptr<Upstream>>& upstreams = found->second.upstreams;
  for (std::size_t i = 0; fresh && i < shared_.clusters.size(); ++i) {
    // Applied is what database 0 has applied; it waits for this one, too.
    upstreams.push_back(
        std::make_unique<Upstream>(loop_, shared_.options, shared_.clusters[i], counters_, shared_.pubsub,
                                   Upstream::Listeners{[this] { topology_changed(); },
                                                       [](topology::Version) {}, [this] { keep_order(); }},
                                   number));
  }
  return upstreams;
}

const Reach& Worker::reach_in(std::string_view user, unsigned number) {
  if (number == 0) return reach_of(user);
  const auto upstreams = upstreams_in(number);
  std::unique_ptr<const Reach>& reach = databases_[number].reach[std::string(user)];
  if (reach == nullptr) {
    const auto own = rules_->rules.user_routes.find(user);
    const bool has_own = own != rules_->rules.user_routes.end();
    reach = std::make_unique<const Reach>(has_own ? own->second : rules_->rules.routes, upstreams);
  }
  return *reach;
}

// So a resize, which there can be only when a cluster has given up all but database 0, knows that nothing is
// under way in another one.
void Worker::applied(std::size_t cluster, topology::Version version) {
  if (databases_.empty()) return shared_.applied(number_, cluster, version);
  auto left = std::make_shared<std::size_t>(databases_.size());
  for (const auto& [number, database] : databases_) {
    database.upstreams[cluster]->pool().drain([this, left, cluster, version] {
      if (--*left == 0) shared_.applied(number_, cluster, version);
    });
  }
}

}  // namespace ringshift::proxy
