#include "cli/resize_log.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/registry_flags.h"
#include "resize/decisions.h"

namespace ringshift::cli {
namespace {

using resize::Decision;

struct LogFlags {
  RegistryFlags registry;
  std::string id;
  bool json = false;
};

resize::LoggedResizes read_logs(const LogFlags& flags) {
  const auto coordinator = or_end(flags.registry.connect());
  const coord::ClusterKeys keys = flags.registry.keys();
  return resize::read_decisions(keys, or_end(coordinator->list(keys.log())).kvs);
}

void print_object(const nlohmann::json& object) {
  fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_log(const LogFlags& flags) {
  const resize::LoggedResizes logs = read_logs(flags);
  if (logs.empty())
    end_command(kFailed, fmt::format("cluster '{}' has no log: nothing was resized", flags.registry.cluster));
  const auto chosen = flags.id.empty() ? std::prev(logs.end()) : logs.find(flags.id);
  if (chosen == logs.end()) {
    end_command(kFailed,
                fmt::format("there is no log of a resize '{}': 'ringshift resize list --cluster {}' shows "
                            "those there are",
                            flags.id, flags.registry.cluster));
  }
  if (!flags.json) fmt::print("resize {}\n", chosen->first);
  for (const Decision& one : chosen->second) {
    if (flags.json) {
      print_object({{"resize", chosen->first},
                    {"at", resize::local_time(one.at)},
                    {"at_ms", one.at},
                    {"event", one.event},
                    {"text", one.text},
                    {"by", one.by}});
    } else {
      fmt::print("{}  {:<8}  {}{}\n", resize::local_time(one.at), one.event, one.text,
                 one.by.empty() ? "" : fmt::format(" ({})", one.by));
    }
  }
}

void print_list(const LogFlags& flags) {
  for (const auto& [id, decisions] : read_logs(flags)) {
    const Decision& last = decisions.back();
    if (flags.json) {
      print_object(
          {{"resize", id},
           {"began", resize::local_time(decisions.front().at)},
           {"by", decisions.front().by},
           {"decisions", decisions.size()},
           {"last", {{"at", resize::local_time(last.at)}, {"event", last.event}, {"text", last.text}}}});
    } else {
      fmt::print("{:<10}  {}  {}: {}\n", id, resize::local_time(decisions.front().at), last.event, last.text);
    }
  }
}

}  // namespace

void add_resize_log(CLI::App& resize) {
  auto flags = std::make_shared<LogFlags>();
  CLI::App* log = resize.add_subcommand("log", "Every decision of a resize, also after it ended");
  flags->registry.add_to(*log, /*cluster_required=*/true);
  log->add_option("RESIZE", flags->id, "Its id; the last one unless given")->type_name("");
  log->add_flag("--json", flags->json, "JSON, an object a line");
  log->footer(
      fmt::format("The newest {} entries of the last {} resizes are kept, in the registry.\n"
                  "Examples:\n"
                  "  ringshift resize log --cluster cache\n"
                  "  ringshift resize log 3-17 --cluster cache --json",
                  resize::kDecisionsKept, resize::kResizesLogged));
  log->callback([flags] { print_log(*flags); });

  flags = std::make_shared<LogFlags>();
  CLI::App* list =
      resize.add_subcommand("list", "The resizes that have a log, oldest first, and how they ended");
  flags->registry.add_to(*list, /*cluster_required=*/true);
  list->add_flag("--json", flags->json, "JSON, an object a line");
  list->footer("Examples:\n  ringshift resize list --cluster cache");
  list->callback([flags] { print_list(*flags); });
}

}  // namespace ringshift::cli
