#include "cli/resize_start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/plan_figures.h"
#include "cli/requests.h"
#include "cli/resize_watch.h"
#include "cli/size_flag.h"
#include "cli/topology_registry.h"
#include "plan/edit.h"
#include "resize/controls.h"
#include "resize/phases.h"

namespace ringshift::cli {
namespace {

using resize::Request;

// What can be known to be wrong before anybody is asked.
Request request_from_flags(const StartFlags& flags) {
  Request request;
  request.action = Request::Action::start;
  if (!flags.steps.empty()) {
    if (const Status steps = resize::check_steps(flags.steps); !steps)
      end_command(kBadUsage, steps.error().message);
  }
  request.steps = flags.steps;
  if (!flags.soak.empty()) {
    const auto soak = resize::parse_duration(flags.soak);
    if (!soak) end_command(kBadUsage, "--soak: " + soak.error().message);
    request.soak = *soak;
  }
  const auto window = resize::make_window(flags.at, flags.until, resize::unix_now());
  if (!window) end_command(kBadUsage, "--" + window.error().message);
  const auto conditions = resize::parse_conditions(flags.abort_if);
  if (!conditions) end_command(kBadUsage, "--" + conditions.error().message);
  request.at = flags.at;
  request.until = flags.until;
  request.abort_if = flags.abort_if;
  request.keys_per_second = flags.rate;
  request.bytes_per_second = flags.byte_rate;
  request.allow_foreign = flags.allow_foreign;
  request.force = flags.force;
  request.replace = flags.replace;
  request.by = who_asks();
  if (const std::string wrong = complete_start(*flags.more, request); !wrong.empty())
    end_command(kBadUsage, wrong);
  return request;
}

void refuse_without_an_answer(const StartFlags& flags) {
  if (flags.yes || flags.dry_run) return;
  if (flags.json) {
    end_command(kBadUsage,
                "--json leaves no room for a question: add --yes to start, or --dry-run for the plan");
  }
  if (::isatty(STDIN_FILENO) != 0) return;
  end_command(
      kBadUsage,
      "standard input is no terminal, so nobody can be asked: add --yes to start without a question, or "
      "--dry-run to see what it would do");
}

StoredTopology topology_in_force(coord::Coordinator& coordinator, const StartFlags& flags) {
  auto stored = or_end(read_topology(coordinator, flags.registry.keys()));
  if (stored) return *std::move(stored);
  const auto spec = or_end(coordinator.get(flags.registry.keys().spec()));
  if (spec) {
    end_command(kFailed,
                fmt::format("cluster '{}' has a spec and no topology yet: run 'ringshift controller', which "
                            "makes it",
                            flags.registry.cluster));
  }
  end_command(kFailed,
              fmt::format("the registry at {} has no cluster '{}' in namespace '{}': check --cluster and "
                          "--namespace, or apply a spec first ('ringshift topology apply')",
                          flags.registry.registry, flags.registry.cluster, flags.registry.name_space));
}

void judge_what_runs(const StartFlags& flags, const topology::Topology& now) {
  if (!now.resize) return;
  if (!flags.replace) {
    end_command(
        kFailed,
        fmt::format("resize {} is running: wait for it ('ringshift resize watch'), take it back ('ringshift "
                    "resize rollback'), or have it rolled back and this one started after it, with --replace",
                    now.resize->id));
  }
  if (flags.json) return;
  fmt::print("Resize {} is under way ({} of {} slices have moved). It is rolled back first; then:\n\n",
             now.resize->id, topology::count(now.resize->done), topology::kSliceCount);
}

// Prints it; with `quietly` only looks whether there is one.
Status show_plan(const StartFlags& flags, const topology::Spec& from, const topology::Spec& written) {
  const Result<topology::Spec> to = plan::successor(from, written);
  if (!to) return std::unexpected(to.error());
  GivenFigures given;
  given.steps = flags.steps;
  if (flags.rate != 0) given.rate = flags.rate;
  if (flags.byte_rate != 0) given.rate_bytes = flags.byte_rate;
  std::optional<LiveFigures> live;
  std::string why_not;
  if (const auto access = flags.members.open(); !access) {
    return std::unexpected(access.error());
  } else if (from.protocol == topology::Protocol::redis) {
    Result<LiveFigures> seen = glance(from, *to, *access);
    if (seen) live = std::move(*seen);
    if (!seen) why_not = seen.error().message;
  }
  // A resize moves at the new spec's limits, unless a rate is given.
  topology::Spec limited = from;
  limited.limits = to->limits;
  PlanBasis basis = plan_basis(limited, *to, given, live);
  const Result<plan::Forecast> out = plan::forecast(basis.in);
  if (!out) return std::unexpected(out.error());
  const PlanReport report{basis.in, *out, std::move(basis.figures), *to != written};
  if (flags.json) {
    print_plan_json(report);
  } else if (live) {
    print_plan(report);
  } else {
    print_plan_shares(report);
    fmt::print("\nThe members were not asked for their keys{}{}\n", why_not.empty() ? "." : ": ", why_not);
  }
  std::fflush(stdout);
  return {};
}

bool confirmed() {
  fmt::print("\nStart? [y/N] ");
  std::fflush(stdout);
  char answer[16] = "";
  if (std::fgets(answer, sizeof answer, stdin) == nullptr) return false;
  const std::string_view word(answer);
  return word == "y\n" || word == "Y\n" || word == "yes\n";
}

}  // namespace

void StartFlags::add_to(CLI::App& command, bool cluster_required) {
  registry.add_to(command, cluster_required);
  constexpr const char* kPace = "Pace and limits";
  command.add_option("--steps", steps, "Shares of the keyspace, in percent, moved one after the other")
      ->delimiter(',')
      ->default_str("1,10,50,100")
      ->group(kPace);
  command.add_option("--soak", soak, "Pause between steps, such as 60s, 5m or 1h")
      ->type_name("TIME")
      ->group(kPace);
  command.add_option("--rate", rate, "Keys a second that are moved, over all members [the spec's limit]")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100000000}))
      ->type_name("KEYS")
      ->group(kPace);
  command
      .add_option("--byte-rate", byte_rate, "Bytes a second that are moved, such as 20MiB [the spec's limit]")
      ->transform(CLI::Validator(size_to_bytes, "SIZE"))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 60))
      ->type_name("SIZE")
      ->group(kPace);
  command
      .add_option(
          "--at", at,
          "When it may begin: HH:MM of the controller's local time, or 2026-12-01T02:00:00Z; with --until "
          "as HH:MM, too: every day")
      ->type_name("TIME")
      ->group(kPace);
  command
      .add_option("--until", until,
                  "When steps and the mover rest, until the window opens again or 'resize resume'")
      ->type_name("TIME")
      ->group(kPace);
  command
      .add_option(
          "--abort-if", abort_if,
          "Roll back by itself when one of these holds for 3 seconds: hit_rate<0.9,p99_ms>20,origin_qps>8000")
      ->type_name("CONDITIONS")
      ->group(kPace);
  more = add_more_start_options(command);
  command.add_flag("--yes,-y", yes, "Start without asking");
  command.add_flag("--dry-run", dry_run, "Show the plan and start nothing; with --json as 'plan --json'");
  command.add_flag("--replace", replace, "Roll back the resize that runs, then start this one");
  command.add_flag("--wait", wait, "Follow the resize until it ends");
  command.add_flag("--allow-foreign", allow_foreign,
                   "Start although clients that are not ours are connected to members");
  command.add_flag(
      "--force", force,
      "Allow that more than half of the members leave at once, and members that a lost registry marked");
  command.add_flag("--json", json, "Print JSON for machines");
  members.add_to(command);
}

void start_resize(const StartFlags& flags, const MakeTarget& make_target) {
  Request request = request_from_flags(flags);
  refuse_without_an_answer(flags);
  const auto coordinator = or_end(flags.registry.connect());
  const StoredTopology stored = topology_in_force(*coordinator, flags);
  judge_what_runs(flags, stored.topology);
  const topology::Spec target = or_end(make_target(stored.topology.spec));
  if (flags.dry_run || !flags.json) {
    const Status shown = show_plan(flags, stored.topology.spec, target);
    // With --yes the controller's refusal says more than that there is no plan.
    if (!shown && !flags.yes) end_command(kFailed, shown.error().message);
    if (!shown) report("no plan: " + shown.error().message);
  }
  if (flags.dry_run) return;
  if (!flags.yes && !confirmed()) end_command(kFailed, "nothing was started");
  request.spec = target;
  const coord::ClusterKeys keys = flags.registry.keys();
  const auto patience = answer_patience(*coordinator, keys, request, kControllerAnswer);
  const Status answer = ask_controller(*coordinator, keys, std::move(request), patience);
  if (!answer) end_command(kFailed, answer.error().message);
  const std::string replaced = stored.topology.resize ? stored.topology.resize->id : "";
  if (flags.wait) {
    if (const int status = follow_resize(*coordinator, keys, flags.json, replaced); status != kDone) {
      end_silently(status);
    }
    return;
  }
  if (flags.json) {
    fmt::print("{}\n", to_json(or_end(read_status(*coordinator, keys))));
  } else {
    fmt::print(
        "{}; 'ringshift resize watch' follows it\n",
        replaced.empty() ? "started" : "rolling back resize " + replaced + ", then the new one starts");
  }
}

}  // namespace ringshift::cli
