#include "cli/member_policy.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/requests.h"
#include "cli/spec_file.h"
#include "coord/membership_keys.h"
#include "membership/admit.h"
#include "plan/edit.h"
#include "resize/controls.h"
#include "topology/discovery.h"

namespace ringshift::cli {
namespace {

struct LookFlags {
  RegistryFlags registry;
  std::string file;
  bool json = false;
};

struct AdmitFlags {
  StartFlags start;
  std::string id;
};

std::string read_key(coord::Coordinator& coordinator, const std::string& key) {
  const auto kv = or_end(coordinator.get(key));
  return kv ? kv->value : "";
}

membership::Report read_report(coord::Coordinator& coordinator, const RegistryFlags& flags) {
  return or_end(membership::read_report(coordinator, flags.keys(), flags.cluster));
}

std::string_view state_word(discovery::InstanceState state) {
  return state == discovery::InstanceState::ready      ? "ready"
         : state == discovery::InstanceState::draining ? "draining"
                                                       : "unhealthy";
}

void print_report(const membership::Report& report) {
  fmt::print("source {}, admission {}\n", report.source, report.admit_auto ? "auto" : "manual");
  if (!report.trouble.empty()) {
    fmt::print("in trouble{}, so nothing changes: {}\n",
               report.trouble_since_ms == 0 ? "" : " since " + resize::local_time(report.trouble_since_ms),
               report.trouble);
  }
  if (!report.last_error.empty()) {
    fmt::print("last change: {}\n", report.last_error);
  } else if (!report.last_change.member.empty()) {
    fmt::print("last change: {} {} at {}\n", report.last_change.member,
               report.last_change.joins ? "was admitted" : "left",
               resize::local_time(report.last_change.at_ms));
  }
  if (report.cooldown_until_ms != 0)
    fmt::print("cool-down until {}\n", resize::local_time(report.cooldown_until_ms));
  for (const membership::Candidate& candidate : report.candidates) {
    const topology::Member& member = candidate.member;
    fmt::print("{:<20} {:<24} {:<9} weight {:<5} {}{}\n", member.id, member.address,
               state_word(candidate.state), member.weight,
               member.zone.empty() ? "" : "zone " + member.zone + "  ",
               !candidate.why_not.empty()    ? "not possible: " + candidate.why_not
               : candidate.waits_for.empty() ? "joins now"
                                             : "waits: " + candidate.waits_for);
  }
  if (report.candidates_more != 0) fmt::print("and {} more\n", report.candidates_more);
  if (report.candidates.empty()) fmt::print("no candidates\n");
  for (const auto& gone : report.gone) {
    fmt::print("member {} is gone{}; {}{}{}\n", gone.id,
               gone.since_ms == 0 ? "" : " since " + resize::local_time(gone.since_ms),
               gone.waits_for.empty() ? "it leaves now" : "it stays: " + gone.waits_for,
               gone.leaves_at_ms == 0 ? "" : "; leaves at " + resize::local_time(gone.leaves_at_ms),
               gone.ejected ? "; the next members take its keys" : "");
  }
  for (const auto& one : report.elsewhere) {
    fmt::print("member {} is at {}, its instance at {}: routers ask the first\n", one.id, one.member_address,
               one.instance_address);
  }
}

void run_candidates(const LookFlags& flags) {
  const auto coordinator = or_end(flags.registry.connect());
  const membership::Report told = read_report(*coordinator, flags.registry);
  if (read_key(*coordinator, flags.registry.keys().controller()).empty()) {
    report(
        "no controller leads: what follows is what the last one told, and nobody joins or leaves by policy. "
        "Start one: 'ringshift controller'");
  }
  if (flags.json) {
    fmt::print("{}\n", membership::to_json(told));
  } else {
    print_report(told);
  }
}

void run_admit(AdmitFlags& flags) {
  const auto coordinator = or_end(flags.start.registry.connect());
  const membership::Report report = read_report(*coordinator, flags.start.registry);
  const topology::Member member = or_end(membership::admissible(report, flags.id));
  mark_drained(flags.start, {flags.id}, false);
  plan::Edit edit;
  edit.add = {member};
  start_resize(flags.start, [&](const topology::Spec& in_force) { return plan::edit(in_force, edit); });
}

void run_confirm(const LookFlags& flags) {
  const auto coordinator = or_end(flags.registry.connect());
  const membership::Report report = read_report(*coordinator, flags.registry);
  if (const Status done = membership::confirm_held(*coordinator, flags.registry.keys(), report, who_asks());
      !done)
    end_command(kFailed, done.error().message);
  fmt::print("confirmed; 'ringshift member candidates' shows what the policy makes of it\n");
}

// The file's discovery. A file of another cluster is the wrong one.
topology::DiscoverySpec discovery_in(const LookFlags& flags) {
  const std::string text = or_end(read_text(flags.file));
  const auto found = or_end(discovery_of_text(text, flags.file));
  if (!found)
    end_command(kFailed, fmt::format("{} has no block 'discovery'; 'none' takes it away", flags.file));
  const topology::Spec spec = or_end(topology::parse_spec(text, flags.file));
  if (spec.cluster != flags.registry.cluster) {
    end_command(kFailed, fmt::format("{}: the spec is for cluster '{}', but --cluster says '{}': correct one "
                                     "of them",
                                     flags.file, spec.cluster, flags.registry.cluster));
  }
  return *found;
}

void run_policy(const LookFlags& flags) {
  std::optional<topology::DiscoverySpec> wanted;
  if (!flags.file.empty() && flags.file != "none") wanted = discovery_in(flags);
  const auto coordinator = or_end(flags.registry.connect());
  const std::string key = coord::discovery_key(flags.registry.keys());
  const std::string text = read_key(*coordinator, key);
  if (text.empty() && read_key(*coordinator, flags.registry.keys().spec()).empty()) {
    end_command(kFailed,
                fmt::format("the registry at {} has no cluster '{}' in namespace '{}': check --cluster and "
                            "--namespace, or apply a spec",
                            flags.registry.registry, flags.registry.cluster, flags.registry.name_space));
  }
  if (wanted) {
    static_cast<void>(or_end(coordinator->put(key, topology::to_json(*wanted))));
    fmt::print("in force for cluster {}: source {}, admission {}\n", flags.registry.cluster,
               wanted->source.kind, wanted->admit_auto ? "auto" : "manual");
    return;
  }
  if (text.empty())
    end_command(kFailed, fmt::format("cluster '{}' has no discovery", flags.registry.cluster));
  if (flags.file == "none") {
    static_cast<void>(or_end(coordinator->remove(key)));
    fmt::print("taken away: nobody joins or leaves cluster {} by policy\n", flags.registry.cluster);
    return;
  }
  fmt::print("{}\n", flags.json ? text : nlohmann::json::parse(text, nullptr, false).dump(2));
}

}  // namespace

void mark_drained(StartFlags& flags, std::vector<std::string> ids, bool drained) {
  auto marks = std::make_shared<membership::DrainMarks>();
  flags.before_request = [ids = std::move(ids), drained, marks](coord::Coordinator& coordinator,
                                                                const coord::ClusterKeys& keys) {
    return marks->set(coordinator, keys, ids, drained, who_asks());
  };
  flags.after_refusal = [marks](coord::Coordinator& coordinator) { marks->undo(coordinator); };
}

void add_member_policy(CLI::App& member) {
  auto look = std::make_shared<LookFlags>();
  CLI::App* candidates = member.add_subcommand(
      "candidates", "Instances that were found and are no members, and members that are gone");
  look->registry.add_to(*candidates, /*cluster_required=*/true);
  candidates->add_flag("--json", look->json, "Print JSON for machines");
  candidates->footer(
      "What the leading controller sees by the spec's 'discovery', some seconds old.\n"
      "Examples:\n"
      "  ringshift member candidates --cluster cache");
  candidates->callback([look] { run_candidates(*look); });

  auto admit = std::make_shared<AdmitFlags>();
  CLI::App* one = member.add_subcommand(
      "admit", "Make a candidate a member, with the weight and zone that the spec's rules give it");
  one->add_option("ID", admit->id, "Of 'member candidates'")->required();
  admit->start.add_to(*one, /*cluster_required=*/true);
  one->footer(
      "Takes away the mark of an earlier 'member drain'.\n"
      "Examples:\n"
      "  ringshift member admit cache-5 --cluster cache\n"
      "  ringshift member admit cache-5 --yes --wait --cluster cache");
  one->callback([admit] { run_admit(*admit); });

  auto word = std::make_shared<LookFlags>();
  CLI::App* confirm = member.add_subcommand(
      "confirm", "Say that the held list of instances is right, though it is empty or lost more than half");
  word->registry.add_to(*confirm, /*cluster_required=*/true);
  confirm->footer(
      "For the list that 'member candidates' tells of; another one stays held. Members leave only as the "
      "policy's\n"
      "'remove' says, all the same.\n"
      "Examples:\n"
      "  ringshift member confirm --cluster cache");
  confirm->callback([word] { run_confirm(*word); });

  auto policy = std::make_shared<LookFlags>();
  CLI::App* rules =
      member.add_subcommand("policy", "Show the cluster's 'discovery', or set it from a spec file");
  rules->add_option("FILE", policy->file,
                    "A spec with the block 'discovery'; none: take it away; nothing: show it");
  policy->registry.add_to(*rules, /*cluster_required=*/true);
  rules->add_flag("--json", policy->json, "Print it in one line");
  rules->footer(
      "Moves no key and takes effect at once; 'topology apply' does the same with the block of its file.\n"
      "Examples:\n"
      "  ringshift member policy --cluster cache\n"
      "  ringshift member policy cache.yaml --cluster cache");
  rules->callback([policy] { run_policy(*policy); });
}

}  // namespace ringshift::cli
