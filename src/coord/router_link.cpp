#include "coord/router_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/jitter.h"
#include "base/log.h"

namespace ringshift::coord {

using base::LogLevel;
using topology::Snapshot;
using topology::Version;

namespace {

constexpr std::chrono::milliseconds kRetryMax{1000};

std::chrono::milliseconds until_retry() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return base::full_jitter(kRetryMax, random);
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void log_topology(const Snapshot& snapshot, std::string_view who) {
  const std::string version = topology::to_string(snapshot.version);
  const topology::Topology& topology = snapshot.topology();
  base::log_fields(LogLevel::info,
                   {{"cluster", topology.spec.cluster},
                    {"version", version},
                    {"digest", snapshot.digest},
                    {"members", snapshot.members().size()},
                    {"resize", topology.resize ? std::string_view(topology.resize->id) : std::string_view()}},
                   "{}topology {} digest {}", who, version, snapshot.digest);
}

RouterLink::RouterLink(Coordinator& coordinator, ClusterKeys keys, Options options)
    : coordinator_(coordinator),
      keys_(std::move(keys)),
      options_(std::move(options)),
      started_at_(unix_seconds()),
      cache_(options_.cache_file.empty()
                 ? nullptr
                 : std::make_unique<TopologyCache>(options_.cache_file, keys_.prefix)) {}

Result<std::unique_ptr<RouterLink>> RouterLink::start(Coordinator& coordinator, ClusterKeys keys,
                                                      Options options, std::chrono::milliseconds patience) {
  std::unique_ptr<RouterLink> link(new RouterLink(coordinator, std::move(keys), std::move(options)));
  const auto began = std::chrono::steady_clock::now();
  const auto give_up = began + patience;
  bool ask_disk = link->cache_ != nullptr;
  while (true) {
    Status registered = link->ensure_lease();
    Result<bool> found =
        registered ? link->read_topology() : Result<bool>(std::unexpected(registered.error()));
    if (found && *found) break;
    if (ask_disk && !found && found.error().kind == ErrorKind::retryable &&
        std::chrono::steady_clock::now() >= std::min(give_up, began + kCacheAfter)) {
      ask_disk = false;
      const Status begun = link->begin_from_disk();
      if (begun) break;
      base::log(begun.error().kind == ErrorKind::not_found ? LogLevel::info : LogLevel::error,
                "{}; waiting for the registry", begun.error().message);
    }
    if (found || found.error().kind == ErrorKind::retryable) {
      if (std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        continue;
      }
    }
    if (!found) return std::unexpected(found.error());
    return fail(
        ErrorKind::not_found,
        fmt::format("no topology at '{}': apply a spec (ringshift topology apply FILE) and run a controller",
                    link->keys_.topology()));
  }
  link->watch_ = coordinator.watch(link->keys_.topology(), *link);
  link->worker_ = std::thread([raw = link.get()] { raw->work(); });
  return link;
}

RouterLink::~RouterLink() {
  watch_.reset();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
  // A registry that does not answer holds nobody up: then the record goes with its lease.
  if (lease_ != 0 && told_) static_cast<void>(coordinator_.revoke(lease_));
  for (auto& done : confirmations_) done(false);
}

RouterLink::Standing RouterLink::standing() const noexcept {
  const std::chrono::steady_clock::duration since =
      std::chrono::steady_clock::now().time_since_epoch() -
      std::chrono::steady_clock::duration(answered_at_.load(std::memory_order_relaxed));
  return {from_disk_.load(std::memory_order_relaxed), std::chrono::duration<double>(since).count(),
          refused_.load(std::memory_order_relaxed)};
}

void RouterLink::registry_answered() {
  answered_at_.store(std::chrono::steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

Status RouterLink::begin_from_disk() {
  Result<CachedTopology> cached = cache_->read();
  if (!cached) return std::unexpected(cached.error());
  cluster_id_ = cached->cluster_id;
  vouched_ = cached_processes_ = std::move(cached->processes);
  from_disk_ = true;
  answered_at_ = (std::chrono::steady_clock::now() - cached->age).time_since_epoch().count();
  base::log_fields(LogLevel::warning,
                   {{"cluster", cached->snapshot->topology().spec.cluster},
                    {"version", topology::to_string(cached->snapshot->version)},
                    {"digest", cached->snapshot->digest},
                    {"registry_age_seconds", cached->age.count()}},
                   "the registry does not answer: serving by topology {} digest {} of {}, where the registry "
                   "last answered "
                   "{} s ago; members that a resize has passed since are refused until the registry is back",
                   topology::to_string(cached->snapshot->version), cached->snapshot->digest, cache_->file(),
                   cached->age.count());
  holder_ = std::make_shared<Holder>(std::move(cached->snapshot));
  return {};
}

void RouterLink::vouch(const Processes& processes) {
  const std::lock_guard lock(mutex_);
  if (cache_ == nullptr) return;
  bool news = false;
  for (const auto& [member, run_id] : processes) {
    std::string& known = vouched_[member];
    news = news || known != run_id;
    known = run_id;
  }
  if (!news) return;
  keep_due_ = true;
  changed_.notify_all();
}

// By the worker, with nobody waiting for it but the next report. The file says what is applied and settled.
void RouterLink::keep_on_disk(std::unique_lock<std::mutex>& lock) {
  keep_due_ = false;
  if (cache_ == nullptr || !heard_) return;
  const SnapshotPtr snapshot = holder_->load();
  const bool resizing = snapshot->topology().resize.has_value();
  if (!resizing && snapshot->version != applied_) return;  // applied() comes again.
  const std::uint64_t cluster_id = cluster_id_;
  Processes processes;
  if (snapshot->topology().fence.epoch == 0) processes = vouched_;
  lock.unlock();
  if (resizing) {
    cache_->remove();
  } else if (const Status kept = cache_->write(*snapshot, cluster_id, processes); !kept) {
    base::log(LogLevel::warning, "{}; a start during an outage of the registry would not find this topology",
              kept.error().message);
  }
  lock.lock();
}

void RouterLink::set_hooks(Hooks hooks) {
  {
    const std::lock_guard lock(hooks_mutex_);  // Waits for the calls of the hooks before.
    hooks_ = std::move(hooks);
  }
  call_published();
}

void RouterLink::call_published() {
  const std::shared_lock lock(hooks_mutex_);
  if (hooks_.on_published) hooks_.on_published();
}

void RouterLink::applied(Version version) {
  const SnapshotPtr snapshot = holder_->load();
  const std::lock_guard lock(mutex_);
  if (version <= applied_) return;
  applied_ = version;
  applied_at_ = unix_seconds();
  // A newer snapshot may be in the holder already; then the digest follows with its own acknowledgement.
  applied_digest_ = snapshot->version == version ? snapshot->digest : "";
  report_due_ = true;
  keep_due_ = true;
  changed_.notify_all();
}

void RouterLink::confirm(std::function<void(bool)> done) {
  const std::lock_guard lock(mutex_);
  confirmations_.push_back(std::move(done));
  changed_.notify_all();
}

void RouterLink::on_events(const std::vector<Event>& events) {
  for (const Event& event : events) {
    if (event.kind == Event::Kind::put && event.kv.key == keys_.topology())
      static_cast<void>(accept(event.kv, std::nullopt));
  }
}

void RouterLink::on_resync(const Range& state) {
  const SnapshotPtr known = holder_->load();
  const auto found = std::ranges::find(state.kvs, keys_.topology(), &KeyValue::key);
  if (found != state.kvs.end()) static_cast<void>(accept(*found, state.cluster_id));
  if (found != state.kvs.end() && static_cast<std::uint64_t>(found->mod_revision) >= known->version.revision)
    return;
  const std::lock_guard lock(mutex_);
  look_due_ = true;  // Less than we know: we may have been faster, or it was set back.
}

void RouterLink::on_disconnected(const Error& why) {
  base::log(LogLevel::warning, "registry unreachable, serving on with the last topology: {}", why.message);
  const std::lock_guard lock(mutex_);
  look_due_ = true;  // By the next report that succeeds.
}

// Whether that is the registry whose topologies we obey: the first one that we hear of, or the file's.
Status RouterLink::check_registry(std::optional<std::uint64_t> cluster_id) {
  const std::lock_guard lock(mutex_);
  registry_answered();
  if (!cluster_id) {  // An event: of the registry that the last range was from.
    if (heard_) return {};
    return fail(ErrorKind::stale, "an event of a registry that is not obeyed");
  }
  if (cluster_id_ == 0) cluster_id_ = *cluster_id;
  if (*cluster_id == cluster_id_) return {};
  heard_ = false;  // What we applied is another registry's, and means nothing to this one's controller.
  base::log(LogLevel::error,
            "the registry was rebuilt or restored (cluster id {:x}, was {:x}): its topology is not obeyed; "
            "check it, then restart this router",
            *cluster_id, cluster_id_);
  return fail(ErrorKind::stale, "the registry was rebuilt or restored");
}

// Nothing more of this registry is obeyed until it has again what we know: what it says next may bear the
// number of something else, whatever that is.
Status RouterLink::distrust(std::string_view what, const std::string& told) {
  const std::lock_guard lock(mutex_);
  heard_ = false;  // What we applied means nothing to its controller.
  refused_ = true;
  if (!std::exchange(distrusted_, true))
    base::log_fields(LogLevel::error, {{"key", keys_.topology()}, {"refused", true}}, "{}", told);
  return fail(ErrorKind::stale, std::string(what));
}

std::string RouterLink::way_out() const {
  return from_disk_ ? fmt::format("check which is right, remove {} and restart this router", cache_->file())
                    : std::string("check which is right, then restart this router");
}

// `kv`: the topology in a range that was asked for when we had `known` already; null: it has none. A registry
// that has less than it gave us had its file replaced by an older one.
Status RouterLink::check_set_back(const KeyValue* kv, const Snapshot& known) {
  const Version version{kRegistryEpoch, kv != nullptr ? static_cast<std::uint64_t>(kv->mod_revision) : 0};
  if (version >= known.version) return {};
  return distrust(
      "the registry was set back to an older state",
      fmt::format("the registry has {}, and we know {}{}: it was set back to an older state without "
                  "'ringshift registry restore'; its topology is not obeyed: {}",
                  kv != nullptr ? "topology " + topology::to_string(version) : "no topology",
                  topology::to_string(known.version), from_disk_ ? " of " + cache_->file() : "", way_out()));
}

// A version has one content: what we have of it must be what the registry says. Two come from a registry
// whose file was copied and went on twice, or was written by hand.
Status RouterLink::check_same(const KeyValue& kv, const Snapshot& ours) {
  {
    const std::lock_guard lock(mutex_);
    if (seen_.first == kv.mod_revision && seen_.second == kv.value) return {};
  }
  const Result<topology::Topology> theirs = topology::parse_topology(kv.value, kv.key);
  if (theirs && topology::digest(*theirs) == ours.digest) {
    const std::lock_guard lock(mutex_);
    seen_ = {kv.mod_revision, kv.value};
    return {};
  }
  return distrust(
      "one version of the topology has two contents",
      fmt::format(
          "topology {} of the registry is not the one that we have, {} (digest {}): two registries go "
          "on from one copy, or somebody wrote it by hand; refused: {}",
          topology::to_string(ours.version),
          from_disk_ ? "of " + cache_->file() : std::string("which it gave before"), ours.digest, way_out()));
}

// Whether what the registry says may follow what we have, if anything.
Status RouterLink::judge(const KeyValue& kv, std::optional<std::uint64_t> cluster_id,
                         const SnapshotPtr& last) {
  if (Status ours = check_registry(cluster_id); !ours) return ours;
  if (last == nullptr) return {};
  const Version version{kRegistryEpoch, static_cast<std::uint64_t>(kv.mod_revision)};
  const bool same = version == last->version;
  if (same) {
    if (Status one = check_same(kv, *last); !one) return one;
  } else if (from_disk_) {
    if (Status newer = check_set_back(&kv, *last); !newer) return newer;
  }
  const std::lock_guard lock(mutex_);
  if (distrusted_ && !same) return fail(ErrorKind::stale, "the registry has not what it had");
  distrusted_ = false;
  return {};
}

// Compiles and publishes. An unusable topology is refused loudly and the last good one stays.
Status RouterLink::accept(const KeyValue& kv, std::optional<std::uint64_t> cluster_id) {
  const auto received = std::chrono::steady_clock::now();
  const Version version{kRegistryEpoch, static_cast<std::uint64_t>(kv.mod_revision)};
  const SnapshotPtr last = holder_ == nullptr ? nullptr : holder_->load();
  const Status judged = judge(kv, cluster_id, last);
  refused_ = !judged;
  if (!judged) return judged;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(heard_, true)) {
      from_disk_ = false;
      report_due_ = keep_due_ = true;
      changed_.notify_all();
    }
  }
  if (last != nullptr && version <= last->version) return {};
  Result<topology::Topology> parsed = topology::parse_topology(kv.value, kv.key);
  Result<SnapshotPtr> compiled = parsed ? Snapshot::compile(std::move(*parsed), version, last.get())
                                        : Result<SnapshotPtr>(std::unexpected(parsed.error()));
  if (!compiled) {
    base::log_fields(
        LogLevel::error,
        {{"key", keys_.topology()}, {"version", topology::to_string(version)}, {"refused", true}},
        "topology {} refused, the last one stays: {}", topology::to_string(version),
        compiled.error().message);
    return std::unexpected(compiled.error());
  }
  const SnapshotPtr snapshot = std::move(*compiled);
  {
    const std::lock_guard lock(mutex_);
    seen_ = {kv.mod_revision, kv.value};
  }
  log_topology(*snapshot, "");
  if (holder_ == nullptr) {
    holder_ = std::make_shared<Holder>(snapshot, received);
  } else if (holder_->publish(snapshot, received)) {
    call_published();
  }
  return {};
}

Result<bool> RouterLink::read_topology() {
  const SnapshotPtr known = holder_ == nullptr ? nullptr : holder_->load();
  const Result<Range> range = coordinator_.list(keys_.topology());
  if (!range) return std::unexpected(range.error());
  const auto found = std::ranges::find(range->kvs, keys_.topology(), &KeyValue::key);
  const KeyValue* kv = found == range->kvs.end() ? nullptr : &*found;
  if (kv != nullptr) {
    if (Status accepted = accept(*kv, range->cluster_id); !accepted) return std::unexpected(accepted.error());
  }
  if (known != nullptr) {
    if (Status kept = check_set_back(kv, *known); !kept) return std::unexpected(kept.error());
  }
  return kv != nullptr;
}

// A lost lease is granted again, for ever; the record is put by the next report.
Status RouterLink::ensure_lease() {
  if (lease_ != 0) {
    const Result<std::chrono::seconds> left = coordinator_.keep_alive(lease_);
    lease_renewed_ = std::chrono::steady_clock::now();
    if (left) return {};
    if (left.error().kind != ErrorKind::not_found) return std::unexpected(left.error());
    lease_ = 0;
  }
  const Result<LeaseId> granted = coordinator_.grant(options_.lease_ttl);
  if (!granted) return std::unexpected(granted.error());
  RouterRecord record;
  {
    const std::lock_guard lock(mutex_);
    record = record_of_now();
  }
  const Result<Revision> put = coordinator_.put(keys_.router(options_.router_id), to_json(record), *granted);
  if (!put) {
    static_cast<void>(coordinator_.revoke(*granted));
    return std::unexpected(put.error());
  }
  lease_ = *granted;
  lease_renewed_ = std::chrono::steady_clock::now();
  return {};
}

RouterRecord RouterLink::record_of_now() const {
  RouterRecord record;
  if (heard_) {
    record.revision = static_cast<Revision>(applied_.revision);
    record.digest = applied_digest_;
  }
  record.started_at = started_at_;
  record.applied_at = applied_at_;
  return record;
}

// One round trip as a rule, since a HOLD waits for it: the lease is renewed only when a third of it is gone.
Status RouterLink::put_record(const RouterRecord& record) {
  if (lease_ == 0 || std::chrono::steady_clock::now() - lease_renewed_ > options_.lease_ttl / 3.0) {
    if (Status alive = ensure_lease(); !alive) return alive;
  }
  const Result<Revision> put = coordinator_.put(keys_.router(options_.router_id), to_json(record), lease_);
  if (put) return {};
  if (put.error().kind == ErrorKind::not_found) lease_ = 0;
  return std::unexpected(put.error());
}

void RouterLink::work() {
  std::unique_lock lock(mutex_);
  auto next_report = std::chrono::steady_clock::now() + options_.report_interval;
  while (!stopping_) {
    changed_.wait_until(lock, next_report,
                        [this] { return stopping_ || report_due_ || keep_due_ || !confirmations_.empty(); });
    if (stopping_) break;
    if (report_due_ || std::chrono::steady_clock::now() >= next_report) {
      const bool told = told_ = report(lock);
      next_report = std::chrono::steady_clock::now() + (told ? options_.report_interval : until_retry());
      if (!told) answer_confirmations(lock);
      if (told && std::exchange(look_due_, false)) look(lock);
    }
    if (!confirmations_.empty()) answer_confirmations(lock);
    if (keep_due_) keep_on_disk(lock);
  }
}

bool RouterLink::report(std::unique_lock<std::mutex>& lock) {
  report_due_ = false;
  RouterRecord record = record_of_now();
  const bool heard_now = heard_;
  lock.unlock();
  {
    const std::shared_lock calling(hooks_mutex_);
    if (hooks_.figures) hooks_.figures(record);
  }
  const Status alive = put_record(record);
  if (alive) registry_answered();
  if (alive && cache_ && heard_now) cache_->touch(std::chrono::steady_clock::now());
  lock.lock();
  if (!alive && !stopping_) {
    base::log(LogLevel::warning, "could not report to the registry: {}", alive.error().message);
  }
  return alive.has_value();
}

// What a watch that goes on where it ended does not see: that the registry is not where it was.
void RouterLink::look(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const Result<bool> read = read_topology();
  lock.lock();
  if (!read && read.error().kind == ErrorKind::retryable) look_due_ = true;
}

void RouterLink::answer_confirmations(std::unique_lock<std::mutex>& lock) {
  std::deque<std::function<void(bool)>> waiting;
  waiting.swap(confirmations_);
  if (waiting.empty()) return;
  lock.unlock();
  const Result<bool> read = read_topology();
  for (auto& done : waiting) done(read.has_value() && *read);
  lock.lock();
}

}  // namespace ringshift::coord
