// `ringshift registry audit | backup | restore`, below `ringshift registry`.
#pragma once

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_registry_more(CLI::App& registry);

}  // namespace ringshift::cli
