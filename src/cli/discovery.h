// `ringshift discovery`.
#pragma once

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_discovery(CLI::App& app);

}  // namespace ringshift::cli
