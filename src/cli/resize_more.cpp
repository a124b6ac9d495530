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
  std::string big_keys, verify;
};

namespace {

using resize::Request;
using resize::ResizeStatus;

constexpr std::chrono::milliseconds kLostAnswer{30000};

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
  request.by = who_asks();
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
                  "With --mode expire: a step ends after this time at the latest (90s, 15m, 1h)")
      ->default_str("1h");
  start.add_option("--big-keys", flags->big_keys, "What becomes of keys above limits.big_key_bytes")
      ->check(CLI::IsMember({"move", "wait", "refuse"}))
      ->default_str("wait");
  start.add_option("--verify", flags->verify, "Compare copies with their originals")
      ->check(CLI::IsMember({"counts", "sample", "all"}))
      ->default_str("counts");
  return flags;
}

void complete_start(const MoreResizeFlags& flags, resize::StartWords& words) {
  words.lost = flags.lost;
  if (flags.budget_option->count() != 0) words.origin_budget = flags.origin_budget;
  words.mode = flags.mode;
  words.rest = flags.drop ? "drop" : flags.move_rest ? "move" : "";
  words.deadline = flags.deadline;
  words.big_keys = flags.big_keys;
  words.verify = flags.verify;
}

void add_more_notes(const ResizeStatus& status, std::vector<std::string>& lines) {
  if (!status.lost.empty())
    lines.push_back(fmt::format("given up for lost: {}", fmt::join(status.lost, ", ")));
  if (!status.waits_for.empty()) lines.push_back(fmt::format("the next step waits for {}", status.waits_for));
  if (status.expire_until_ms != 0) {
    const auto until = static_cast<std::time_t>(status.expire_until_ms / 1000);
    lines.push_back(fmt::format("old copies run out until {:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(until)));
  }
  if (status.keys_without_ttl != 0) {
    lines.push_back(
        fmt::format("{} keys had no time to live at the start: {}{}", status.keys_without_ttl,
                    fmt::join(status.keys_without_ttl_examples, ", "),
                    status.keys_without_ttl > status.keys_without_ttl_examples.size() ? ", ..." : ""));
  }
  for (const auto& key : status.waiting_big_keys) {
    lines.push_back(fmt::format("waits: {} ({:.1f} MiB, {} -> {})", key.key,
                                static_cast<double>(key.bytes) / 1048576, key.from, key.to));
  }
  for (const auto& why : status.held_back) lines.push_back(fmt::format("held back: {}", why));
  if (status.keys_dropped != 0) lines.push_back(fmt::format("{} keys dropped", status.keys_dropped));
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
