#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/agent.h"
#include "cli/check.h"
#include "cli/discovery.h"
#include "ringshift_version.h"

namespace ringshift::cli {

void report(std::string_view message) {
  std::fprintf(stderr, "ringshift: %.*s\n", static_cast<int>(message.size()), message.data());
}

namespace {

// What a full disk did not take was not said.
int said(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  if (errno == EPIPE || status != kDone) return status;  // Whoever read it has enough.
  report(std::string("standard output could not be written: ") + std::strerror(errno));
  return kFailed;
}

int parse_and_do(int argc, char** argv) {
  CLI::App app{"Grow, shrink and repair a sharded Redis cache while it serves."};
  app.name("ringshift");
  app.set_version_flag("--version", RINGSHIFT_VERSION);
  app.require_subcommand(1);
  app.footer("Run 'ringshift COMMAND --help' for a command's options and examples.");
  add_topology(app);
  add_route(app);
  add_proxy(app);
  add_registry(app);
  add_token(app);
  add_cert(app);
  add_controller(app);
  add_agent(app);
  add_serve(app);
  add_resize(app);
  add_member(app);
  add_plan(app);
  add_up(app);
  add_drill(app);
  add_vectors(app);
  add_import(app);
  add_compare(app);
  add_check(app);
  add_doctor(app);
  add_discovery(app);
  add_top(app);
  add_completion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadUsage;
  } catch (const std::exception& error) {
    report(error.what());
    return kFailed;
  }
  return kDone;
}

}  // namespace

int run(int argc, char** argv) {
  // A file that may not grow any more (ulimit -f) is an error of the write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  return said(parse_and_do(argc, argv));
}

}  // namespace ringshift::cli
