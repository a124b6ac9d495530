#include "cli/resize_more.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>

#include "base/encoding.h"
#include "cli/cli.h"
#include "cli/registry_flags.h"
#include "cli/requests.h"

namespace ringshift::cli {

struct MoreResizeFlags {
  std::vector<std::string> lost;
  std::uint64_t origin_budget = 0;
  CLI::Option* budget_option = nullptr;
  std::string mode = "move";
  bool move_rest = false, drop = false;
  std::string deadline = "1h";
};

namespace {

using resize::Request;
using resize::ResizeStatus;

constexpr std::chrono::milliseconds kLostAnswer{30000};
constexpr std::chrono::minutes kMeasureAnswer{30};
constexpr std::uint64_t kDeadlineMax = 366ULL * 24 * 3600;

// "90s", "15m", "1h", "2d" or seconds; nullopt for anything else.
std::optional<std::uint64_t> seconds_of(std::string_view text) {
  std::uint64_t unit = 1;
  if (!text.empty()) {
    const char last = text.back();
    unit = last == 'm' ? 60 : last == 'h' ? 3600 : last == 'd' ? 86400 : 1;
    if (unit != 1 || last == 's') text.remove_suffix(1);
  }
  const auto number = base::parse_u64(text);
  if (!number || *number == 0 || *number > kDeadlineMax / unit) return std::nullopt;
  return *number * unit;
}

void add_budget(CLI::App& command, MoreResizeFlags& flags) {
  flags.budget_option = command.add_option(
      "--origin-budget", flags.origin_budget,
      "Misses a second, of all proxies together, above which the next step waits; 0: none");
}

void declare(const RegistryFlags& registry, const MoreResizeFlags& flags, bool force, bool json) {
  const auto end_with = [](const std::string& message) {
    report(message);
    throw CLI::RuntimeError(kFailed);
  };
  const auto coordinator = registry.connect();
  if (!coordinator) return end_with(coordinator.error().message);
  Request request;
  request.action = Request::Action::lost;
  request.lost = flags.lost;
  request.origin_budget = flags.origin_budget;
  request.force = force;
  const Status answer = ask_controller(**coordinator, registry.keys(), std::move(request), kLostAnswer);
  if (!answer) return end_with(answer.error().message);
  const Result<ResizeStatus> status = read_status(**coordinator, registry.keys());
  if (!status) return end_with(status.error().message);
  if (json) {
    std::printf("%s\n", to_json(*status).c_str());
  } else if (status->state == "rolling_back" || status->rolled_back) {
    std::puts("without it the resize cannot be finished: rolling back");
  } else {
    std::puts("the resize goes on without it; 'ringshift resize watch' follows it");
  }
}

}  // namespace

std::shared_ptr<MoreResizeFlags> add_more_start_options(CLI::App& start) {
  auto flags = std::make_shared<MoreResizeFlags>();
  start
      .add_option(
          "--lost", flags->lost,
          "Members that do not come back: their keys are given up in small steps. Needs --origin-budget")
      ->delimiter(',')
      ->type_name("ID[,ID]");
  add_budget(start, *flags);
  start
      .add_option("--mode", flags->mode,
                  "move: keys are moved. expire: old copies run out, and only keys that are written move")
      ->check(CLI::IsMember({"move", "expire"}))
      ->default_str("move");
  CLI::Option* rest = start.add_flag("--move-rest", flags->move_rest,
                                     "With --mode expire: move what has not run out when a step ends");
  start.add_flag("--drop", flags->drop, "With --mode expire: remove what has not run out when a step ends")
      ->excludes(rest);
  start
      .add_option("--deadline", flags->deadline,
                  "With --mode expire: a step ends after this time at the latest (90s, 15m, 1h, 2d)")
      ->default_str("1h");
  return flags;
}

std::string complete_start(const MoreResizeFlags& flags, Request& request) {
  if (!flags.lost.empty() && flags.budget_option->count() == 0) {
    return "--lost: its keys become misses, and their clients ask the origin: say how many misses a second "
           "it "
           "bears by --origin-budget N (0: as fast as it goes)";
  }
  if (flags.lost.empty() && flags.origin_budget != 0) return "--origin-budget goes with --lost";
  const bool expire = flags.mode == "expire";
  if (!expire && (flags.drop || flags.move_rest)) return "--drop and --move-rest go with --mode expire";
  const auto deadline = seconds_of(flags.deadline);
  if (!deadline) return fmt::format("--deadline '{}': write it as 90s, 15m, 1h or 2d", flags.deadline);
  request.lost = flags.lost;
  request.origin_budget = flags.origin_budget;
  request.expire = expire;
  request.rest = flags.drop ? "drop" : flags.move_rest ? "move" : "";
  request.deadline_seconds = *deadline;
  return "";
}

std::chrono::milliseconds answer_patience(coord::Coordinator& coordinator, const coord::ClusterKeys& keys,
                                          const Request& request, std::chrono::milliseconds usual) {
  if (!request.expire) return usual;
  const auto leader = coordinator.get(keys.controller());
  return leader && *leader ? std::chrono::milliseconds(kMeasureAnswer) : usual;
}

std::string describe_more(const ResizeStatus& status) {
  std::string text;
  if (!status.lost.empty()) text += fmt::format("  given up for lost: {}\n", fmt::join(status.lost, ", "));
  if (!status.waits_for.empty()) text += fmt::format("  the next step waits for {}\n", status.waits_for);
  if (status.expire_until_ms != 0) {
    const auto until = static_cast<std::time_t>(status.expire_until_ms / 1000);
    text += fmt::format("  old copies run out until {:%Y-%m-%d %H:%M:%S} UTC\n", fmt::gmtime(until));
  }
  if (status.keys_without_ttl != 0) {
    text += fmt::format("  {} keys had no time to live at the start: {}{}\n", status.keys_without_ttl,
                        fmt::join(status.keys_without_ttl_examples, ", "),
                        status.keys_without_ttl > status.keys_without_ttl_examples.size() ? ", ..." : "");
  }
  if (status.keys_dropped != 0) text += fmt::format("  {} keys dropped\n", status.keys_dropped);
  return text;
}

void add_resize_lost(CLI::App& resize) {
  struct Flags {
    RegistryFlags registry;
    MoreResizeFlags more;
    bool force = false, json = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command =
      resize.add_subcommand("lost", "Go on without members that died during the resize and do not come back");
  flags->registry.add_to(*command, /*cluster_required=*/true);
  command->add_option("member", flags->more.lost, "Their ids")
      ->required()
      ->delimiter(',')
      ->type_name("ID[,ID]");
  add_budget(*command, flags->more);
  command->add_flag("--force", flags->force, "Also when the member still answers");
  command->add_flag("--json", flags->json, "Print JSON for machines");
  command->footer(
      "A member that only gives keys is given up, in steps of 1 %. A member that joins cannot be: the resize "
      "is\n"
      "rolled back without it, and what was only there is lost. Switch its server off first.\n"
      "Examples:\n"
      "  ringshift resize lost cache-2 --cluster cache --origin-budget 2000");
  command->callback([flags] { declare(flags->registry, flags->more, flags->force, flags->json); });
}

}  // namespace ringshift::cli
