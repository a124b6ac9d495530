// --log-format, --log-level and --verbose of every command that serves: one place for all roles.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace ringshift::cli {

struct LogFlags {
  std::string format = "text";
  std::string level = "info";
  bool verbose = false;  // The same as level debug.

  void add_to(CLI::App& command);
  // Installs the sink of base::log (log_to_stderr()). Call before threads start.
  void apply() const;
};

}  // namespace ringshift::cli
