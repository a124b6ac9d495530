#include "cli/ending.h"

#include <CLI/CLI.hpp>

#include "cli/cli.h"

namespace ringshift::cli {

void end_command(int status, std::string_view message) {
  report(message);
  throw CLI::RuntimeError(status);
}

void end_silently(int status) { throw CLI::RuntimeError(status); }

}  // namespace ringshift::cli
