#include "cli/resize_start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/plan_report.h"
#include "cli/requests.h"
#include "cli/resize_watch.h"
#include "cli/size_flag.h"
#include "cli/topology_registry.h"

namespace ringshift::cli {
namespace {

using resize::Request;

// What can be known to be wrong before anybody is asked.
Request request_from_flags(const StartFlags& flags) {
  resize::StartWords words;
  words.steps = flags.steps;
  words.soak = flags.soak;
  words.at = flags.at;
  words.until = flags.until;
  words.abort_if = flags.abort_if;
  words.keys_per_second = flags.rate;
  words.bytes_per_second = flags.byte_rate;
  words.allow_foreign = flags.allow_foreign;
  words.force = flags.force;
  words.replace = flags.replace;
  complete_start(*flags.more, words);
  Result<Request> request = resize::start_request(words);
  if (!request) end_command(kBadUsage, "--" + request.error().message);
  request->by = who_asks();
  return *std::move(request);
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
  resize::GivenFigures given;
  given.steps = flags.steps;
  if (flags.rate != 0) given.rate = flags.rate;
  if (flags.byte_rate != 0) given.rate_bytes = flags.byte_rate;
  const auto access = flags.members.open();
  if (!access) return std::unexpected(access.error());
  const Result<resize::PlanPreview> plan = resize::preview_plan(from, written, given, true, *access);
  if (!plan) return std::unexpected(plan.error());
  if (flags.json) {
    print_plan_json(plan->report());
  } else if (plan->live) {
    print_plan(plan->report());
  } else {
    print_plan_shares(plan->report());
    fmt::print("\nThe members were not asked for their keys{}{}\n", plan->why_not.empty() ? "." : ": ",
               plan->why_not);
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
  const auto patience = resize::answer_patience(*coordinator, keys, request, kControllerAnswer);
  if (flags.before_request) {
    if (const Status done = flags.before_request(*coordinator, keys); !done) {
      end_command(kFailed, done.error().message);
    }
  }
  const Status answer = ask_controller(*coordinator, keys, std::move(request), patience);
  if (!answer && flags.after_refusal) flags.after_refusal(*coordinator);
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
