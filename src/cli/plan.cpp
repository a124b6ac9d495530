// `ringshift plan`: what a change of a cluster will do, before it is done. Reads only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "base/encoding.h"
#include "cli/cli.h"
#include "cli/live_figures.h"
#include "cli/plan_report.h"
#include "cli/plan_verbs.h"
#include "cli/registry_flags.h"
#include "cli/spec_file.h"
#include "cli/tls_flags.h"
#include "cli/topology_registry.h"
#include "plan/forecast/units.h"
#include "resize/phases.h"

namespace ringshift::cli {
namespace {

// What is taken where nothing is given or measured: a plan always comes out, and says what it rests on.
constexpr double kAssumedKeys = 1e6, kAssumedValueBytes = 1024, kAssumedQps = 10'000, kAssumedHitRate = 0.95;

struct Flags {
  RegistryFlags registry;
  MemberFlags members;  // For --live.
  std::vector<std::string> words;
  std::optional<std::uint64_t> keys, value_bytes, rate, rate_bytes;
  std::optional<double> qps, hit_rate, cold_hit_rate, origin_limit_qps;
  std::vector<double> steps;
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

// Takes the flag, else what was measured, else what is assumed, and notes which.
class Figures {
 public:
  template <class T>
  double pick(std::string name, const std::optional<T>& given, const std::optional<double>& measured,
              double assumed, const char* otherwise, std::string measured_note, std::string assumed_note) {
    PlanFigure figure{std::move(name), assumed, otherwise, "", std::move(assumed_note)};
    if (given) {
      figure.value = static_cast<double>(*given);
      figure.source = "given";
      figure.note.clear();
    } else if (measured) {
      figure.value = *measured;
      figure.source = "measured";
      figure.note = std::move(measured_note);
    }
    list_.push_back(std::move(figure));
    return list_.back().value;
  }
  void say(std::string text) { list_.back().text = std::move(text); }
  [[nodiscard]] std::vector<PlanFigure> take() && { return std::move(list_); }

 private:
  std::vector<PlanFigure> list_;
};

std::string rate_text(double share) { return fmt::format("{:.4g}", share); }

plan::ForecastInputs collect(const Flags& flags, const Change& change, Figures& figures) {
  plan::ForecastInputs in;
  in.from = change.from;
  in.to = change.to;
  std::optional<LiveFigures> live;
  if (flags.live && in.from.protocol != topology::Protocol::redis) {
    end_with(kFailed,
             fmt::format("--live measures Redis members, and the protocol of cluster '{}' is memcached: give "
                         "the figures by flags, without --live",
                         in.from.cluster));
  }
  if (flags.live) {
    live = or_fail(measure(in.from, in.to, change.coordinator.get(), flags.registry.keys(),
                           or_fail(flags.members.open())));
    in.members = live->members;
  }
  if (flags.keys) {  // The members' own counts would contradict it.
    for (plan::MemberFigures& member : in.members) member.keys.reset();
  }
  if (flags.qps) {
    for (plan::MemberFigures& member : in.members) member.ops_per_second.reset();
  }
  const auto measured = [&](auto field) -> std::optional<double> {
    if (!live) return std::nullopt;
    return field(*live);
  };
  const std::string traffic = live ? fmt::format("lookups at the {}", live->traffic_source) : "";

  in.keys = figures.pick("keys", flags.keys, measured([](const auto& l) { return l.keys; }), kAssumedKeys,
                         "assumed", "all members' DBSIZE", "--keys or --live");
  figures.say(plan::count_text(in.keys));
  in.value_bytes =
      figures.pick("value_bytes", flags.value_bytes, measured([](const auto& l) { return l.value_bytes; }),
                   kAssumedValueBytes, "assumed",
                   live && live->sampled_keys > 0 ? fmt::format("MEMORY USAGE of {} keys", live->sampled_keys)
                                                  : "used_memory_dataset by keys",
                   "--value-bytes or --live");
  figures.say(plan::bytes_text(in.value_bytes));
  in.traffic.qps =
      figures.pick("qps", flags.qps, measured([](const auto& l) { return l.lookups_per_second; }),
                   kAssumedQps, "assumed", traffic, "--qps or --live");
  figures.say(plan::count_text(in.traffic.qps) + "/s");
  in.traffic.hit_rate =
      figures.pick("hit_rate", flags.hit_rate, measured([](const auto& l) { return l.hit_rate; }),
                   kAssumedHitRate, "assumed", traffic, "--hit-rate, or --live on a cluster with traffic");
  figures.say(rate_text(in.traffic.hit_rate));
  in.traffic.cold_hit_rate = figures.pick("cold_hit_rate", flags.cold_hit_rate, {}, 0, "assumed", "",
                                          "--cold-hit-rate; 0: a moved key is a miss");
  figures.say(rate_text(in.traffic.cold_hit_rate));
  const double limit =
      figures.pick("origin_limit_qps", flags.origin_limit_qps, {}, std::numeric_limits<double>::quiet_NaN(),
                   "unknown", "", "--origin-limit-qps has the cold switch judged");
  in.origin_limit_qps = flags.origin_limit_qps;
  figures.say(std::isnan(limit) ? "-" : plan::count_text(limit) + "/s");
  // A resize moves at the limits of the spec in force.
  in.keys_per_second =
      figures.pick("rate", flags.rate, {}, static_cast<double>(in.from.limits.move_keys_per_second), "spec",
                   "", "limits.move_keys_per_second, or --rate");
  figures.say(plan::count_text(in.keys_per_second) + " keys/s");
  in.bytes_per_second = figures.pick("rate_bytes", flags.rate_bytes, {},
                                     static_cast<double>(in.from.limits.move_bytes_per_second), "spec", "",
                                     "limits.move_bytes_per_second, or --rate-bytes");
  figures.say(plan::bytes_text(in.bytes_per_second) + "/s");
  in.steps = flags.steps.empty() ? resize::kDefaultSteps : flags.steps;
  return in;
}

void run_plan(Flags& flags) {
  if (!flags.steps.empty()) {
    if (const Status steps = resize::check_steps(flags.steps); !steps)
      end_with(kBadUsage, steps.error().message);
  }
  const Change change = read_change(flags);
  Figures figures;
  const plan::ForecastInputs in = collect(flags, change, figures);
  const plan::Forecast out = or_fail(plan::forecast(in));
  const PlanReport plan_report{in, out, std::move(figures).take(), change.carried_over};
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

// "1.5KiB" becomes "1536". With binary units only, as in a spec.
std::string to_bytes(std::string& text) {
  constexpr double kMaxBytes = 1ULL << 60;
  const std::size_t unit_at = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string unit = text.substr(unit_at);
  double value = 0;
  const double scale = unit.empty() || unit == "B" ? 1
                       : unit == "KiB"             ? 1024.0
                       : unit == "MiB"             ? 1024.0 * 1024
                       : unit == "GiB"             ? 1024.0 * 1024 * 1024
                                                   : 0;
  if (unit_at == 0 || scale == 0 || !CLI::detail::lexical_cast(text.substr(0, unit_at), value) ||
      value * scale > kMaxBytes) {
    return fmt::format("'{}' is no size: give bytes, or KiB, MiB, GiB, such as 1.5KiB", text);
  }
  text = fmt::format("{:.0f}", value * scale);
  return "";
}

void add_figure_flags(CLI::App& command, Flags& flags) {
  const CLI::Validator share(check_share, "0..1"), amount(check_amount, "NUMBER"),
      whole(check_whole, "COUNT"), rate(check_rate, "COUNT"), size(to_bytes, "SIZE");
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
  add_figure_flags(*command, *flags);
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
