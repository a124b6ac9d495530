// `ringshift topology`: the subcommands that work on files are in topology_local.cpp, those that speak to a
// registry beside it.
#include "cli/topology.h"

#include <CLI/CLI.hpp>

#include "cli/cli.h"

namespace ringshift::cli {

void add_topology(CLI::App& app) {
  CLI::App* command = app.add_subcommand("topology", "Check, compare and publish topologies");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  ringshift topology validate four.yaml\n"
      "  ringshift topology diff four.yaml five.yaml");
  add_topology_local(*command);
}

}  // namespace ringshift::cli
