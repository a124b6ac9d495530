// ringshift top: a cluster at a glance, again and again.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>

#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/registry_flags.h"
#include "cli/screen.h"
#include "cli/top_draw.h"

namespace ringshift::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kWide = 1000;             // Columns where there is no terminal.
constexpr milliseconds kLook{100};              // How often records are looked for.
constexpr std::chrono::seconds kFirstRates{3};  // A router tells about once a second.

struct TopOptions {
  RegistryFlags registry;
  double interval = 1;
  bool once = false, json = false;
  std::string sort = "member";
};

const std::vector<std::pair<std::string, std::size_t>> kSortNames = {
    {"member", 0}, {"state", 1},  {"share", 2},    {"requests", 3},  {"hit-rate", 4},
    {"p99", 5},    {"errors", 6}, {"timeouts", 7}, {"in-flight", 8}, {"away", 9}};

std::string clock_now() { return fmt::format("{:%H:%M:%S}", fmt::localtime(std::time(nullptr))); }

int print_once(TopWatch& watch, TopView view, bool json, Screen& screen) {
  const auto give_up = steady_clock::now() + kFirstRates;
  TopFrame frame;
  do {
    if (screen.wait_quietly(kLook)) return kFailed;
    watch.look(steady_clock::now());
    frame = watch.frame(steady_clock::now());
  } while (steady_clock::now() < give_up &&
           !(frame.rates_known && !frame.routers.empty() && frame.revision != 0));
  sort_members(frame, view);
  if (json) {
    std::puts(top_json(frame).c_str());
    return kDone;
  }
  view.clock = clock_now();
  view.columns = isatty(STDOUT_FILENO) == 1 ? Screen::size().columns : kWide;
  for (const std::string& line : draw_top(frame, view)) fmt::print("{}\n", line);
  return kDone;
}

// What a key does to the view; false when it ends it.
bool steer(const Screen::Event& event, TopView& view) {
  switch (event.key) {
    case Screen::Key::quit:
      return false;
    case Screen::Key::left:
      view.sort_by = (view.sort_by + kTopColumns - 1) % kTopColumns;
      break;
    case Screen::Key::right:
      view.sort_by = (view.sort_by + 1) % kTopColumns;
      break;
    case Screen::Key::up:
      if (view.scroll > 0) --view.scroll;
      break;
    case Screen::Key::down:
      ++view.scroll;
      break;
    case Screen::Key::other:
      if (event.character == 'r') view.reversed = !view.reversed;
      if (event.character == ' ') view.paused = !view.paused;
      break;
    case Screen::Key::none:
      break;
  }
  return true;
}

int show(TopWatch& watch, TopView view, milliseconds interval, Screen& screen) {
  screen.enter();
  view.colours = true;
  std::optional<TopFrame> frame;
  auto next = steady_clock::now();
  while (true) {
    watch.look(steady_clock::now());
    if (!frame || (!view.paused && steady_clock::now() >= next)) {
      frame = watch.frame(steady_clock::now());
      view.clock = clock_now();
      // The first ones soon: rates come with a router's second record.
      next = steady_clock::now() + (frame->rates_known ? interval : kLook);
    }
    view.scroll = std::min(view.scroll, frame->members.empty() ? 0 : frame->members.size() - 1);
    const Screen::Size size = Screen::size();
    view.rows = size.rows;
    view.columns = size.columns;
    sort_members(*frame, view);
    screen.draw(draw_top(*frame, view));
    const auto until = view.paused ? steady_clock::now() + interval : next;
    while (steady_clock::now() < until) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(until - steady_clock::now()) + milliseconds(1);
      const Screen::Event event = screen.wait(std::min(kLook, left));
      if (!steer(event, view)) return kDone;
      if (event.key != Screen::Key::none || Screen::size() != size) break;
      watch.look(steady_clock::now());
    }
  }
}

int run_top(const TopOptions& options) {
  Screen screen;  // Before any thread: it blocks signals.
  auto coordinator = or_end(options.registry.connect());
  const coord::ClusterKeys keys = options.registry.keys();
  if (!or_end(coordinator->get(keys.spec()))) {
    report(fmt::format(
        "the registry at {} has no cluster '{}' in namespace '{}': check --cluster and --namespace",
        options.registry.registry, options.registry.cluster, options.registry.name_space));
    return kFailed;
  }
  const resize::ClusterView cluster(*coordinator, keys);
  TopWatch watch(cluster, keys, options.registry.cluster);
  TopView view;
  view.sort_by =
      std::ranges::find(kSortNames, options.sort, [](const auto& one) { return one.first; })->second;
  if (options.once || options.json || !Screen::possible())
    return print_once(watch, view, options.json, screen);
  return show(watch, view, milliseconds(static_cast<std::int64_t>(options.interval * 1000)), screen);
}

}  // namespace

void add_top(CLI::App& app) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* command =
      app.add_subcommand("top", "Watch a cluster in the terminal: members, routers, the resize");
  options->registry.add_to(*command, /*cluster_required=*/true);
  command->add_option("--interval", options->interval, "Seconds from one picture to the next")
      ->check(CLI::Range(0.2, 3600.0))
      ->capture_default_str();
  command->add_flag("--once", options->once,
                    "Print one picture and end; so it is where there is no terminal");
  command->add_flag("--json", options->json, "Print one picture as a JSON object and end");
  std::vector<std::string> names;
  for (const auto& [name, column] : kSortNames) names.push_back(name);
  command->add_option("--sort", options->sort, "The column that members are sorted by")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command->footer(
      "Keys: q or Ctrl-C ends; left and right choose the column to sort by, r turns the order round; up and "
      "down\n"
      "scroll; space holds the picture. Figures are of the last three seconds, from what routers tell the "
      "registry.\n"
      "Examples:\n"
      "  ringshift top --cluster cache\n"
      "  ringshift top --cluster cache --sort p99 --interval 5\n"
      "  ringshift top --cluster cache --json | jq '.members[] | {id, requests_per_second}'");
  command->callback([options] {
    if (const int status = run_top(*options); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
