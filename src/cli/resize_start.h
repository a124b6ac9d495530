// What `resize start` and `member` have in common: the flags of a start, the plan that is shown, the
// question, and the request.
//
// One thread, blocking: the registry, a glance at the members for the plan (they need not answer: then shares
// are all that is shown), and up to kControllerAnswer for the controller. Ends the command itself when
// something is wrong.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/registry_flags.h"
#include "cli/resize_more.h"
#include "cli/tls_flags.h"
#include "ringshift/topology.h"

namespace ringshift::cli {

struct StartFlags {
  RegistryFlags registry;
  MemberFlags members;  // For the glance.
  std::vector<double> steps;
  std::string soak, at, until, abort_if;
  std::uint64_t rate = 0, byte_rate = 0;
  std::shared_ptr<MoreResizeFlags> more;  // resize_more.h
  bool yes = false, dry_run = false, replace = false, wait = false, allow_foreign = false, force = false,
       json = false;

  // What else an operator's word changes: done right before the controller is asked, and taken back when that
  // refuses. May be empty.
  std::function<Status(coord::Coordinator&, const coord::ClusterKeys&)> before_request;
  std::function<void(coord::Coordinator&)> after_refusal;

  // All but what names the change itself.
  void add_to(CLI::App& command, bool cluster_required);
};

// The spec that shall follow the one in force.
using MakeTarget = std::function<Result<topology::Spec>(const topology::Spec& in_force)>;

// Returns when the resize was started (with --wait: is over), or --dry-run has shown the plan.
void start_resize(const StartFlags& flags, const MakeTarget& make_target);

}  // namespace ringshift::cli
