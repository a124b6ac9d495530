// `ringshift topology`: the subcommands that work on files are in topology_local.cpp, those that speak to a
// registry beside it.
#include "cli/topology.h"

#include <CLI/CLI.hpp>

#include "cli/cli.h"
#include "cli/topology_registry.h"

namespace ringshift::cli {

void add_topology(CLI::App& app) {
  CLI::App* command = app.add_subcommand("topology", "Check, compare and publish topologies");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  ringshift topology validate four.yaml\n"
      "  ringshift topology diff four.yaml five.yaml\n"
      "  ringshift topology apply four.yaml --cluster cache");
  add_topology_local(*command);
  add_topology_registry(*command);
}

}  // namespace ringshift::cli
