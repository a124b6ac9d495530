// history_run: works on a cluster through its proxies, records what clients saw, and judges it.
// Exit status: 0 clean, 1 violated (or nothing could be done at all), 2 bad usage.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <random>

#include "tests/history/check.h"
#include "tests/history/report.h"
#include "tests/history/workload.h"

namespace {

std::atomic<bool> g_stop{false};

}  // namespace

int main(int argc, char** argv) {
  using namespace ringshift;
  CLI::App app{"Runs clients against proxies and checks that what they saw is linearizable, key by key."};
  app.footer(
      "Examples:\n  history_run --proxies 127.0.0.1:6380,127.0.0.1:6381 --seconds 10\n"
      "  history_run --proxies 127.0.0.1:6380 --seconds 60 --stop-file /tmp/stop --json");
  history::WorkloadOptions options;
  history::CheckOptions check_options;
  std::string proxies;
  double seconds = 5;
  std::int64_t timeout_ms = 15000, ttl_slack_ms = 250;
  bool json = false;
  options.seed = std::random_device{}();
  app.add_option("--proxies", proxies, "IPV4:PORT, separated by commas")->required();
  app.add_option("--seconds", seconds, "How long to run at most (5)")->check(CLI::Range(0.1, 600.0));
  app.add_option("--stop-file", options.stop_file, "End the run when this file exists (SIGTERM does too)");
  app.add_option("--clients", options.clients, "Client threads (12)")->check(CLI::Range(1, 64));
  app.add_option("--keys", options.keys, "Keys of each kind (24)")->check(CLI::Range(1, 10000));
  app.add_option("--rate", options.rate, "Operations a second, 0 for no limit (4000)")
      ->check(CLI::Range(0, 1000000));
  app.add_option("--pipeline", options.max_pipeline, "Longest pipeline (8)")->check(CLI::Range(1, 16));
  app.add_option("--timeout-ms", timeout_ms, "A client gives up an answer after (15000)")
      ->check(CLI::Range(10, 120000));
  app.add_option("--ttl-slack-ms", ttl_slack_ms,
                 "How much longer than its deadline a moved value may live (250)")
      ->check(CLI::Range(0, 60000));
  app.add_option("--seed", options.seed, "Seed of keys and choices (random, printed)");
  app.add_flag("--json", json, "One line of JSON instead of text");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  auto addresses = history::parse_addresses(proxies);
  if (!addresses) {
    std::fprintf(stderr, "history_run: --proxies: %s\n", addresses.error().message.c_str());
    return 2;
  }
  options.proxies = std::move(*addresses);
  options.duration = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  options.timeout = std::chrono::milliseconds(timeout_ms);
  options.stop = &g_stop;
  check_options.ttl_slack = std::chrono::milliseconds(ttl_slack_ms);
  std::signal(SIGTERM, [](int) { g_stop = true; });
  std::signal(SIGINT, [](int) { g_stop = true; });
  std::fprintf(stderr, "history_run: seed %llu\n", static_cast<unsigned long long>(options.seed));

  const history::History history = history::run_workload(options);
  const history::Judgement result = history::check(history, check_options);
  const std::string out = json ? history::to_json(result, history, options.seed) + "\n"
                               : history::to_text(result, history, options.seed);
  std::fputs(out.c_str(), stdout);
  if (history.operations.empty()) {
    std::fprintf(stderr, "history_run: no proxy of %s could be reached\n", proxies.c_str());
    return 1;
  }
  if (result.operations == result.not_executed) {
    std::fprintf(stderr, "history_run: not one operation was executed: this shows nothing\n");
    return 1;
  }
  return result.clean() ? 0 : 1;
}
