// The cluster as its registry's keys tell it, kept up to date key by key, and what is new made of it at
// intervals.
//
// Pure but for arithmetic on the times it is given: it asks nobody. One thread. Invariant: a state's news,
// done to the state before it, give the state. Bounds: those of what the registry holds; kHotKeysShown,
// Series' own. Cost of build(): about a millisecond, and 10 with a thousand members, at most every
// kMembersEvery.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "admin/alerts.h"
#include "admin/figures.h"
#include "admin/json_text.h"
#include "admin/member_poll.h"
#include "admin/state.h"
#include "coord/coordinator.h"
#include "coord/keys.h"
#include "membership/report.h"
#include "ringshift/diff.h"

namespace ringshift::admin {

inline constexpr std::size_t kHotKeysShown = 100;
inline constexpr std::size_t kHotKeyBytesShown = 200;

// When something happens, by both clocks.
struct Moment {
  SteadyTime steady;
  std::int64_t unix_ms = 0;
};

struct PictureNames {
  std::string registry_url, name_space, cluster;
};

class Picture {
 public:
  static constexpr std::chrono::milliseconds kOverviewEvery{1000}, kMembersEvery{2000}, kPointEvery{1000};

  Picture(coord::ClusterKeys keys, PictureNames names);

  void reset(const coord::Range& range, Moment now);
  void apply(const coord::Event& event, Moment now);
  void connection(bool connected, std::string why, Moment now);
  void set_infos(MemberPoll::Infos infos) { infos_ = std::move(infos); }

  // The state now. What it costs much to say is said at intervals.
  [[nodiscard]] std::shared_ptr<const State> build(Moment now);
  // Whom to ask for their INFO.
  [[nodiscard]] std::vector<topology::Member> members_to_ask() const;

 private:
  struct Router {
    RouterHistory history;
    coord::Revision revision = 0;  // Of its last report.
    coord::LeaseId lease = 0;
    std::int64_t updated_ms = 0;
  };
  struct Totals {  // Of all routers that report.
    std::optional<RouterRates> now, smooth;
    double p99_ms = -1;
    std::uint64_t clients = 0;
  };
  struct Shares {
    topology::Spec before;
    std::optional<std::pair<topology::Placement, std::vector<topology::Member>>> after;
    std::map<std::string, double> now, target;
    bool exact = true;
  };

  // What one key says.
  void take(const coord::KeyValue& kv, Moment now, bool news);
  void forget(const std::string& key, Moment now);
  void take_topology(const coord::KeyValue& kv, Moment now);
  void take_history(const coord::KeyValue& kv, Moment now, bool news);
  void take_log(const coord::KeyValue& kv, bool news);
  void take_audit(const coord::KeyValue& kv, bool news);
  void take_status(const coord::KeyValue& kv, Moment now);
  // Of the policy's two keys; `value` "": it is gone.
  void take_membership(const std::string& key, std::string value);
  void take_router(const coord::KeyValue& kv, Moment now);
  void update_shares();
  void sum_up(Moment now);

  void say(State& state, Topic topic, std::string data) { state.news.push_back({topic, std::move(data)}); }
  // The parts of a state (picture_views.cpp).
  [[nodiscard]] Object overview_of(const std::vector<Alert>& alerts) const;
  [[nodiscard]] AlertFacts alert_facts(Moment now) const;
  [[nodiscard]] std::map<std::string, Object> member_objects(Moment now) const;
  [[nodiscard]] std::map<std::string, Object> router_objects(Moment now) const;
  [[nodiscard]] std::string hot_keys_text(Moment now);
  [[nodiscard]] std::string registry_text() const;
  [[nodiscard]] std::string topology_text() const;
  [[nodiscard]] SeriesPoint point_of(Moment now) const;
  [[nodiscard]] std::optional<double> origin_qps(const std::optional<RouterRates>& rates) const;
  [[nodiscard]] std::string version_text() const;
  void build_slow_parts(State& state, Moment now);

  const coord::ClusterKeys keys_;
  const PictureNames names_;

  // As the registry has it.
  std::map<std::string, Router> routers_;
  std::map<std::string, coord::KeyValue> instances_;
  std::map<std::string, std::uint64_t> key_counts_;  // By the first word of the name.
  std::set<std::string> known_keys_;
  std::shared_ptr<const coord::StoredTopology> stored_;
  std::shared_ptr<const topology::Snapshot> snapshot_;
  std::int64_t topology_seen_ms_ = 0;
  std::shared_ptr<const coord::KeyValue> spec_;
  resize::ResizeStatus status_;
  std::map<coord::Revision, PastTopology> history_;
  std::map<std::string, coord::Revision> history_keys_;  // Name -> the entry's revision.
  std::optional<topology::Topology> last_past_;          // Of the newest entry: to say what changed.
  resize::LoggedResizes logs_;
  std::map<std::string, AuditEntry> audit_;
  std::string discovery_, membership_;        // The values of the keys; "" when they are not there.
  std::optional<membership::Report> report_;  // Of membership_, while there is a policy.
  bool membership_changed_ = true;
  std::optional<coord::KeyValue> controller_;
  std::optional<std::int64_t> controller_since_ms_;
  std::int64_t controller_lost_ms_ = 0;  // Since when nobody holds the lock, when nobody does.
  std::optional<double> origin_reported_;
  std::int64_t origin_reported_ms_ = 0;
  std::uint64_t cluster_id_ = 0;
  coord::Revision revision_ = 0;
  bool connected_ = false, fresh_start_ = true;
  std::string connection_error_ = "not asked yet";
  std::int64_t connection_since_ms_ = 0;

  // Made of it.
  MemberPoll::Infos infos_;
  Shares shares_;
  Totals totals_;
  Series series_;
  AlertBook alert_book_;
  std::vector<HotKeyFacts> hot_facts_;
  Objects member_texts_, router_texts_;
  std::vector<News> pending_;  // Said while keys were taken.
  bool history_changed_ = true, logs_changed_ = true, audit_changed_ = true, series_changed_ = true;
  std::shared_ptr<const State> last_;
  Object last_overview_;
  SteadyTime overview_at_{}, slow_at_{}, point_at_{};
};

// The log of a resize, as ResizeLog; `id` "last": the newest. nullopt: there is none.
[[nodiscard]] std::optional<std::string> log_text(const resize::LoggedResizes& logs, std::string_view id);
[[nodiscard]] std::string decision_text(std::string_view resize_id, const resize::Decision& decision);
[[nodiscard]] std::string audit_text(const AuditEntry& entry);
[[nodiscard]] std::string point_text(const SeriesPoint& point);
[[nodiscard]] std::string mark_text(const SeriesMark& mark);
[[nodiscard]] std::string series_text(const State& state, std::int64_t since_ms);
[[nodiscard]] std::string members_text(const State& state);
[[nodiscard]] std::string past_text(const PastTopology& past, coord::Revision current);

}  // namespace ringshift::admin
