#include "coord/router_link.h"

#include <fmt/format.h>

#include <random>

#include "base/log.h"

namespace ringshift::coord {

using base::LogLevel;
using topology::Snapshot;
using topology::Version;

namespace {

constexpr std::chrono::milliseconds kRetryMax{1000};

std::chrono::milliseconds full_jitter(std::chrono::milliseconds upper) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(1, upper.count())(random));
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
      started_at_(unix_seconds()) {}

Result<std::unique_ptr<RouterLink>> RouterLink::start(Coordinator& coordinator, ClusterKeys keys,
                                                      Options options, std::chrono::milliseconds patience) {
  std::unique_ptr<RouterLink> link(new RouterLink(coordinator, std::move(keys), std::move(options)));
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (true) {
    Status registered = link->ensure_lease();
    Result<bool> found =
        registered ? link->read_topology() : Result<bool>(std::unexpected(registered.error()));
    if (found && *found) break;
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
  if (lease_ != 0) static_cast<void>(coordinator_.revoke(lease_));
  for (auto& done : confirmations_) done(false);
}

void RouterLink::set_hooks(Hooks hooks) {
  std::function<void()> published;
  {
    const std::lock_guard lock(mutex_);
    hooks_ = std::move(hooks);
    published = hooks_.on_published;
  }
  if (published) published();
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
      static_cast<void>(accept(event.kv, 0));
  }
}

void RouterLink::on_resync(const Range& state) {
  for (const KeyValue& kv : state.kvs) {
    if (kv.key == keys_.topology()) static_cast<void>(accept(kv, state.cluster_id));
  }
}

void RouterLink::on_disconnected(const Error& why) {
  base::log(LogLevel::warning, "registry unreachable, serving on with the last topology: {}", why.message);
}

// Compiles and publishes. An unusable topology is refused loudly and the last good one stays.
Status RouterLink::accept(const KeyValue& kv, std::uint64_t cluster_id) {
  const auto received = std::chrono::steady_clock::now();
  std::function<void()> published;
  {
    const std::lock_guard lock(mutex_);
    if (cluster_id != 0 && cluster_id_ == 0) cluster_id_ = cluster_id;
    if (cluster_id != 0 && cluster_id != cluster_id_) {
      base::log(
          LogLevel::error,
          "the registry was rebuilt or restored (cluster id {:x}, was {:x}): its topology is not obeyed; "
          "check it, then restart this router",
          cluster_id, cluster_id_);
      return fail(ErrorKind::stale, "the registry was rebuilt or restored");
    }
    published = hooks_.on_published;
  }
  const Version version{kRegistryEpoch, static_cast<std::uint64_t>(kv.mod_revision)};
  const SnapshotPtr last = holder_ == nullptr ? nullptr : holder_->load();
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
  log_topology(*snapshot, "");
  if (holder_ == nullptr) {
    holder_ = std::make_shared<Holder>(snapshot, received);
  } else if (holder_->publish(snapshot, received) && published) {
    published();
  }
  return {};
}

Result<bool> RouterLink::read_topology() {
  const Result<Range> range = coordinator_.list(keys_.topology());
  if (!range) return std::unexpected(range.error());
  for (const KeyValue& kv : range->kvs) {
    if (kv.key != keys_.topology()) continue;
    if (Status accepted = accept(kv, range->cluster_id); !accepted) return std::unexpected(accepted.error());
    return true;
  }
  return false;
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
  record.revision = static_cast<Revision>(applied_.revision);
  record.digest = applied_digest_;
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
                        [this] { return stopping_ || report_due_ || !confirmations_.empty(); });
    if (stopping_) break;
    if (report_due_ || std::chrono::steady_clock::now() >= next_report) {
      const bool told = report(lock);
      next_report =
          std::chrono::steady_clock::now() + (told ? options_.report_interval : full_jitter(kRetryMax));
      if (!told) answer_confirmations(lock);
    }
    if (!confirmations_.empty()) answer_confirmations(lock);
  }
}

bool RouterLink::report(std::unique_lock<std::mutex>& lock) {
  report_due_ = false;
  RouterRecord record = record_of_now();
  const auto figures = hooks_.figures;
  lock.unlock();
  if (figures) figures(record);
  const Status alive = put_record(record);
  lock.lock();
  if (!alive && !stopping_) {
    base::log(LogLevel::warning, "could not report to the registry: {}", alive.error().message);
  }
  return alive.has_value();
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
