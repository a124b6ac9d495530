// `ringshift drill`: the stampede drill. The same load against the same change, by one strategy after
// another.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "cli/cli.h"
#include "cli/compare.h"
#include "cli/drill_live.h"
#include "cli/drill_report.h"
#include "drill/run_directory.h"

extern char** environ;

namespace ringshift::cli {
namespace {

using drilling::Options;
using drilling::Scenario;

constexpr std::size_t kMostMembers = 64;
constexpr std::size_t kSparkSeconds = 40;

struct DrillFlags {
  Options options;
  std::string scenario = "grow", origin = "sqlite";
  std::size_t from = 0, to = 0;  // 0: the scenario's usual.
  std::uint64_t ttl_seconds = 60, query_ms = 6, pool_timeout_ms = 500;
};

// Fills in what the flags leave open; an error is bad usage.
Status complete(DrillFlags& flags) {
  Options& o = flags.options;
  const std::map<std::string, Scenario> scenarios = {{"grow", Scenario::grow},
                                                     {"remove", Scenario::remove},
                                                     {"kill", Scenario::kill},
                                                     {"reweight", Scenario::reweight}};
  o.scenario = scenarios.at(flags.scenario);
  const bool smaller = o.scenario == Scenario::remove || o.scenario == Scenario::kill;
  o.from = flags.from != 0 ? flags.from
           : flags.to == 0 ? (smaller ? 5 : 4)
           : smaller       ? flags.to + 1
                           : flags.to - 1;
  o.to = flags.to != 0                      ? flags.to
         : smaller                          ? o.from - 1
         : o.scenario == Scenario::reweight ? o.from
                                            : o.from + 1;
  const auto wrong = [&](std::string_view rule) {
    return fail(ErrorKind::invalid,
                fmt::format("--scenario {} from {} to {} members: {}", flags.scenario, o.from, o.to, rule));
  };
  if (o.from < 1 || o.to < 1 || std::max(o.from, o.to) > kMostMembers)
    return wrong(fmt::format("choose 1 to {} members", kMostMembers));
  if (o.scenario == Scenario::grow && o.to <= o.from)
    return wrong("--to must be above --from; to shrink, --scenario remove");
  if (o.scenario == Scenario::remove && o.to >= o.from) return wrong("--to must be below --from");
  if (o.scenario == Scenario::kill && (o.to + 1 != o.from || o.to < 2))
    return wrong("one member dies: leave --to out, and --from is 3 or more");
  if (o.scenario == Scenario::reweight && o.to != o.from) return wrong("the number stays: leave --to out");
  if (o.scenario == Scenario::reweight && o.from < 2)
    return wrong("one member alone has all keys at any weight: --from is 2 or more");

  if (o.strategies.empty())
    o.strategies = {drilling::kModulo, drilling::kRing, drilling::kDualRead, drilling::kRingshift};
  o.app.ttl = std::chrono::seconds(flags.ttl_seconds);
  o.pool.query = std::chrono::milliseconds(flags.query_ms);
  o.pool.timeout = std::chrono::milliseconds(flags.pool_timeout_ms);
  o.app.seed = o.zipf.seed;
  o.dual_read_seconds = std::max(1U, o.seconds * 3 / 5);
  o.before_seconds = std::clamp(o.seconds / 3, 2U, 20U);
  o.warm_up_seconds = std::clamp(o.seconds / 4, 1U, 3U);
  o.origin = flags.origin == "postgres" ? drill::OriginKind::postgres
             : flags.origin == "mysql"  ? drill::OriginKind::mysql
                                        : drill::OriginKind::sqlite;
  return {};
}

Result<std::unique_ptr<drill::Workload>> make_workload(const Options& options, Console& console) {
  if (options.trace.empty()) return drill::zipf_workload(options.zipf);
  std::ifstream file(options.trace, std::ios::binary);
  if (!file)
    return fail(ErrorKind::not_found, fmt::format("--trace {}: {}", options.trace, std::strerror(errno)));
  Result<drill::Trace> trace = drill::read_trace(file, options.trace);
  if (!trace) return std::unexpected(trace.error());
  console.line("Trace: {} requests of {} keys{}.", grouped(trace->size()), grouped(trace->keys.size()),
               trace->cut ? ", and what follows in the file is left out" : "");
  return drill::trace_workload(std::move(*trace));
}

// The picture as PNG too, when a program for that is there.
void write_png(const std::string& directory, Console& console) {
  const std::string from = directory + "/drill.svg", to = directory + "/drill.png";
  std::string program = "rsvg-convert", flag = "--output", zoom = "--zoom=2";
  char* words[] = {program.data(),
                   zoom.data(),
                   flag.data(),
                   const_cast<char*>(to.c_str()),
                   const_cast<char*>(from.c_str()),
                   nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, "rsvg-convert", nullptr, nullptr, words, environ);
  int status = 0;
  if (failed != 0 || ::waitpid(pid, &status, 0) != pid || status != 0) {
    console.line("No drill.png: rsvg-convert {} (apt-get install librsvg2-bin).",
                 failed != 0 ? "is not installed" : "failed");
  }
}

Status write_report(const drilling::Report& report, Console& console) {
  const std::string& directory = report.options.out;
  if (directory.empty()) return {};
  for (const auto& [name, text] :
       {std::pair("results.json", drilling::json(report) + "\n"),
        std::pair("report.html", drilling::html(report)), std::pair("drill.svg", drilling::svg(report))}) {
    if (Status written = compare::write_whole(fmt::format("{}/{}", directory, name), text); !written)
      return written;
  }
  write_png(directory, console);
  console.line("Wrote report.html, results.json and drill.svg into {}.", directory);
  return {};
}

void say_how_it_went(const drilling::Report& report, const drilling::Outcome& outcome, Console& console) {
  const drilling::Figures f = report.figures(outcome);
  const drilling::Sparklines lines = drilling::sparklines(outcome.seconds, kSparkSeconds);
  console.line("{:<16} hit rate {} lowest {:.1f} %\n{:<16} origin   {} worst {}/s{}", outcome.name,
               lines.hit_rate, 100 * f.hit_rate_min, "", lines.origin, grouped(f.origin_max),
               outcome.complete() ? "" : "   (" + outcome.error + ")");
}

Status run_strategies(drilling::Report& report, Console& console, Interrupt& interrupt) {
  const Options& options = report.options;
  const auto directory = drill::RunDirectory::create_temporary();
  if (!directory) return std::unexpected(directory.error());
  auto workload = make_workload(options, console);
  if (!workload) return std::unexpected(workload.error());
  auto origins = drill::OriginServer::start(options.origin, directory->path());
  if (!origins) return std::unexpected(origins.error());
  report.origin = (*origins)->describe();
  const auto one = [&](const std::string& strategy, unsigned observe) -> Status {
    // Its own directory: a registry's database, say, is each run's own.
    const std::string own = fmt::format("{}/{}", directory->path(), strategy);
    std::error_code error;
    std::filesystem::create_directory(own, error);
    drilling::Run each(options, **workload, **origins, own, console, interrupt);
    Result<drilling::Outcome> outcome = each.go(strategy, observe);
    if (!outcome) return fail(outcome.error().kind, fmt::format("{}: {}", strategy, outcome.error().message));
    say_how_it_went(report, *outcome, console);
    if (strategy == drilling::kControl) {
      report.control = std::move(*outcome);
    } else {
      report.outcomes.push_back(std::move(*outcome));
    }
    return interrupt.requested() ? fail(ErrorKind::retryable, "interrupted") : Status{};
  };
  for (const std::string& strategy : options.strategies) {
    if (Status done = one(strategy, options.seconds); !done) return done;
  }
  const drilling::Outcome* live = report.find(drilling::kRingshift);
  if (live == nullptr || !live->complete() || options.scenario == Scenario::kill) return {};
  return one(drilling::kControl, static_cast<unsigned>(report.during_seconds()));
}

int run_drill(const Options& options) {
  Interrupt interrupt;
  Console console(options.json ? stderr : stdout);  // With --json the object has standard output to itself.
  if (!options.out.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.out, error);
    if (error) {
      report(fmt::format("--out {}: {}", options.out, error.message()));
      return kFailed;
    }
  }
  drilling::Report found;
  found.options = options;
  const auto begin = std::chrono::steady_clock::now();
  console.line("The drill: {}, under {:.0f} requests/s, by {}.", drilling::change_in_words(options),
               options.app.requests_per_second, fmt::join(options.strategies, ", "));
  const Status ran = run_strategies(found, console, interrupt);
  found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!ran) found.interrupted = ran.error().message;
  found.look_for_noise();
  if (!ran && found.outcomes.empty()) {
    report(ran.error().message);
    return kFailed;
  }
  if (options.json) {
    std::puts(drilling::json(found).c_str());
  } else {
    std::fputs(drilling::table(found).c_str(), stdout);
  }
  std::fflush(stdout);
  if (Status written = write_report(found, console); !written) {
    report(written.error().message);
    return kFailed;
  }
  if (!found.sound()) {
    report(ran ? "a promise was broken, or a run failed: see above" : ran.error().message);
    return kFailed;
  }
  return kDone;
}

}  // namespace

void add_drill(CLI::App& app) {
  const auto flags = std::make_shared<DrillFlags>();
  Options& o = flags->options;
  CLI::App* drill = app.add_subcommand("drill",
                                       "What a change of members does to a database, with and without "
                                       "Ringshift: a real load, figures, pictures");
  drill->add_option("--scenario", flags->scenario, "What happens")
      ->check(CLI::IsMember({"grow", "remove", "kill", "reweight"}))
      ->capture_default_str();
  drill->add_option("--from", flags->from, "Members before (4; with remove and kill 5)")
      ->check(CLI::Range(1, 64));
  drill->add_option("--to", flags->to, "Members after (one more, or one fewer)")->check(CLI::Range(1, 64));
  drill
      ->add_option(
          "--strategy", o.strategies,
          "Which to run, in this order: modulo, ring, ring+dual-read, ringshift; also ring+dual-delete")
      ->delimiter(',')
      ->check(CLI::IsMember({drilling::kModulo, drilling::kRing, drilling::kDualRead, drilling::kDualDelete,
                             drilling::kRingshift}));
  drill
      ->add_option("--seconds", o.seconds,
                   "Seconds of each strategy after the change (before it: a third, 2 to 20)")
      ->check(CLI::Range(2U, 600U))
      ->capture_default_str();
  drill->add_option("--qps", o.app.requests_per_second, "Requests a second")
      ->check(CLI::Range(10.0, 200000.0))
      ->capture_default_str();
  drill->add_option("--keys", o.zipf.keys, "Objects at the origin")
      ->check(CLI::Range(std::uint64_t{100}, std::uint64_t{5'000'000}))
      ->capture_default_str();
  drill->add_option("--zipf", o.zipf.exponent, "Exponent of the keys' popularity")
      ->check(CLI::Range(0.01, 5.0))
      ->capture_default_str();
  drill->add_option("--updates", o.zipf.updates, "Part of the requests that update an object")
      ->check(CLI::Range(0.0, 0.5))
      ->capture_default_str();
  drill->add_option("--trace", o.trace, "A recorded load instead: lines of KEY, GET KEY or SET KEY BYTES")
      ->type_name("FILE");
  drill->add_option("--seed", o.zipf.seed, "Seed of the load")->capture_default_str();
  drill->add_option("--threads", o.app.threads, "Threads of the application")
      ->check(CLI::Range(1U, drill::kMaxAppThreads))
      ->capture_default_str();
  drill->add_option("--value-bytes", o.zipf.body_bytes, "Size of an object; 0: 100 to 200")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 20))
      ->capture_default_str();
  drill->add_option("--ttl", flags->ttl_seconds, "Seconds that a cached copy lives, give or take a tenth")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{86'400}))
      ->capture_default_str();
  drill->add_option("--origin", flags->origin, "The database")
      ->check(CLI::IsMember({"sqlite", "postgres", "mysql"}))
      ->capture_default_str();
  drill->add_option("--origin-connections", o.pool.connections, "Connections in the application's pool")
      ->check(CLI::Range(1U, 256U))
      ->capture_default_str();
  drill
      ->add_option("--origin-query-ms", flags->query_ms,
                   "How long a query takes at least, as one across a network does; 0: as long as it takes")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{10'000}))
      ->capture_default_str();
  drill->add_option("--origin-timeout-ms", flags->pool_timeout_ms, "Longest wait for a connection")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{60'000}))
      ->capture_default_str();
  drill
      ->add_option("--move-rate", o.move_rate,
                   "Keys a second that ringshift moves (so that it takes a third of --seconds)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}));
  drill->add_option("--out", o.out, "Write report.html, results.json, drill.svg and drill.png into DIR")
      ->type_name("DIR");
  drill->add_flag("--json", o.json, "Print the outcome as one JSON object (progress goes to standard error)");
  for (CLI::Option* option : drill->get_options()) {
    if (option->get_name() != "--strategy") option->take_last();  // So that `make drill ARGS=...` wins.
  }
  drill->footer(
      "Exits with 1 when a promise of Ringshift's was broken. Examples:\n"
      "  ringshift drill                                  four members grow to five, by four strategies; "
      "five minutes\n"
      "  ringshift drill --out report --seconds 60        and a page with charts\n"
      "  ringshift drill --scenario kill --strategy ring,ringshift\n"
      "  ringshift drill --from 6 --to 8 --origin postgres --json\n"
      "  ringshift drill --trace requests.txt --qps 2000  a recorded load");
  drill->callback([flags] {
    if (Status ready = complete(*flags); !ready) {
      report(ready.error().message);
      throw CLI::RuntimeError(kBadUsage);
    }
    if (const int status = run_drill(flags->options); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
