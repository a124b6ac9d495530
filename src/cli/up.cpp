// `ringshift up`: the playground.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/cli.h"
#include "cli/console.h"
#include "cli/playground.h"

namespace ringshift::cli {
namespace {

struct UpOptions {
  PlaygroundOptions playground;
  bool once = false, json = false;
  unsigned steady_seconds = 20;
};

int run_up(const UpOptions& options) {
  Interrupt interrupt;
  // With --json the object has standard output to itself.
  Console console(options.json ? stderr : stdout);
  Playground playground(options.playground, console, interrupt);
  const auto give_up = [](const Error& error) {
    report(error.message);
    return kFailed;
  };
  if (Status up = playground.set_up(); !up) return give_up(up.error());
  const Result<UpReport> outcome = playground.measure();
  if (!outcome) return give_up(outcome.error());
  if (options.json) {
    std::puts(outcome->json().c_str());
  } else {
    std::fputs(outcome->table().c_str(), stdout);
  }
  std::fflush(stdout);
  if (!options.once) {
    console.line("{}", playground.what_next());
    playground.stay_up();
  }
  if (!outcome->sound()) {
    report(
        "the promise of no lost write, no stale read and no misplaced key was broken; the table above says "
        "which");
    return kFailed;
  }
  return kDone;
}

}  // namespace

void add_up(CLI::App& app) {
  const auto options = std::make_shared<UpOptions>();
  CLI::App* up = app.add_subcommand(
      "up", "A playground: real redis-servers, a proxy and live load, growing from four nodes to five");
  up->add_flag("--once", options->once, "End after the table");
  up->add_flag("--json", options->json,
               "Print the outcome as one JSON object (progress goes to standard error)");
  up->add_option("--data", options->playground.data_dir, "Keep the files of this run in DIR/run-N")
      ->type_name("DIR");
  up->add_option("--keys", options->playground.keys, "Keys live in the cache, about")
      ->check(CLI::Range(std::uint64_t{1000}, std::uint64_t{20'000'000}))
      ->capture_default_str();
  up->add_option("--rate", options->playground.requests_per_second, "Requests a second of the load")
      ->check(CLI::Range(10.0, 1e6))
      ->capture_default_str();
  up->add_option("--seed", options->playground.seed, "Seed of the load")->capture_default_str();
  up->add_option("--port", options->playground.port, "The proxy's port; another one if it is in use")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  options->playground.admin_api.add_to(*up, "admin.token in the files of this run");
  up->add_option(
        "--admin-listen", options->playground.admin_listen,
        "Where metrics and health are served over HTTP; another port if it is in use; 'none': nowhere")
      ->type_name("HOST:PORT|none")
      ->envname("RINGSHIFT_ADMIN_LISTEN")
      ->capture_default_str();
  up->add_option("--steady", options->steady_seconds,
                 "Seconds measured before the resize (half of them after it)")
      ->check(CLI::Range(2U, 200U))
      ->capture_default_str();
  up->footer(
      "Examples:\n"
      "  ringshift up                         grow under load, then stay up until Ctrl-C\n"
      "  ringshift up --once --json           measure, print one JSON object, leave nothing behind\n"
      "  ringshift up --keys 1000000 --rate 12000\n"
      "  ringshift up --data ./playground     keep logs and databases in ./playground/run-1, run-2, ...");
  up->callback([options] {
    options->playground.steady = std::chrono::seconds(options->steady_seconds);
    if (const int status = run_up(*options); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
