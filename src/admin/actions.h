// What the API does: plans, and requests to the controller, by the functions that the CLI has, too. Blocking:
// for the listener's workers.
//
// An action that was taken, and one that was refused, is logged and put on the audit list; that it cannot be
// written there does not undo it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "admin/bodies.h"
#include "admin/listener.h"
#include "admin/model.h"
#include "coord/coordinator.h"

namespace ringshift::admin {

class Actions {
 public:
  static constexpr std::chrono::seconds kControllerPatience{20};

  Actions(coord::Coordinator& coordinator, coord::ClusterKeys keys, const Model& model,
          std::shared_ptr<const backend::MemberAccess> access)
      : coordinator_(coordinator), keys_(std::move(keys)), model_(model), access_(std::move(access)) {}

  // Who does what to whom.
  struct Order {
    std::string who;      // The token's name.
    std::string action;   // "resize/start", "members/drain".
    std::string subject;  // A member's id, a revision; "".
    std::string body;
  };

  [[nodiscard]] Answer plan(const std::string& body);
  [[nodiscard]] Answer start(const Order& order);
  [[nodiscard]] Answer add_members(const Order& order);
  [[nodiscard]] Answer drain_member(const Order& order);
  [[nodiscard]] Answer admit(const Order& order);
  [[nodiscard]] Answer remove_member(const Order& order);
  [[nodiscard]] Answer weigh_member(const Order& order);
  [[nodiscard]] Answer restore(const Order& order);
  [[nodiscard]] Answer steer(const Order& order, resize::Request::Action action);  // pause, resume, rollback
  [[nodiscard]] Answer set_rate(const Order& order);
  [[nodiscard]] Answer big_keys(const Order& order);
  [[nodiscard]] Answer declare_lost(const Order& order);

  void stop() noexcept { stopping_ = true; }

 private:
  // A resize to the spec that `change` makes.
  [[nodiscard]] Answer start_to(const Order& order, StartBody body);
  // The same with marks of `ids` as drained, or without them: taken back when it is not started.
  [[nodiscard]] Answer start_marked(const Order& order, StartBody body, const std::vector<std::string>& ids,
                                    bool drained);
  // The controller's answer to it.
  [[nodiscard]] Answer ask(const Order& order, resize::Request request, const std::string& from,
                           const std::string& to);
  void note(const Order& order, const std::string& from, const std::string& to, const std::string& result);
  [[nodiscard]] Result<coord::StoredTopology> in_force();
  [[nodiscard]] Result<topology::Spec> target_of(const Change& change, const topology::Spec& current) const;

  coord::Coordinator& coordinator_;
  const coord::ClusterKeys keys_;
  const Model& model_;
  const std::shared_ptr<const backend::MemberAccess> access_;
  std::atomic<bool> stopping_{false};
};

// The spec of a version of the history, for `revision` (its number, or "current").
[[nodiscard]] Result<coord::StoredTopology> find_topology(const State& state, const std::string& revision);

}  // namespace ringshift::admin
