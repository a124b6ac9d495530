// `ringshift registry copy`, below `ringshift registry`.
#pragma once

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_registry_copy(CLI::App& registry);

}  // namespace ringshift::cli
