#include "resize/controller.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "resize/leader.h"

namespace ringshift::resize {

using base::LogLevel;

namespace {
constexpr std::chrono::milliseconds kRetry{500};
constexpr std::chrono::milliseconds kTick{100};
constexpr double kReadyWithinSeconds = 10;

ControllerOptions with_figures(ControllerOptions options) {
  options.figures = std::make_shared<ControllerFigures>();
  return options;
}
}  // namespace

Controller::Controller(coord::Coordinator& coordinator, coord::ClusterKeys keys, ControllerOptions options)
    : coordinator_(coordinator),
      keys_(std::move(keys)),
      options_(with_figures(std::move(options))),
      view_(std::make_unique<ClusterView>(coordinator, keys_)),
      thread_([this] { run(); }),
      keeper_([this] { keep_lease(); }) {}

Controller::~Controller() {
  stopping_ = true;
  view_->ring();
  thread_.join();
  keeper_.join();
  resign();
}

void Controller::run() {
  const std::function<bool()> stopped = [this] { return stopping_.load(); };
  while (!stopping_) {
    if (!campaign()) {
      // The lock's end shows as an event; the timeout covers an unreachable registry.
      const auto seen = view_->get(keys_.controller());
      static_cast<void>(view_->wait(kRetry, [&] {
        return stopping_ || (seen.has_value() && !view_->get(keys_.controller()).has_value());
      }));
      continue;
    }
    base::log(LogLevel::info, "controller {}: leading", options_.id);
    Leader leader(coordinator_, keys_, options_, *view_, lock_revision_,
                  [this] { return !stopping_ && leading_; });
    leader.run();
    base::log(LogLevel::info, "controller {}: no longer leading", options_.id);
    resign();
    if (!stopping_) static_cast<void>(view_->wait(kTick, stopped));
  }
}

bool Controller::campaign() {
  const Result<coord::LeaseId> lease = coordinator_.grant(options_.lease_ttl);
  if (!lease) {
    if (!std::exchange(told_unreachable_, true)) {
      base::log(LogLevel::warning, "controller {}: {}; still trying", options_.id, lease.error().message);
    }
    return false;
  }
  told_unreachable_ = false;
  options_.figures->registry_answered(std::chrono::steady_clock::now());
  const coord::Compare absent{keys_.controller(), coord::Compare::Target::create_revision, 0};
  const coord::Op take{coord::Op::Kind::put, keys_.controller(), options_.id, *lease};
  const Result<std::optional<coord::Revision>> taken = coordinator_.transact({absent}, {take});
  if (!taken || !*taken) {
    static_cast<void>(coordinator_.revoke(*lease));
    return false;
  }
  lock_revision_ = **taken;
  lease_ = *lease;
  leading_ = true;
  options_.figures->leads(true);
  return true;
}

// Apart from the leader, whose steps may take long. A lease that could not be renewed for its whole TTL is
// lost, whatever the registry may say later.
void Controller::keep_lease() {
  auto renewed = std::chrono::steady_clock::now();
  bool was_leading = false;
  while (!stopping_) {
    std::this_thread::sleep_for(kTick);
    if (!leading_) {
      was_leading = false;
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!was_leading) renewed = now;
    was_leading = true;
    if (now - renewed < options_.lease_ttl / 4.0) continue;
    const Result<std::chrono::seconds> left = coordinator_.keep_alive(lease_);
    if (left) {
      renewed = std::chrono::steady_clock::now();
      options_.figures->registry_answered(renewed);
    } else if (left.error().kind == ErrorKind::not_found ||
               std::chrono::steady_clock::now() - renewed > options_.lease_ttl) {
      base::log(LogLevel::warning, "controller {}: lock lost: {}", options_.id, left.error().message);
      leading_ = false;
      view_->ring();
    }
  }
}

void Controller::collect(telemetry::Exposition& page, const std::string& cluster) const {
  options_.figures->collect(page, cluster, std::chrono::steady_clock::now());
  collect_routers(page, cluster, *view_, keys_);
}

Status Controller::ready() const {
  const auto age = options_.figures->registry_age_seconds(std::chrono::steady_clock::now());
  if (age && *age < kReadyWithinSeconds) return {};
  return fail(ErrorKind::retryable, age ? fmt::format("the registry has not answered for {:.0f} s", *age)
                                        : "the registry has not answered yet");
}

void Controller::resign() {
  leading_ = false;
  options_.figures->leads(false);
  if (const coord::LeaseId lease = lease_.exchange(0); lease != 0)
    static_cast<void>(coordinator_.revoke(lease));
}

}  // namespace ringshift::resize
