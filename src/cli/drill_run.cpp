#include "cli/drill_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "cli/deployment.h"
#include "cli/drill_live.h"
#include "drill/cache.h"
#include "drill/census.h"
#include "drill/cpu_meter.h"
#include "drill/redis_fleet.h"
#include "ringshift/snapshot.h"

namespace ringshift::cli::drilling {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::string_view kCluster = "drill";
const std::vector<double> kSteps = {1, 10, 50, 100};
const std::vector<double> kLostSteps = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
constexpr double kResizePart = 0.35;  // Of the seconds after the change, for the resize at its usual rate.
constexpr std::uint64_t kSlowestMove = 50;  // Keys a second.
constexpr unsigned kLongestResizeSeconds = 300;
constexpr unsigned kAfterResizeSeconds = 5;  // At most, and a third of the seconds after the change.
constexpr auto kLookEvery = 50ms;
constexpr auto kNoticeDeath = 2s;  // Until somebody switches away from a dead member.
constexpr auto kHeadStart = 100ms;
constexpr unsigned kVerifyTries = 20;

using SnapshotPtr = std::shared_ptr<const topology::Snapshot>;

Result<SnapshotPtr> snapshot_of(const topology::Spec& spec) {
  return topology::Snapshot::compile({.spec = spec, .factors = {}, .fence = {}, .resize = {}}, {});
}

// Everything that one run starts, ended in the reverse order.
class Scene {
 public:
  Scene(const Options& options, const drill::Workload& workload, Console& console, Interrupt& interrupt,
        const std::string& strategy, unsigned observe)
      : options_(options),
        workload_(workload),
        console_(console),
        interrupt_(interrupt),
        strategy_(strategy),
        observe_(observe) {}

  Status set_up(drill::OriginServer& origins, const std::string& directory);
  Outcome measure();

 private:
  [[nodiscard]] bool live() const { return strategy_ == kRingshift || strategy_ == kControl; }
  [[nodiscard]] Status start_cache(const std::string& directory);
  [[nodiscard]] Status plan_pace();
  // Sleeps until then, with a line a second on the terminal; false when Ctrl-C came.
  [[nodiscard]] bool pass_until(base::TimePoint then);
  [[nodiscard]] Status change(Outcome& outcome);
  [[nodiscard]] Status wait_for_resize(Outcome& outcome);
  void count_keys(Outcome& outcome);
  void conclude(Outcome& outcome);
  [[nodiscard]] base::TimePoint second(std::size_t index) const { return begin_ + seconds(index); }

  const Options& options_;
  const drill::Workload& workload_;
  Console& console_;
  Interrupt& interrupt_;
  const std::string strategy_;
  const unsigned observe_;
  std::optional<drill::RedisFleet> fleet_;
  Specs specs_;
  std::unique_ptr<drill::Origin> origin_;
  std::unique_ptr<drill::OriginPool> pool_;
  std::vector<pid_t> servers_;
  std::unique_ptr<Deployment> deployment_;
  std::unique_ptr<drill::Cache> cache_;
  drill::ShardedCache* sharded_ = nullptr;  // cache_, when it is one.
  std::unique_ptr<drill::App> app_;
  std::shared_ptr<drill::Timeline> timeline_;
  std::uint64_t rate_ = 0;
  base::TimePoint begin_{};
  std::optional<Live> line_;
};

Status Scene::set_up(drill::OriginServer& origins, const std::string& directory) {
  drill::FleetOptions fleet;
  fleet.directory = directory;
  fleet_.emplace(std::move(fleet));
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < std::max(options_.from, options_.to); ++i) {
    const Result<drill::RedisNode> node = fleet_->add();
    if (!node) return std::unexpected(node.error());
    addresses.push_back(node->address);
    servers_.push_back(node->pid);
  }
  for (const pid_t pid : origins.processes()) servers_.push_back(pid);
  specs_ = specs_of(options_, strategy_, addresses);
  if (Status paced = plan_pace(); !paced) return paced;

  drill::BodyBytes bytes = [this](std::uint64_t id) {
    const std::size_t wanted = workload_.body_bytes(id);
    return wanted == 0 ? drill::object_body(id).size() : wanted;
  };
  auto origin = origins.fresh(workload_.keys(), bytes);
  if (!origin) return std::unexpected(origin.error());
  origin_ = std::move(*origin);
  auto pool = drill::OriginPool::create(*origin_, options_.pool);
  if (!pool) return std::unexpected(pool.error());
  pool_ = std::move(*pool);
  if (Status started = start_cache(directory); !started) return started;

  app_ = std::make_unique<drill::App>(options_.app, workload_, *cache_, *pool_);
  return app_->fill([this](std::uint64_t done, std::uint64_t total) {
    console_.transient(
        fmt::format("{}: filling the cache, {} of {} objects", strategy_, grouped(done), grouped(total)));
    return !interrupt_.requested();
  });
}

Status Scene::start_cache(const std::string& directory) {
  if (!live()) {
    auto cache = drill::ShardedCache::create(specs_.before);
    if (!cache) return std::unexpected(cache.error());
    sharded_ = cache->get();
    cache_ = std::move(*cache);
    return {};
  }
  DeploymentOptions options;
  options.data_dir = directory;
  options.registry_listen = fmt::format("127.0.0.1:{}", drill::free_port());
  options.proxy_listen = fmt::format("127.0.0.1:{}", drill::free_port());
  options.proxy_threads = std::max(1U, std::thread::hardware_concurrency());
  options.cluster = kCluster;
  auto deployment = Deployment::start(options, specs_.before);
  if (!deployment) return std::unexpected(deployment.error());
  deployment_ = std::move(*deployment);
  cache_ = std::make_unique<drill::ProxyCache>(deployment_->proxy_addresses().front());
  return {};
}

// The mover's rate, from the keys that are expected to move.
Status Scene::plan_pace() {
  const Result<SnapshotPtr> a = snapshot_of(specs_.before), b = snapshot_of(specs_.after);
  if (!a) return std::unexpected(a.error());
  if (!b) return std::unexpected(b.error());
  double moving = 0;
  const double ttl = std::chrono::duration<double>(options_.app.ttl).count();
  for (std::uint64_t key = 0; key < workload_.keys(); ++key) {
    const std::string name = workload_.name(key);
    if ((*a)->members()[(*a)->owner_before(name)].id == (*b)->members()[(*b)->owner_before(name)].id)
      continue;
    moving += drill::standing(options_.app.requests_per_second * workload_.reads_share(key),
                              options_.app.requests_per_second * workload_.updates_share(key), ttl)
                  .present;
  }
  rate_ = options_.move_rate != 0
              ? options_.move_rate
              : std::max(kSlowestMove, static_cast<std::uint64_t>(moving / (kResizePart * options_.seconds)));
  for (topology::Spec* spec : {&specs_.before, &specs_.after}) spec->limits.move_keys_per_second = rate_;
  return {};
}

bool Scene::pass_until(base::TimePoint then) {
  for (auto now = steady_clock::now(); now < then; now = steady_clock::now()) {
    if (interrupt_.wait(std::min<base::Duration>(kLookEvery, then - now))) return false;
    line_->show(steady_clock::now());
  }
  return true;
}

Outcome Scene::measure() {
  const std::size_t change_at = options_.warm_up_seconds + options_.before_seconds;
  timeline_ =
      std::make_shared<drill::Timeline>(begin_ = steady_clock::now() + kHeadStart,
                                        change_at + observe_ + kLongestResizeSeconds + kAfterResizeSeconds);
  line_.emplace(console_, strategy_, *timeline_, begin_, change_at);
  Outcome outcome;
  outcome.name = strategy_;
  outcome.timeline = timeline_;
  outcome.skipped = options_.warm_up_seconds;
  outcome.change = options_.before_seconds;
  outcome.move_rate = live() ? rate_ : 0;
  app_->start(drill::Schedule(begin_, options_.app.requests_per_second), *timeline_);
  bool on = pass_until(second(options_.warm_up_seconds));
  const auto cpu_begin = drill::read_cpu(servers_);
  on = on && pass_until(second(change_at));
  if (!on) {
    outcome.error = "interrupted";
  } else if (Status changed = change(outcome); !changed) {
    outcome.error = changed.error().message;
  }
  app_->stop();
  const auto cpu_end = drill::read_cpu(servers_);
  if (cpu_begin && cpu_end) {
    const drill::CpuShares shares = drill::shares_between(*cpu_begin, *cpu_end);
    outcome.quiet.others = shares.others;
    outcome.quiet.stolen = shares.stolen;
  }
  const auto passed = std::chrono::duration_cast<seconds>(steady_clock::now() - begin_).count();
  const auto whole = std::min(timeline_->size(), static_cast<std::size_t>(std::max<std::int64_t>(0, passed)));
  for (std::size_t i = options_.warm_up_seconds; i < whole; ++i)
    outcome.seconds.push_back(timeline_->second(i));
  conclude(outcome);
  return outcome;
}

// How many acknowledged copies there are, and how many have another owner afterwards.
void Scene::count_keys(Outcome& outcome) {
  const Result<SnapshotPtr> a = snapshot_of(specs_.before), b = snapshot_of(specs_.after);
  if (!a || !b) return;
  const auto now = steady_clock::now();
  for (std::uint64_t key = 0; key < workload_.keys(); ++key) {
    if (!app_->ledger().present(key, now)) continue;
    ++outcome.keys_live;
    const std::string name = workload_.name(key);
    if ((*a)->members()[(*a)->owner_before(name)].id != (*b)->members()[(*b)->owner_before(name)].id)
      ++outcome.keys_changed_owner;
  }
}

Status Scene::change(Outcome& outcome) {
  const auto interrupted = [] { return fail(ErrorKind::retryable, "interrupted"); };
  const std::size_t change_at = options_.warm_up_seconds + options_.before_seconds;
  const base::TimePoint began = second(change_at), end = second(change_at + observe_);
  if (strategy_ == kControl) {
    outcome.change_seconds = observe_;
    return pass_until(end) ? Status{} : interrupted();
  }
  if (options_.scenario == Scenario::kill) {
    fleet_->kill(options_.from - 1);
    if (!pass_until(began + kNoticeDeath)) return interrupted();
  }
  if (strategy_ == kRingshift) {
    count_keys(outcome);
    resize::Request request;
    request.spec = specs_.after;
    request.steps = kSteps;
    request.lost = specs_.lost;
    if (!specs_.lost.empty()) {
      // Ten steps that wait for the origin; the usual hundred take minutes (docs/operations.md).
      request.steps = kLostSteps;
      request.origin_budget = static_cast<std::uint64_t>(0.8 * options_.pool.capacity());
    }
    if (Status started = deployment_->start_resize(std::move(request)); !started) return started;
    if (Status done = wait_for_resize(outcome); !done) return done;
    const auto settled =
        std::max(end, steady_clock::now() + seconds(std::min(kAfterResizeSeconds, options_.seconds / 3)));
    return pass_until(settled) ? Status{} : interrupted();
  }
  using Dual = drill::ShardedCache::DualRead;
  const Dual dual = strategy_ == kDualRead     ? Dual::reads
                    : strategy_ == kDualDelete ? Dual::reads_and_deletes
                                               : Dual::off;
  if (Status switched = sharded_->switch_to(specs_.after, dual); !switched) return switched;
  count_keys(outcome);
  outcome.keys_moved = outcome.keys_changed_owner;
  if (dual != Dual::off) {
    outcome.change_seconds = options_.dual_read_seconds;
    if (!pass_until(began + seconds(options_.dual_read_seconds))) return interrupted();
    sharded_->end_dual_read();
  }
  const bool passed = pass_until(end);
  outcome.keys_copied = sharded_->copies();
  return passed ? Status{} : interrupted();
}

Status Scene::wait_for_resize(Outcome& outcome) {
  const base::TimePoint began = second(options_.warm_up_seconds + options_.before_seconds);
  for (;;) {
    if (!pass_until(steady_clock::now() + kLookEvery)) return fail(ErrorKind::retryable, "interrupted");
    const Result<ResizeStatus> status = deployment_->status();
    const base::Duration gone = steady_clock::now() - began;
    if (status) {
      outcome.keys_moved = status->keys_moved;
      outcome.hold_ms_max = status->hold_ms_max;
      outcome.change_seconds = std::chrono::duration<double>(gone).count();
      if (status->state == "finished") return {};
      if (status->state == "failed")
        return fail(ErrorKind::internal, "the resize failed: " + status->last_error);
    }
    if (gone > seconds(kLongestResizeSeconds)) {
      return fail(ErrorKind::internal,
                  fmt::format("the resize did not finish within {} s", kLongestResizeSeconds));
    }
  }
}

// With the load stopped: what was acknowledged is read back, and keys are counted where they lie.
void Scene::conclude(Outcome& outcome) {
  if (outcome.complete()) {
    Status read = fail(ErrorKind::retryable, "");
    for (unsigned i = 0; i < kVerifyTries && !read; ++i) read = app_->verify({});
    if (!read) outcome.error = read.error().message;
  }
  if (outcome.complete() && strategy_ == kRingshift) {
    const topology::Spec& from = specs_.lost.empty() ? specs_.before : specs_.after;
    const auto census = drill::take_census(from, specs_.after, drill::PlacedBy::to);
    if (census) {
      outcome.keys_misplaced = census->misplaced;
    } else {
      outcome.error = census.error().message;
    }
  }
  outcome.verdicts = app_->verdicts();
}

}  // namespace

Result<Outcome> Run::go(const std::string& strategy, unsigned observe) {
  Scene scene(options_, workload_, console_, interrupt_, strategy, observe);
  if (Status up = scene.set_up(origins_, directory_); !up) return std::unexpected(up.error());
  if (interrupt_.requested()) return fail(ErrorKind::retryable, "interrupted");
  return scene.measure();
}

Specs specs_of(const Options& options, const std::string& strategy,
               const std::vector<std::string>& addresses) {
  topology::Spec spec;
  spec.cluster = kCluster;
  if (strategy == kModulo) spec.placement.algorithm = "modulo";
  for (std::size_t i = 0; i < options.from; ++i) {
    topology::Member member;
    member.id = fmt::format("cache-{}", i + 1);
    member.address = addresses[i];
    spec.members.push_back(std::move(member));
  }
  Specs specs{.before = spec, .after = spec, .lost = {}};
  for (std::size_t i = options.from; i < options.to; ++i) {
    topology::Member member;
    member.id = fmt::format("cache-{}", i + 1);
    member.address = addresses[i];
    specs.after.members.push_back(std::move(member));
  }
  if (options.to < options.from) specs.after.members.resize(options.to);
  if (options.scenario == Scenario::reweight) specs.after.members.front().weight = 2;
  if (options.scenario == Scenario::kill) specs.lost = {spec.members.back().id};
  return specs;
}

std::string change_in_words(const Options& options) {
  switch (options.scenario) {
    case Scenario::kill:
      return fmt::format("one of {} members dies", options.from);
    case Scenario::reweight:
      return fmt::format("one of {} members gets twice its weight", options.from);
    case Scenario::grow:
    case Scenario::remove:
      break;
  }
  return fmt::format("{} members {} {}", options.from, options.to > options.from ? "grow to" : "shrink to",
                     options.to);
}

}  // namespace ringshift::cli::drilling
