#include "cli/registry_router.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <iterator>
#include <random>

namespace ringshift::cli {
namespace {

// Of what was added in the last second or two. A router reports once a second, and for each acknowledgement
// in between: those must not cut the time short.
class RollingP99 {
 public:
  double read(const telemetry::TimesTotals& now, base::TimePoint at) {
    const double micros = telemetry::quantile(older_, now, 0.99);
    if (at - newer_at_ >= std::chrono::seconds(1)) {
      older_ = newer_;
      newer_ = now;
      newer_at_ = at;
    }
    return micros < 0 ? -1 : micros / 1000;
  }

 private:
  telemetry::TimesTotals older_{}, newer_{};
  base::TimePoint newer_at_{};
};

}  // namespace

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
  hooks.figures = [&proxy, cluster, p99 = std::make_shared<RollingP99>()](coord::RouterRecord& record) {
    const telemetry::Totals totals = proxy.stats();
    record.requests = get(totals, telemetry::Counter::requests);
    record.hits = get(totals, telemetry::Counter::get_hits);
    record.misses = get(totals, telemetry::Counter::get_misses);
    for (std::size_t i = 0; i < telemetry::kCounterCount; ++i) {
      const auto counter = static_cast<telemetry::Counter>(i);
      if (telemetry::name(counter).starts_with("errors_")) record.errors += get(totals, counter);
    }
    record.bytes_in = get(totals, telemetry::Counter::bytes_in);
    record.bytes_out = get(totals, telemetry::Counter::bytes_out);
    record.clients = proxy.clients();
    record.keys_pulled = get(totals, telemetry::Counter::keys_pulled);
    record.bytes_pulled = get(totals, telemetry::Counter::bytes_pulled);
    record.listen = proxy.address();
    record.unreachable = proxy.members_down(cluster);
    while (record.unreachable.size() > coord::kUnreachableNamed) {
      record.unreachable.erase(std::prev(record.unreachable.end()));
    }
    record.max_clients = proxy.max_clients();
    if (rlimit files{}; getrlimit(RLIMIT_NOFILE, &files) == 0) record.open_file_limit = files.rlim_cur;
    record.p99_ms = p99->read(proxy.sampled_times(), std::chrono::steady_clock::now());
    record.moving_keys = proxy.hot_keys(cluster, coord::RouterRecord::kHotKeysMax);
  };
  link_->set_hooks(std::move(hooks));
}

void RegistryRouter::detach() { link_->set_hooks({}); }

}  // namespace ringshift::cli
