// `ringshift plan`: what a change of a cluster will do, before it is done. Reads only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <optional>

#include "base/encoding.h"
#include "cli/cli.h"
#include "cli/plan_report.h"
#include "cli/plan_verbs.h"
#include "cli/registry_flags.h"
#include "cli/size_flag.h"
#include "cli/spec_file.h"
#include "cli/tls_flags.h"
#include "cli/topology_registry.h"
#include "resize/phases.h"

namespace ringshift::cli {
namespace {

using resize::GivenFigures;
using resize::LiveFigures;
using resize::PlanBasis;

struct Flags {
  RegistryFlags registry;
  MemberFlags members;  // For --live.
  std::vector<std::string> words;
  GivenFigures figures;
  bool live = false, check = false, force = false, json = false;
};

[[noreturn]] void end_with(int status, std::string_view message) {
  report(message);
  throw CLI::RuntimeError(status);
}

template <class T>
T or_fail(Result<T> result) {
  if (!result) end_with(kFailed, result.error().message);
  return *std::move(result);
}

// What routers obey, or else the spec that no controller has published yet.
topology::Spec in_force(coord::Coordinator& coordinator, const Flags& flags,
                        const std::optional<StoredTopology>& stored) {
  const coord::ClusterKeys keys = flags.registry.keys();
  if (stored && stored->topology.resize) {
    end_with(kFailed,
             fmt::format("resize {} of cluster '{}' is under way: plan when it is over ('ringshift resize "
                         "status'), or name both specs as files",
                         stored->topology.resize->id, flags.registry.cluster));
  }
  if (stored) return stored->topology.spec;
  const auto spec = or_fail(coordinator.get(keys.spec()));
  if (spec) return or_fail(topology::parse_spec(spec->value, keys.spec()));
  end_with(kFailed,
           fmt::format("the registry at {} has no cluster '{}' in namespace '{}': check --cluster and "
                       "--namespace, or name the spec in force as a file: ringshift plan FROM.yaml ...",
                       flags.registry.registry, flags.registry.cluster, flags.registry.name_space));
}

topology::Spec spec_in_force(coord::Coordinator& coordinator, const Flags& flags) {
  const auto stored = read_topology(coordinator, flags.registry.keys());
  if (!stored) {
    end_with(kFailed, stored.error().message +
                          "; without a registry name the spec in force as a file, first: "
                          "ringshift plan FROM.yaml ...");
  }
  return in_force(coordinator, flags, *stored);
}

struct Change {
  topology::Spec from, to;
  bool carried_over = false;
  std::unique_ptr<coord::Coordinator> coordinator;  // Null when no registry is spoken to.
};

Change read_change(Flags& flags) {
  const Result<PlanWords> words = parse_plan_words(flags.words);
  if (!words) end_with(kBadUsage, words.error().message);
  std::optional<topology::Spec> written;
  if (words->to_file) written = or_fail(read_spec(*words->to_file));
  if (!words->from_file && flags.registry.cluster.empty()) {
    if (!written) {
      end_with(kBadUsage,
               fmt::format("of which cluster? Name its spec first ('plan FROM.yaml {} ...'), or the "
                           "cluster by --cluster (and its registry by --registry)",
                           flags.words[0]));
    }
    flags.registry.cluster = written->cluster;
  }
  Change change;
  // With FROM as a file the registry is asked for traffic alone, and only when the cluster is named.
  if (!words->from_file || (flags.live && !flags.registry.cluster.empty())) {
    change.coordinator = or_fail(flags.registry.connect());
  }
  change.from =
      words->from_file ? or_fail(read_spec(*words->from_file)) : spec_in_force(*change.coordinator, flags);
  if (written) {
    change.to = or_fail(plan::successor(change.from, *written));
    change.carried_over = change.to != *written;
  } else {
    change.to = or_fail(plan::edit(change.from, *words->edit));
    change.carried_over = change.to.placement != change.from.placement;
  }
  if (const Status follows = topology::check_succession(change.from, change.to, flags.force); !follows) {
    end_with(kFailed, follows.error().message);
  }
  return change;
}

std::optional<LiveFigures> measured_live(const Flags& flags, const Change& change) {
  if (!flags.live) return std::nullopt;
  if (change.from.protocol != topology::Protocol::redis) {
    end_with(kFailed,
             fmt::format("--live measures Redis members, and the protocol of cluster '{}' is memcached: give "
                         "the figures by flags, without --live",
                         change.from.cluster));
  }
  return or_fail(resize::measure(change.from, change.to, change.coordinator.get(), flags.registry.keys(),
                                 or_fail(flags.members.open())));
}

void run_plan(Flags& flags) {
  if (!flags.figures.steps.empty()) {
    if (const Status steps = resize::check_steps(flags.figures.steps); !steps)
      end_with(kBadUsage, steps.error().message);
  }
  const Change change = read_change(flags);
  PlanBasis basis = resize::plan_basis(change.from, change.to, flags.figures, measured_live(flags, change));
  const plan::Forecast out = or_fail(plan::forecast(basis.in));
  const PlanReport plan_report{basis.in, out, std::move(basis.figures), change.carried_over};
  if (flags.json) {
    print_plan_json(plan_report);
  } else {
    print_plan(plan_report);
  }
  if (flags.check && out.verdict == plan::Verdict::unsafe) throw CLI::RuntimeError(kFailed);
}

// "" when `text` is a share of 1; CLI11's own range lets NaN pass, and does not guess that 95 was meant as
// 0.95.
std::string check_share(const std::string& text) {
  double value = -1;
  if (!CLI::detail::lexical_cast(text, value)) return fmt::format("'{}' is no number", text);
  if (value >= 0 && value <= 1) return "";
  return fmt::format("{} is not within 0 and 1{}", text,
                     value > 1 && value <= 100 ? fmt::format(" (is {:g} meant?)", value / 100) : "");
}

std::string check_amount(const std::string& text) {
  double value = -1;
  if (!CLI::detail::lexical_cast(text, value)) return fmt::format("'{}' is no number", text);
  return value >= 0 && std::isfinite(value) ? "" : fmt::format("{} must be 0 or more", text);
}

std::string check_whole(const std::string& text) {
  return base::parse_u64(text) ? "" : fmt::format("'{}' is no whole number of 0 or more", text);
}

std::string check_rate(const std::string& text) {
  return base::parse_u64(text).value_or(0) > 0 ? "" : fmt::format("'{}' is no whole number above 0", text);
}

void add_figure_flags(CLI::App& command, GivenFigures& flags) {
  const CLI::Validator share(check_share, "0..1"), amount(check_amount, "NUMBER"),
      whole(check_whole, "COUNT"), rate(check_rate, "COUNT"), size(size_to_bytes, "SIZE");
  constexpr const char* kFigures = "Figures";
  command.add_option("--keys", flags.keys, "Keys of the whole cluster")->check(whole)->group(kFigures);
  command
      .add_option("--value-bytes", flags.value_bytes, "What a key takes of memory on average, all included")
      ->transform(size)
      ->group(kFigures);
  command.add_option("--qps", flags.qps, "Lookups a second of all clients")->check(amount)->group(kFigures);
  command.add_option("--hit-rate", flags.hit_rate, "Their hit rate now")->check(share)->group(kFigures);
  command.add_option("--cold-hit-rate", flags.cold_hit_rate, "Hit rate of keys that were not moved [0]")
      ->check(share)
      ->group(kFigures);
  command.add_option("--origin-limit-qps", flags.origin_limit_qps, "Lookups a second that the origin bears")
      ->check(amount)
      ->group(kFigures);
  command.add_option("--rate", flags.rate, "Keys a second that are moved [the spec's]")
      ->check(rate)
      ->group(kFigures);
  command.add_option("--rate-bytes", flags.rate_bytes, "Bytes a second that are moved [the spec's]")
      ->transform(size)
      ->check(rate)
      ->group(kFigures);
  command.add_option("--steps", flags.steps, "Shares of the keyspace, in percent, moved one after the other")
      ->delimiter(',')
      ->default_str("1,10,50,100")
      ->group(kFigures);
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plan", "Tell what a change will do, before it is done");
  const auto flags = std::make_shared<Flags>();
  command
      ->add_option("CHANGE", flags->words,
                   "[FROM.yaml] then TO.yaml, or add ID=ADDRESS[,weight=W][,zone=Z]..., or remove ID..., or "
                   "weight ID=W...; without FROM.yaml what is in force in the registry")
      ->type_name("");
  flags->registry.add_to(*command, false);
  add_figure_flags(*command, flags->figures);
  flags->members.add_to(*command);
  command->add_flag("--live", flags->live, "Measure the figures that are not given, at the running members");
  command->add_flag("--force", flags->force, "Also when more than half of the members leave at once");
  command->add_flag("--check", flags->check, "Exit with 1 when the verdict is unsafe");
  command->add_flag("--json", flags->json, "One JSON object");
  command->footer(
      "Examples:\n"
      "  ringshift plan four.yaml five.yaml --keys 20000000 --value-bytes 1KiB\n"
      "  ringshift plan four.yaml add cache-5=10.0.0.5:6379 --qps 100000 --hit-rate 0.95 --origin-limit-qps "
      "12000\n"
      "  ringshift plan four.yaml remove cache-2 --live\n"
      "  ringshift plan --cluster cache weight cache-1=2 --live --check\n"
      "Each figure says where it is from: given, measured, assumed, or the spec's.");
  command->callback([flags] { run_plan(*flags); });
}

}  // namespace ringshift::cli
