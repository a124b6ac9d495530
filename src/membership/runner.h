// Carries out the policy while the controller of this process leads: watches the source that the spec names,
// decides once a second, and asks for resizes by the same request that an operator writes, one at a time.
// What it makes of the instances is in the registry (report.h).
//
// A second leader can do no harm: the controller that holds the lock judges each request, and refuses one
// while a resize runs. Failure: a source that cannot be asked, or a registry that is away, stops the clocks
// (policy.h); nothing is decided by what is old. Threads: its own, and the source's.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "discovery/guard.h"
#include "discovery/source.h"
#include "membership/figures.h"
#include "membership/policy.h"
#include "membership/report.h"
#include "resize/cluster_view.h"

namespace ringshift::backend {
class MemberAccess;
}

namespace ringshift::membership {

// The source that the spec's words mean.
using MakeSource =
    std::function<Result<std::unique_ptr<discovery::Source>>(const topology::DiscoverySource& words)>;

class Runner final : private discovery::Sink {
 public:
  static constexpr std::chrono::milliseconds kTick{1000};
  static constexpr std::chrono::milliseconds kReportEvery{5000};   // While nothing but times is new.
  static constexpr std::chrono::milliseconds kSourceRetry{10000};  // Of one that could not be made.

  struct Options {
    std::string controller_id;  // What the lock's key says while we lead.
    std::shared_ptr<const backend::MemberAccess> access{};
  };
  // `coordinator` must outlive this.
  Runner(coord::Coordinator& coordinator, coord::ClusterKeys keys, Options options, MakeSource make_source);
  ~Runner() override;

  // For the metrics page; thread-safe.
  void collect(telemetry::Exposition& page, const std::string& cluster) const {
    figures_.collect(page, cluster);
  }

 private:
  // What stands between the source and the policy.
  struct SourceState {
    std::string trouble;  // "" when what we know is what is.
    bool answers = false, held = false;
    base::Duration age{0};
  };

  void instances(const std::vector<discovery::Instance>& all) override;
  void trouble(const Error& why) override;

  void work();
  void tick();
  [[nodiscard]] bool leads() const;
  bool follow_spec(base::TimePoint now);  // Whether there is a policy to run, and a source.
  void rest();                            // No policy, or another one leads.
  void drop_source();
  void look_elsewhere(const std::string& source);
  [[nodiscard]] std::vector<std::string> expected() const;
  [[nodiscard]] SourceState source_state(base::TimePoint now) const;
  void heed_operator(const SourceState& source);
  void eject(const std::set<std::string>& ids);
  void act(const topology::Spec& spec, const Decision& decision);
  Status ask(const topology::Spec& spec, const Decision& decision);
  Status write_spec(const topology::Spec& from, const topology::Spec& to);
  void show(const SourceState& source, const std::vector<discovery::Instance>& instances,
            const Decision& decision);
  void tell(const SourceState& source, const Decision& decision, base::TimePoint now);
  [[nodiscard]] Report report_of(const SourceState& source, const Decision& decision);
  void load_memory();

  coord::Coordinator& coordinator_;
  const coord::ClusterKeys keys_;
  const Options options_;
  const MakeSource make_source_;
  resize::ClusterView view_;
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::optional<std::vector<discovery::Instance>> seen_;  // What the guard let through. Guarded by mutex_.

  // Of the thread:
  std::string words_;  // The discovery key's value that `discovery_` was read from.
  std::optional<topology::DiscoverySpec> discovery_;
  std::unique_ptr<discovery::Guard> guard_;           // Before this: settled and plausible lists alone.
  std::unique_ptr<discovery::Source> source_;         // Goes before the guard.
  base::TimePoint source_tried_{}, source_wanted_{};  // Tried last; wanted first.
  std::string source_name_, source_error_, last_error_, told_;
  Report::Change last_change_;
  Report last_report_;  // For moments that stay.
  base::TimePoint told_at_{};
  Memory memory_;
  std::string seen_in_;                               // The source that `memory_.seen` is of.
  coord::Revision confirm_pending_ = 0, heeded_ = 0;  // Of the operator's word.
  bool leading_ = false;
  PolicyFigures figures_;
  std::thread thread_;
};

}  // namespace ringshift::membership
