// A proxy that follows a registry: where its snapshots come from, and where its acknowledgements go.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "cli/registry_flags.h"
#include "coord/router_link.h"
#include "proxy/keeper.h"

namespace ringshift::cli {

// An id that no other process, and no earlier life of this one, has: `base` and a random suffix.
[[nodiscard]] std::string unique_id(const std::string& base);

// The file that `--topology-cache VALUE` means for a cluster; "" for none. A directory, or a VALUE that ends
// with '/', gets a file of its own for each cluster. Without a VALUE: systemd's StateDirectory, or none.
[[nodiscard]] std::string topology_cache_file(const std::string& value, const RegistryFlags& flags);

class RegistryRouter final : public proxy::Keeper {
 public:
  // Waits up to `patience` for the cluster's first topology. `topology_cache`: the file of
  // coord::TopologyCache.
  [[nodiscard]] static Result<std::unique_ptr<RegistryRouter>> start(const RegistryFlags& flags,
                                                                     std::string router_id,
                                                                     std::chrono::milliseconds patience,
                                                                     std::string topology_cache = "");
  ~RegistryRouter() override;

  [[nodiscard]] const std::shared_ptr<coord::Holder>& holder() const noexcept { return link_->holder(); }
  // From now on the proxy hears of new topologies, and its acknowledgements are reported.
  void attach(proxy::Proxy& proxy, std::size_t cluster = 0);
  // No call into the proxy happens after this.
  void detach();

  void confirm(std::function<void(bool)> done) override { link_->confirm(std::move(done)); }
  [[nodiscard]] const Processes& believed() const override { return link_->processes(); }
  void vouch(const Processes& processes) override { link_->vouch(processes); }
  [[nodiscard]] Standing standing() const noexcept override {
    const coord::RouterLink::Standing now = link_->standing();
    return {now.from_disk, now.registry_age_seconds, now.refused};
  }

 private:
  RegistryRouter() = default;
  std::unique_ptr<coord::Coordinator> coordinator_;
  std::unique_ptr<coord::RouterLink> link_;
};

}  // namespace ringshift::cli
