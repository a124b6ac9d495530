// ringshift resize: start, watch and steer a change of a cluster's members or placement.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <thread>

#include "cli/cli.h"
#include "cli/registry_flags.h"
#include "cli/requests.h"
#include "cli/resize_more.h"
#include "cli/spec_file.h"

namespace ringshift::cli {
namespace {

using resize::Request;
using resize::ResizeStatus;

constexpr std::chrono::seconds kAnswer{30};
constexpr std::chrono::milliseconds kWatchInterval{200};

struct Flags {
  RegistryFlags registry;
  std::string spec;
  std::vector<double> steps;
  bool wait = false;
  bool allow_foreign = false;
  bool force = false;
  bool json = false;
  std::uint64_t keys_per_second = 0;
  std::shared_ptr<MoreResizeFlags> more;
  std::string big_keys, verify;
  std::uint64_t big_key_limit = 0;
};

[[noreturn]] void end_with(int status, std::string_view message) {
  report(message);
  throw CLI::RuntimeError(status);
}

std::unique_ptr<coord::Coordinator> open(const Flags& flags) {
  auto coordinator = flags.registry.connect();
  if (!coordinator) end_with(kFailed, coordinator.error().message);
  return std::move(*coordinator);
}

coord::ClusterKeys keys_of(const Flags& flags) { return flags.registry.keys(); }

// A cluster that the registry does not know has no status, rather than an idle one.
void require_cluster(coord::Coordinator& coordinator, const Flags& flags) {
  const Result<std::optional<coord::KeyValue>> spec = coordinator.get(keys_of(flags).spec());
  if (!spec) end_with(kFailed, spec.error().message);
  if (*spec) return;
  end_with(kFailed,
           fmt::format("the registry at {} has no cluster '{}' in namespace '{}': check --cluster and "
                       "--namespace, or apply a spec",
                       flags.registry.registry, flags.registry.cluster, flags.registry.name_space));
}

std::string describe(const ResizeStatus& s) {
  std::string line = s.state;
  if (s.state == "idle")
    return line + (s.last_error.empty() ? "\n" : fmt::format("\n  last error: {}\n", s.last_error));
  if (s.state == "finished" && s.rolled_back) line += " (rolled back)";
  if (!s.phase.empty()) line += fmt::format("  step {}/{} {}", s.step, s.steps, s.phase);
  line += fmt::format("  keys {}/{}  {:.1f} MiB", s.keys_moved, s.keys_to_move,
                      static_cast<double>(s.bytes_moved) / 1048576);
  if (s.keys_per_second > 0)
    line += fmt::format("  {:.0f} keys/s  eta {:.0f} s", s.keys_per_second, s.eta_seconds);
  line += fmt::format("  longest hold {:.1f} ms  fences {}\n", s.hold_ms_max, s.fences);
  for (const auto& pair : s.pairs)
    line += fmt::format("  {} -> {}: {} keys\n", pair.from, pair.to, pair.moved);
  line += describe_more(s);
  for (const auto& key : s.big_keys) line += fmt::format("  big key: {}\n", key);
  for (const auto& key : s.waiting_big_keys) {
    line += fmt::format("  waits: {} ({:.1f} MiB, {} -> {})\n", key.key,
                        static_cast<double>(key.bytes) / 1048576, key.from, key.to);
  }
  for (const auto& why : s.held_back) line += fmt::format("  held back: {}\n", why);
  if (!s.last_error.empty()) line += fmt::format("  last error: {}\n", s.last_error);
  return line;
}

bool ended(const ResizeStatus& status) {
  return status.state == "finished" || status.state == "failed" || status.state == "idle";
}

// Follows the resize until it ends. One line that is drawn anew on a terminal; else a line for each change.
int follow(coord::Coordinator& coordinator, const Flags& flags) {
  const bool terminal = isatty(STDOUT_FILENO) != 0 && !flags.json;
  std::string last;
  while (true) {
    const Result<ResizeStatus> status = read_status(coordinator, keys_of(flags));
    if (!status) {
      report(status.error().message + "; still trying");
      std::this_thread::sleep_for(std::chrono::seconds(1));
      continue;
    }
    const std::string text = flags.json ? to_json(*status) + "\n" : describe(*status);
    const std::string first_line = text.substr(0, text.find('\n'));
    if (ended(*status)) {
      if (terminal) std::fputs("\r\x1b[K", stdout);
      std::fputs(text.c_str(), stdout);
      return status->state == "failed" ? kFailed : kDone;
    }
    if (terminal) {
      std::printf("\r\x1b[K%s", first_line.c_str());
    } else if (text != last) {
      std::printf("%s\n", flags.json ? to_json(*status).c_str() : first_line.c_str());
    }
    std::fflush(stdout);
    last = text;
    std::this_thread::sleep_for(kWatchInterval);
  }
}

void ask(const Flags& flags, Request request, std::string_view done) {
  const auto coordinator = open(flags);
  const auto patience = answer_patience(*coordinator, keys_of(flags), request, kAnswer);
  const Status answer = ask_controller(*coordinator, keys_of(flags), std::move(request), patience);
  if (!answer) end_with(kFailed, answer.error().message);
  if (flags.wait) {
    if (const int status = follow(*coordinator, flags); status != kDone) throw CLI::RuntimeError(status);
    return;
  }
  if (flags.json) {
    const Result<ResizeStatus> status = read_status(*coordinator, keys_of(flags));
    if (!status) end_with(kFailed, status.error().message);
    std::printf("%s\n", to_json(*status).c_str());
  } else {
    std::printf("%.*s\n", static_cast<int>(done.size()), done.data());
  }
}

void start(Flags& flags) {
  auto spec = read_spec(flags.spec);
  if (!spec) end_with(kFailed, spec.error().message);
  if (flags.registry.cluster.empty()) flags.registry.cluster = spec->cluster;
  Request request;
  request.action = Request::Action::start;
  request.spec = std::move(*spec);
  request.steps = flags.steps;
  request.allow_foreign = flags.allow_foreign;
  request.force = flags.force;
  if (const std::string wrong = complete_start(*flags.more, request); !wrong.empty())
    end_with(kBadUsage, wrong);
  request.big_keys = flags.big_keys;
  request.verify = flags.verify;
  ask(flags, std::move(request), "started; 'ringshift resize watch' follows it");
}

void show_status(const Flags& flags) {
  const auto coordinator = open(flags);
  require_cluster(*coordinator, flags);
  const Result<ResizeStatus> status = read_status(*coordinator, keys_of(flags));
  if (!status) end_with(kFailed, status.error().message);
  std::fputs((flags.json ? to_json(*status) + "\n" : describe(*status)).c_str(), stdout);
}

void watch(const Flags& flags) {
  const auto coordinator = open(flags);
  require_cluster(*coordinator, flags);
  if (const int status = follow(*coordinator, flags); status != kDone) throw CLI::RuntimeError(status);
}

CLI::App* add(CLI::App& app, const std::shared_ptr<Flags>& flags, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  flags->registry.add_to(*command, /*cluster_required=*/true);
  command->add_flag("--json", flags->json, "Print JSON for machines");
  return command;
}

void add_simple(CLI::App& app, const char* name, const char* what, Request::Action action, const char* done) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = add(app, flags, name, what);
  command->add_flag("--wait", flags->wait, "Follow the resize until it ends");
  command->footer(fmt::format("Examples:\n  ringshift resize {} --cluster cache", name));
  command->callback([flags, action, done] {
    Request request;
    request.action = action;
    ask(*flags, std::move(request), done);
  });
}

void add_big_keys(CLI::App& app) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = add(app, flags, "big-keys", "Say what becomes of keys above limits.big_key_bytes");
  command->add_option("what", flags->big_keys, "move|wait|refuse")
      ->required()
      ->check(CLI::IsMember({"move", "wait", "refuse"}));
  command->add_option("--limit", flags->big_key_limit, "With move: only keys up to this size, such as 200MiB")
      ->transform(CLI::AsSizeValue(false));
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
      "  ringshift resize rollback --cluster cache");

  auto flags = std::make_shared<Flags>();
  CLI::App* begin = add(*command, flags, "start", "Move to the topology that a spec describes");
  begin->get_option("--cluster")->required(false);
  begin->add_option("--spec", flags->spec, "The cluster as it shall be")->required()->type_name("FILE");
  begin->add_option("--steps", flags->steps, "Shares of the keyspace, in percent, moved one after the other")
      ->delimiter(',')
      ->default_str("1,10,50,100");
  begin->add_flag("--wait", flags->wait, "Follow the resize until it ends");
  begin->add_flag("--allow-foreign", flags->allow_foreign,
                  "Start although clients that are not ours are connected to members");
  begin->add_option("--big-keys", flags->big_keys, "What becomes of keys above limits.big_key_bytes")
      ->check(CLI::IsMember({"move", "wait", "refuse"}))
      ->default_str("wait");
  begin->add_option("--verify", flags->verify, "Compare copies with their originals")
      ->check(CLI::IsMember({"counts", "sample", "all"}))
      ->default_str("counts");
  begin->add_flag(
      "--force", flags->force,
      "Allow that more than half of the members leave at once, and members that a lost registry marked");
  begin->footer(
      "The cluster's name is taken from the spec unless --cluster is given.\n"
      "Examples:\n"
      "  ringshift resize start --spec five.yaml\n"
      "  ringshift resize start --spec without-cache-2.yaml --lost cache-2 --origin-budget 2000\n"
      "  ringshift resize start --spec five.yaml --mode expire --move-rest --deadline 15m\n"
      "  ringshift resize start --spec five.yaml --steps 5,25,100 --wait");
  flags->more = add_more_start_options(*begin);
  begin->callback([flags] { start(*flags); });

  flags = std::make_shared<Flags>();
  CLI::App* status = add(*command, flags, "status", "How far the resize has come");
  status->footer("Examples:\n  ringshift resize status --cluster cache --json");
  status->callback([flags] { show_status(*flags); });

  flags = std::make_shared<Flags>();
  CLI::App* follow_it = add(*command, flags, "watch", "Follow the resize until it ends");
  follow_it->footer("Examples:\n  ringshift resize watch --cluster cache");
  follow_it->callback([flags] { watch(*flags); });

  add_simple(*command, "pause", "Stop moving keys; the cluster serves on as it is", Request::Action::pause,
             "paused");
  add_simple(*command, "resume", "Go on after a pause", Request::Action::resume, "resumed");
  add_resize_lost(*command);
  add_simple(*command, "rollback", "Move everything back", Request::Action::rollback, "rolling back");

  add_big_keys(*command);

  flags = std::make_shared<Flags>();
  CLI::App* rate = add(*command, flags, "set-rate", "Change the mover's rate while it works");
  rate->add_option("keys_per_second", flags->keys_per_second, "Keys a second over all members")
      ->required()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100000000}));
  rate->footer("Examples:\n  ringshift resize set-rate 20000 --cluster cache");
  rate->callback([flags] {
    Request request;
    request.action = Request::Action::set_rate;
    request.keys_per_second = flags->keys_per_second;
    ask(*flags, std::move(request), "rate set");
  });
}

}  // namespace ringshift::cli
