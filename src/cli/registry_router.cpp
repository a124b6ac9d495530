#include "cli/registry_router.h"

#include <fmt/format.h>

#include <random>

namespace ringshift::cli {

std::string unique_id(const std::string& base) {
  std::random_device entropy;
  return fmt::format("{}.{:08x}", base, entropy());
}

Result<std::unique_ptr<RegistryRouter>> RegistryRouter::start(const RegistryFlags& flags,
                                                              std::string router_id,
                                                              std::chrono::milliseconds patience) {
  auto coordinator = flags.connect();
  if (!coordinator) return std::unexpected(coordinator.error());
  std::unique_ptr<RegistryRouter> router(new RegistryRouter);
  router->coordinator_ = std::move(*coordinator);
  coord::RouterLink::Options options;
  options.router_id = std::move(router_id);
  auto link = coord::RouterLink::start(*router->coordinator_, flags.keys(), std::move(options), patience);
  if (!link) return std::unexpected(link.error());
  router->link_ = std::move(*link);
  return router;
}

RegistryRouter::~RegistryRouter() = default;

void RegistryRouter::attach(proxy::Proxy& proxy, std::size_t cluster) {
  proxy.set_on_applied([link = link_.get()](topology::Version version) { link->applied(version); }, cluster);
  coord::RouterLink::Hooks hooks;
  hooks.on_published = [&proxy] { proxy.notify(); };
  hooks.figures = [&proxy, cluster](coord::RouterRecord& record) {
    const telemetry::Totals totals = proxy.stats();
    record.requests = get(totals, telemetry::Counter::requests);
    record.hits = get(totals, telemetry::Counter::get_hits);
    record.misses = get(totals, telemetry::Counter::get_misses);
    record.keys_pulled = get(totals, telemetry::Counter::keys_pulled);
    record.bytes_pulled = get(totals, telemetry::Counter::bytes_pulled);
    record.hot_keys = proxy.hot_keys(cluster, coord::RouterRecord::kHotKeysMax);
  };
  link_->set_hooks(std::move(hooks));
}

void RegistryRouter::detach() { link_->set_hooks({}); }

}  // namespace ringshift::cli
