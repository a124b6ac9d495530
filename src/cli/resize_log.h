// `ringshift resize log` and `resize list`: what was decided, from the registry, also after the end.
#pragma once

namespace CLI {
class App;
}

namespace ringshift::cli {

void add_resize_log(CLI::App& resize);

}  // namespace ringshift::cli
