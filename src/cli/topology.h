// The parts of `ringshift topology`; each adds its subcommands.
#pragma once

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_topology_local(CLI::App& topology);  // validate, diff

}  // namespace ringshift::cli
