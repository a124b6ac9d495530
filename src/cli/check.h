// `ringshift check`.
#pragma once

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_check(CLI::App& app);  // As the others in cli.h.

}  // namespace ringshift::cli
