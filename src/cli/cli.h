// The command line: one file a subcommand, and the only place where all folders meet.
#pragma once
#include <string_view>

namespace CLI {
class App;
}

namespace ringshift::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadUsage = 2;

// Parses and runs; gives the exit status.
int run(int argc, char** argv);

// Each adds its subcommand to `app`. A command's callback throws CLI::RuntimeError(status) to end with a
// status other than 0; report() has printed why by then.
void add_topology(CLI::App& app);
void add_route(CLI::App& app);
void add_registry(CLI::App& app);
void add_token(CLI::App& app);
void add_cert(CLI::App& app);
void add_proxy(CLI::App& app);
void add_controller(CLI::App& app);
void add_resize(CLI::App& app);
void add_member(CLI::App& app);
void add_plan(CLI::App& app);
void add_serve(CLI::App& app);
void add_up(CLI::App& app);
void add_drill(CLI::App& app);
void add_vectors(CLI::App& app);
void add_import(CLI::App& app);
void add_compare(CLI::App& app);
void add_doctor(CLI::App& app);
void add_top(CLI::App& app);
void add_completion(CLI::App& app);  // Last: it lists the others.

// "ringshift: <message>" on standard error.
void report(std::string_view message);

}  // namespace ringshift::cli
