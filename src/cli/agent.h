// ringshift agent: runs beside one Redis or memcached and registers it.
#pragma once

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_agent(CLI::App& app);

}  // namespace ringshift::cli
