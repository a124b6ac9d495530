// A proxy that follows a registry: where its snapshots come from, and where its acknowledgements go.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "cli/registry_flags.h"
#include "coord/router_link.h"
#include "proxy/proxy.h"

namespace ringshift::cli {

// An id that no other process, and no earlier life of this one, has: `base` and a random suffix.
[[nodiscard]] std::string unique_id(const std::string& base);

class RegistryRouter final : public proxy::Authority {
 public:
  // Waits up to `patience` for the cluster's first topology.
  [[nodiscard]] static Result<std::unique_ptr<RegistryRouter>> start(const RegistryFlags& flags,
                                                                     std::string router_id,
                                                                     std::chrono::milliseconds patience);
  ~RegistryRouter() override;

  [[nodiscard]] const std::shared_ptr<coord::Holder>& holder() const noexcept { return link_->holder(); }
  // From now on the proxy hears of new topologies, and its acknowledgements are reported.
  void attach(proxy::Proxy& proxy, std::size_t cluster = 0);
  // No call into the proxy happens after this.
  void detach();

  void confirm(std::function<void(bool)> done) override { link_->confirm(std::move(done)); }

 private:
  RegistryRouter() = default;
  std::unique_ptr<coord::Coordinator> coordinator_;
  std::unique_ptr<coord::RouterLink> link_;
};

}  // namespace ringshift::cli
