// ringshift resize: start, watch and steer a change of a cluster's members or placement.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/registry_flags.h"
#include "cli/requests.h"
#include "cli/resize_log.h"
#include "cli/resize_more.h"
#include "cli/resize_start.h"
#include "cli/resize_watch.h"
#include "cli/size_flag.h"
#include "cli/spec_file.h"

namespace ringshift::cli {
namespace {

using resize::Request;
using resize::ResizeStatus;

struct SteerFlags {
  RegistryFlags registry;
  bool wait = false;
  bool json = false;
  std::uint64_t keys_per_second = 0, bytes_per_second = 0;
  std::string big_keys;
  std::uint64_t big_key_limit = 0;
};

// A cluster that the registry does not know has no status, rather than an idle one.
std::unique_ptr<coord::Coordinator> open_known_cluster(const RegistryFlags& flags) {
  auto coordinator = or_end(flags.connect());
  if (or_end(coordinator->get(flags.keys().spec()))) return coordinator;
  end_command(kFailed,
              fmt::format("the registry at {} has no cluster '{}' in namespace '{}': check --cluster and "
                          "--namespace, or apply a spec",
                          flags.registry, flags.cluster, flags.name_space));
}

void ask(const SteerFlags& flags, Request request, std::string_view done) {
  const auto coordinator = or_end(flags.registry.connect());
  const coord::ClusterKeys keys = flags.registry.keys();
  request.by = who_asks();
  if (const Status answer = ask_controller(*coordinator, keys, std::move(request), kControllerAnswer);
      !answer) {
    end_command(kFailed, answer.error().message);
  }
  if (flags.wait) {
    if (const int status = follow_resize(*coordinator, keys, flags.json); status != kDone)
      end_silently(status);
    return;
  }
  if (flags.json) {
    fmt::print("{}\n", to_json(or_end(read_status(*coordinator, keys))));
  } else {
    fmt::print("{}\n", done);
  }
}

void show_status(const SteerFlags& flags) {
  const auto coordinator = open_known_cluster(flags.registry);
  const ResizeStatus status = or_end(read_status(*coordinator, flags.registry.keys()));
  std::fputs((flags.json ? to_json(status) + "\n" : describe(status)).c_str(), stdout);
}

void watch(const SteerFlags& flags) {
  const auto coordinator = open_known_cluster(flags.registry);
  if (const int status = follow_resize(*coordinator, flags.registry.keys(), flags.json); status != kDone) {
    end_silently(status);
  }
}

CLI::App* add(CLI::App& app, const std::shared_ptr<SteerFlags>& flags, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  flags->registry.add_to(*command, /*cluster_required=*/true);
  command->add_flag("--json", flags->json, "Print JSON for machines");
  return command;
}

void add_simple(CLI::App& app, const char* name, const char* what, Request::Action action, const char* done) {
  const auto flags = std::make_shared<SteerFlags>();
  CLI::App* command = add(app, flags, name, what);
  command->add_flag("--wait", flags->wait, "Follow the resize until it ends");
  command->footer(fmt::format("Examples:\n  ringshift resize {} --cluster cache", name));
  command->callback([flags, action, done] {
    Request request;
    request.action = action;
    ask(*flags, std::move(request), done);
  });
}

void add_start(CLI::App& app) {
  struct Start {
    StartFlags flags;
    std::string spec;
  };
  const auto start = std::make_shared<Start>();
  CLI::App* command = app.add_subcommand("start", "Move to the topology that a spec describes");
  command->add_option("--spec", start->spec, "The cluster as it shall be")->required()->type_name("FILE");
  start->flags.add_to(*command, /*cluster_required=*/false);
  command->footer(
      "Shows what 'ringshift plan' says of the change, with the keys that the members have now, and asks; "
      "where\n"
      "nobody can be asked it wants --yes. The cluster's name is taken from the spec unless --cluster is "
      "given.\n"
      "Examples:\n"
      "  ringshift resize start --spec five.yaml\n"
      "  ringshift resize start --spec five.yaml --dry-run\n"
      "  ringshift resize start --spec five.yaml --steps 5,25,100 --soak 5m --yes --wait\n"
      "  ringshift resize start --spec five.yaml --at 02:00 --until 06:00 --rate 2000 --yes\n"
      "  ringshift resize start --spec five.yaml --abort-if 'hit_rate<0.9,p99_ms>20,origin_qps>8000'\n"
      "  ringshift resize start --spec without-cache-2.yaml --lost cache-2 --origin-budget 2000\n"
      "  ringshift resize start --spec five.yaml --mode expire --move-rest --deadline 15m\n"
      "  ringshift resize start --spec six.yaml --replace       instead of the one that runs");
  command->callback([start] {
    const topology::Spec spec = or_end(read_spec(start->spec));
    if (start->flags.registry.cluster.empty()) start->flags.registry.cluster = spec.cluster;
    start_resize(start->flags, [&](const topology::Spec&) { return Result<topology::Spec>(spec); });
  });
}

void add_set_rate(CLI::App& app) {
  const auto flags = std::make_shared<SteerFlags>();
  CLI::App* command = add(app, flags, "set-rate", "Change the mover's rate while it works");
  const CLI::Range keys(std::uint64_t{1}, std::uint64_t{100000000});
  command->add_option("keys_per_second,--rate", flags->keys_per_second, "Keys a second over all members")
      ->check(keys);
  command
      ->add_option("--byte-rate", flags->bytes_per_second, "Bytes a second over all members, such as 20MiB")
      ->transform(CLI::Validator(size_to_bytes, "SIZE"))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 60));
  command->footer(
      "For the resize that runs; the next one begins with the limits of its spec.\n"
      "Examples:\n"
      "  ringshift resize set-rate 20000 --cluster cache\n"
      "  ringshift resize set-rate --byte-rate 20MiB --cluster cache");
  command->callback([flags] {
    if (flags->keys_per_second == 0 && flags->bytes_per_second == 0) {
      end_command(kBadUsage,
                  "which rate? Give keys a second, or --byte-rate: ringshift resize set-rate 20000");
    }
    Request request;
    request.action = Request::Action::set_rate;
    request.keys_per_second = flags->keys_per_second;
    request.bytes_per_second = flags->bytes_per_second;
    ask(*flags, std::move(request), "rate set");
  });
}

void add_big_keys(CLI::App& app) {
  const auto flags = std::make_shared<SteerFlags>();
  CLI::App* command = add(app, flags, "big-keys", "Say what becomes of keys above limits.big_key_bytes");
  command->add_option("what", flags->big_keys, "move|wait|refuse")
      ->required()
      ->check(CLI::IsMember({"move", "wait", "refuse"}));
  command->add_option("--limit", flags->big_key_limit, "With move: only keys up to this size, such as 200MiB")
      ->transform(CLI::Validator(size_to_bytes, "SIZE"));
  command->add_flag("--wait", flags->wait, "Follow the resize until it ends");
  command->footer(
      "A big key blocks the member that gives it and the one that takes it for about a millisecond a MiB "
      "each.\n"
      "'wait' leaves it where it is until it is written, deleted or expired; the step does not end before.\n"
      "'refuse' rolls the resize back when one is found.\n"
      "Examples:\n"
      "  ringshift resize big-keys move --limit 200MiB --cluster cache");
  command->callback([flags] {
    Request request;
    request.action = Request::Action::big_keys;
    request.big_keys = flags->big_keys;
    request.big_key_limit = flags->big_key_limit;
    ask(*flags, std::move(request), "done");
  });
}

}  // namespace

// Each subcommand has flags of its own: CLI11 gives the variables' values to those that were not called, too,
// and on shared flags RINGSHIFT_CLUSTER would win over --cluster.
void add_resize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("resize", "Change a cluster's members or placement while it serves");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  ringshift resize start --cluster cache --spec five.yaml --wait\n"
      "  ringshift resize status --cluster cache --json\n"
      "  ringshift resize rollback --cluster cache\n"
      "  ringshift resize log --cluster cache");
  add_start(*command);

  auto flags = std::make_shared<SteerFlags>();
  CLI::App* status = add(*command, flags, "status", "How far the resize has come");
  status->footer("Examples:\n  ringshift resize status --cluster cache --json");
  status->callback([flags] { show_status(*flags); });

  flags = std::make_shared<SteerFlags>();
  CLI::App* follow_it = add(*command, flags, "watch", "Follow the resize until it ends");
  follow_it->footer(
      "On a terminal a picture that is redrawn in place; else a line for each change.\n"
      "Examples:\n  ringshift resize watch --cluster cache");
  follow_it->callback([flags] { watch(*flags); });

  add_simple(*command, "pause", "Stop moving keys; the cluster serves on as it is", Request::Action::pause,
             "paused");
  add_simple(*command, "resume", "Go on after a pause; or now, although it soaks or its window is closed",
             Request::Action::resume, "resumed");
  add_resize_lost(*command);
  add_simple(*command, "rollback", "Move everything back", Request::Action::rollback, "rolling back");
  add_set_rate(*command);
  add_big_keys(*command);
  add_resize_log(*command);
}

}  // namespace ringshift::cli
