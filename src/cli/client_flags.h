// How a proxy treats its clients: the flags that `ringshift proxy` and `ringshift serve` share.
#pragma once
#include "proxy/proxy.h"

namespace CLI {
class App;
}

namespace ringshift::cli {

// --timeout, --tcp-keepalive, --max-clients, ... into `options`, which must outlive the parsing.
void add_client_flags(CLI::App& command, proxy::Options& options);

}  // namespace ringshift::cli
