// `ringshift route`: which member takes a key, and why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/encoding.h"
#include "cli/cli.h"
#include "cli/spec_file.h"
#include "cli/topology_registry.h"

namespace ringshift::cli {
namespace {

using topology::KeyState;
using topology::Snapshot;

struct Options {
  std::vector<std::string> keys;
  std::string spec;
  RegistryFlags registry;
  bool explain = false;
  bool hex = false;
  bool json = false;
};

const char* name(KeyState state) {
  switch (state) {
    case KeyState::settled:
      return "settled";
    case KeyState::hold:
      return "hold";
    case KeyState::dual:
      return "dual";
  }
  return "?";
}

// The topology that routers obey now, or a file's.
Result<std::shared_ptr<const Snapshot>> load(const Options& options) {
  if (!options.spec.empty()) return load_spec_snapshot(options.spec);
  const auto coordinator = options.registry.connect();
  if (!coordinator) return std::unexpected(coordinator.error());
  auto stored = read_topology(**coordinator, options.registry.keys());
  if (!stored) return std::unexpected(stored.error());
  if (!*stored) {
    return fail(ErrorKind::not_found, fmt::format("cluster '{}' has no topology in {}",
                                                  options.registry.cluster, options.registry.registry));
  }
  return Snapshot::compile(std::move((*stored)->topology), (*stored)->version);
}

// `shown` is the key as the user wrote it: text, or hex.
void print_json(const Snapshot& snapshot, const Options& options, const std::string& key,
                const std::string& shown) {
  const topology::Route route = snapshot.route(key);
  nlohmann::json out = {{"key", shown},
                        {"member", snapshot.members()[route.member].id},
                        {"slice", snapshot.slice(key)},
                        {"version", topology::to_string(snapshot.version)},
                        {"state", name(route.state)}};
  if (route.state != KeyState::settled) out["source"] = snapshot.members()[route.source].id;
  if (options.explain) out["walk"] = snapshot.explain(key);
  const std::string line = out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fprintf(stdout, "%s\n", line.c_str());
}

void print_text(const Snapshot& snapshot, const Options& options, const std::string& key,
                const std::string& shown) {
  const topology::Route route = snapshot.route(key);
  const topology::Member& member = snapshot.members()[route.member];
  std::string line =
      fmt::format("{}  {}  {}  slice {}", shown, member.id, member.address, snapshot.slice(key));
  if (route.state != KeyState::settled) {
    line += fmt::format("  {} from {}", name(route.state), snapshot.members()[route.source].id);
  }
  line += '\n';
  if (options.explain) {
    for (const std::string& step : snapshot.explain(key)) line += fmt::format("    {}\n", step);
  }
  std::fwrite(line.data(), 1, line.size(), stdout);
}

// False, with a report, when the key is not hex although it should be.
bool route_one(const Snapshot& snapshot, const Options& options, const std::string& given) {
  std::string key = given;
  if (options.hex) {
    const auto bytes = base::from_hex(given);
    if (!bytes) {
      report(fmt::format("'{}' is not hex: with --hex a key is an even number of hex digits", given));
      return false;
    }
    key = *bytes;
  }
  (options.json ? print_json : print_text)(snapshot, options, key, given);
  return true;
}

int run_route(const Options& options) {
  if (options.spec.empty() == options.registry.cluster.empty()) {
    report(options.spec.empty() ? "say --spec FILE, or --cluster NAME for the topology in the registry"
                                : "--spec and --cluster exclude each other (is RINGSHIFT_CLUSTER set?)");
    return kBadUsage;
  }
  const auto snapshot = load(options);
  if (!snapshot) {
    report(snapshot.error().message);
    return kFailed;
  }
  bool good = true;
  if (!options.keys.empty()) {
    for (const std::string& key : options.keys) good = route_one(**snapshot, options, key) && good;
  } else {
    std::string key;
    while (std::getline(std::cin, key)) good = route_one(**snapshot, options, key) && good;
  }
  if (std::fflush(stdout) != 0) {
    report("cannot write to standard output");
    return kFailed;
  }
  return good ? kDone : kFailed;
}

}  // namespace

void add_route(CLI::App& app) {
  CLI::App* command = app.add_subcommand("route", "Tell which member takes a key, and why");
  const auto options = std::make_shared<Options>();
  command->add_option("KEY", options->keys, "Keys; none: one a line from standard input");
  command->add_option("--spec", options->spec, "A spec file")->type_name("FILE");
  options->registry.add_to(*command, /*cluster_required=*/false);
  command->add_flag("--explain", options->explain, "Show the hash, the point and the owner");
  command->add_flag("--hex", options->hex, "Keys are written in hex, for binary ones");
  command->add_flag("--json", options->json, "One JSON object a key");
  command->footer(
      "Examples:\n"
      "  ringshift route user:42 --spec four.yaml\n"
      "  ringshift route user:42 --spec four.yaml --explain\n"
      "  ringshift route user:42 --cluster cache --json\n"
      "  ringshift route 00ff10 --hex --json --spec four.yaml\n"
      "  cut -f1 keys.tsv | ringshift route --json --spec four.yaml");
  command->callback([options] {
    if (const int status = run_route(*options); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
