// What a controller does while it holds the lock: one loop that looks at requests, the spec and the topology,
// and takes the next step. Any failure reads everything again and goes on from what the registry says.
// Runs on the controller's thread alone.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coord/coordinator.h"
#include "coord/keys.h"
#include "resize/abort_watch.h"
#include "resize/cluster_view.h"
#include "resize/controller.h"
#include "resize/decisions.h"
#include "resize/members.h"
#include "resize/mover.h"
#include "resize/origin.h"
#include "resize/phases.h"
#include "resize/status.h"

namespace ringshift::resize {

class Leader {
 public:
  // `may_lead`: false once the lock is lost or the process stops.
  Leader(coord::Coordinator& coordinator, const coord::ClusterKeys& keys, const ControllerOptions& options,
         ClusterView& view, coord::Revision lock_revision, std::function<bool()> may_lead);
  void run();

 private:
  static constexpr std::chrono::milliseconds kPausedTick{250};  // How often a resize at rest is looked at.

  // leader.cpp: the loop, requests, documents
  Status load();
  Status tick();
  Status create_topology();
  Status follow_spec();
  Status follow_ejected();
  [[nodiscard]] std::map<std::string, std::uint32_t> factors_for(const topology::Spec& spec) const;
  Status handle_request(const coord::KeyValue& kv);
  // `consumed`: the key that holds the request; it goes with the start, in one transaction.
  Status start(const Request& request, const std::string& consumed);
  Status check_start(const Request& request) const;
  [[nodiscard]] static Result<Checkpoint> controls_of(const Request& request);
  Status pass_stamps(topology::Topology& now, const std::vector<topology::Member>& members, bool force);
  Status change_checkpoint(const Request& request);
  Status ask_rollback(const std::string& by);
  Status answer_request(const coord::KeyValue& kv, const Request& request, const Status& answer);
  // Writes the topology and whatever else belongs to it; `stale` when the lock or the topology moved on.
  Status publish(topology::Topology next, std::vector<coord::Op> also = {},
                 std::vector<coord::Compare> when = {});
  Status write(std::vector<coord::Op> ops);
  Status save_checkpoint();
  [[nodiscard]] coord::Op checkpoint_op() const;
  [[nodiscard]] bool request_waits() const;

  // leader_steps.cpp: the phases
  Status drive();
  Status prepare();
  Status purge_leftovers();
  Status check_members(const topology::Topology& next, bool allow_foreign);
  Status check_memory(const topology::Topology& next, const topology::Spec& to);
  Status copy_functions();
  Status hold_and_open(topology::Topology held, std::vector<coord::Op> also = {});
  Status open_gates();
  Status await_routers_and_fence();
  Status roll_back();
  Status call_off_hold(const std::string& why);  // leader_call_off.cpp
  // leader_dual.cpp
  Status move();
  Status after_a_gate();
  Status close_gates();
  Status end_step();
  [[nodiscard]] std::string step_name() const;
  Status after_mover(Mover::Outcome outcome, const std::string& error);
  // leader_mover.cpp: what the mover is told, and what it says
  [[nodiscard]] Mover::Options mover_options();
  void steer(Mover& mover, bool now_please = false);
  void note_progress(const Mover::Progress& progress);
  Status after_big_keys();
  [[nodiscard]] bool origin_is_over();
  Status change_big_keys(const Request& request);
  Status book_progress();
  void save_progress_now_and_then();
  Status switch_read_order();
  Status check_stamps();
  Status hold_again();
  Result<bool> repair_stamps();
  Status complete();
  Status trim_history();
  [[nodiscard]] std::vector<topology::Member> destinations() const;

  // leader_lost.cpp
  Status check_lost(const Request& request, const topology::Spec& target);
  Status check_gone(const topology::Member& member, bool force);
  Status declare_lost(const Request& request);
  Status take_lost();
  void fence_lost(const std::set<std::string>& allowed);
  [[nodiscard]] bool origin_rests();
  void feed_origin(OriginMeter::TimePoint now);

  // leader_expire.cpp
  Status measure_before_start(const topology::Topology& next, const Request& request);
  Result<bool> step_expired();
  Status drop_rest();

  // leader_addresses.cpp: members that move to another address while a resize runs, as after a failover
  [[nodiscard]] bool spec_waits() const;
  Result<bool> follow_addresses();  // Whether there was something to follow.
  Status check_successor(const topology::Member& moved);

  // leader_controls.cpp
  [[nodiscard]] topology::Limits limits_now() const;
  [[nodiscard]] std::string waits_for() const;
  [[nodiscard]] bool mover_rests() const;
  void begin_soak(const topology::Topology& settled);
  Status go_on(const std::string& by);
  Result<bool> conditions_broken();
  Status replace_running(const Request& request);
  Status start_next();
  std::vector<coord::Op> log_ops(std::string event, std::string text, std::string by = "");
  std::vector<coord::Op> log_ops_of(const std::string& id, std::string event, std::string text,
                                    std::string by = "");
  void note(std::string event, std::string text, std::string by = "");
  void note_error(const std::string& message);
  Status trim_logs();

  // leader_status.cpp
  void count_pulls();
  void estimate_keys_to_move(const topology::Spec& from, const topology::Spec& to);
  void tell(bool now);
  [[nodiscard]] ResizeStatus current_status();
  using Pairs = decltype(Checkpoint::pairs);
  [[nodiscard]] std::uint64_t left_of(const std::pair<std::string, std::string>& pair,
                                      const Pairs& pairs) const;

  coord::Coordinator& coordinator_;
  const coord::ClusterKeys& keys_;
  const ControllerOptions& options_;
  ClusterView& view_;
  const coord::Revision lock_revision_;
  const std::function<bool()> may_lead_;
  const std::string connection_name_;

  std::optional<topology::Topology> topology_;
  coord::Revision topology_revision_ = 0;
  std::optional<Checkpoint> checkpoint_;  // Of the resize under way.
  ResizeStatus status_;
  ResizeStatus told_;
  std::chrono::steady_clock::time_point told_at_, stamps_checked_at_, moved_at_, progress_saved_at_;
  std::uint64_t moved_before_ = 0;
  Mover::Progress progress_;                         // Of the mover at work.
  std::map<std::string, std::uint64_t> pulls_seen_;  // Router id -> its counter when last seen.
  std::map<std::string, std::uint64_t> pulled_bytes_seen_;
  coord::Revision spec_seen_ = 0;  // Of the spec that follow_addresses() looked at last.
  std::unique_ptr<TokenBucket> key_rate_, byte_rate_;
  std::chrono::steady_clock::time_point steered_at_;
  AbortWatch abort_watch_;
  bool queued_ = false;  // A start waits under keys_.next().
  std::string log_id_;   // Whose log log_number_ counts.
  std::uint64_t log_number_ = 0;
  std::string error_noted_;
  std::size_t holds_called_off_ = 0;  // In a row.
  std::chrono::steady_clock::time_point step_began_{};
  Members members_;
  OriginMeter origin_;
  std::chrono::steady_clock::time_point step_ended_at_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point expiry_seen_at_;  // When this leader first saw the step's wait.
  std::uint64_t expiry_seen_of_ = 0;                      // Its Checkpoint::expire_slices.
};

}  // namespace ringshift::resize
