#include "cli/registry_router.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace ringshift::cli {
namespace {

// What was added in the last second or two. A router reports once a second, and for each acknowledgement in
// between: those must not cut the time short.
class RollingTimes {
 public:
  // In milliseconds, -1 when nothing was added.
  std::vector<double> read(const telemetry::TimesTotals& now, base::TimePoint at,
                           std::initializer_list<double> shares) {
    std::vector<double> out;
    for (const double share : shares) {
      const double micros = telemetry::quantile(older_, now, share);
      out.push_back(micros < 0 ? -1 : micros / 1000);
    }
    if (at - newer_at_ >= std::chrono::seconds(1)) {
      older_ = newer_;
      newer_ = now;
      newer_at_ = at;
    }
    return out;
  }

 private:
  telemetry::TimesTotals older_{}, newer_{};
  base::TimePoint newer_at_{};
};

// Fills in what the proxy counts. Called by the link's thread alone.
class RouterFigures {
 public:
  RouterFigures(proxy::Proxy& proxy, std::size_t cluster) : proxy_(proxy), cluster_(cluster) {}

  void fill(coord::RouterRecord& record) {
    const base::TimePoint now = std::chrono::steady_clock::now();
    const telemetry::Totals totals = proxy_.stats();
    record.requests = get(totals, telemetry::Counter::requests);
    record.hits = get(totals, telemetry::Counter::get_hits);
    record.misses = get(totals, telemetry::Counter::get_misses);
    record.errors = telemetry::errors(totals);
    record.bytes_in = get(totals, telemetry::Counter::bytes_in);
    record.bytes_out = get(totals, telemetry::Counter::bytes_out);
    record.keys_pulled = get(totals, telemetry::Counter::keys_pulled);
    record.bytes_pulled = get(totals, telemetry::Counter::bytes_pulled);
    record.clients = proxy_.clients();
    const std::vector<double> times = times_.read(proxy_.sampled_times().times, now, {0.5, 0.99, 0.999});
    record.p50_ms = times[0], record.p99_ms = times[1], record.p999_ms = times[2];
    record.listen = proxy_.address();
    record.unreachable = proxy_.members_down(cluster_);
    while (record.unreachable.size() > coord::kUnreachableNamed) {
      record.unreachable.erase(std::prev(record.unreachable.end()));
    }
    record.max_clients = proxy_.max_clients();
    if (rlimit files{}; getrlimit(RLIMIT_NOFILE, &files) == 0) record.open_file_limit = files.rlim_cur;
    record.hot_keys = proxy_.hot_keys(cluster_, coord::RouterRecord::kHotKeysMax);
    record.moving_keys = proxy_.moving_keys(cluster_, coord::RouterRecord::kHotKeysMax);
    fill_members(record, now);
  }

 private:
  void fill_members(coord::RouterRecord& record, base::TimePoint now) {
    const auto all = proxy_.member_sums(cluster_);
    for (const auto& [id, sums] : all) {
      coord::RouterRecord::Member& member = record.members[id];
      member.requests = sums.requests();
      member.hits = sums.hits();
      member.misses = sums.misses();
      member.errors = sums.error_replies + sums.failures();
      member.timeouts = sums.timeouts;
      member.in_flight = static_cast<std::uint64_t>(std::max<std::int64_t>(sums.in_flight, 0));
      member.p99_ms = member_times_[id].read(sums.times, now, {0.99})[0];
    }
    std::erase_if(member_times_, [&](const auto& entry) { return !all.contains(entry.first); });
    coord::keep_busiest(record.members);
  }

  proxy::Proxy& proxy_;
  const std::size_t cluster_;
  RollingTimes times_;
  std::map<std::string, RollingTimes> member_times_;
};

}  // namespace

std::string unique_id(const std::string& base) {
  std::random_device entropy;
  return fmt::format("{}.{:08x}", base, entropy());
}

std::string topology_cache_file(const std::string& value, const RegistryFlags& flags) {
  if (value == "none") return "";
  std::string place = value;
  if (place.empty()) {
    const char* state = std::getenv("STATE_DIRECTORY");  // NOLINT(concurrency-mt-unsafe): nobody sets it.
    if (state == nullptr || *state == '\0') return "";
    place = std::string(state).substr(0, std::string_view(state).find(':')) + "/";  // Several: the first.
  }
  std::error_code ignored;
  if (!place.ends_with('/') && !std::filesystem::is_directory(place, ignored)) return place;
  if (!place.ends_with('/')) place += '/';
  return fmt::format("{}topology-{}-{}", place, flags.name_space, flags.cluster);
}

Result<std::unique_ptr<RegistryRouter>> RegistryRouter::start(const RegistryFlags& flags,
                                                              std::string router_id,
                                                              std::chrono::milliseconds patience,
                                                              std::string topology_cache) {
  auto coordinator = flags.connect();
  if (!coordinator) return std::unexpected(coordinator.error());
  std::unique_ptr<RegistryRouter> router(new RegistryRouter);
  router->coordinator_ = std::move(*coordinator);
  coord::RouterLink::Options options;
  options.router_id = std::move(router_id);
  options.cache_file = std::move(topology_cache);
  auto link = coord::RouterLink::start(*router->coordinator_, flags.keys(), std::move(options), patience);
  if (!link) return std::unexpected(link.error());
  router->link_ = std::move(*link);
  return router;
}

RegistryRouter::~RegistryRouter() {
  if (coordinator_) coordinator_->hurry(coord::kHurry);
}

void RegistryRouter::attach(proxy::Proxy& proxy, std::size_t cluster) {
  proxy.set_on_applied([link = link_.get()](topology::Version version) { link->applied(version); }, cluster);
  coord::RouterLink::Hooks hooks;
  hooks.on_published = [&proxy] { proxy.notify(); };
  hooks.figures = [figures = std::make_shared<RouterFigures>(proxy, cluster)](coord::RouterRecord& record) {
    figures->fill(record);
  };
  link_->set_hooks(std::move(hooks));
}

void RegistryRouter::detach() { link_->set_hooks({}); }

}  // namespace ringshift::cli
