#include "cli/log_flags.h"

#include <CLI/CLI.hpp>

#include "cli/server.h"

namespace ringshift::cli {
namespace {

struct Level {
  const char* name;
  base::LogLevel level;
};
constexpr Level kLevels[] = {{"debug", base::LogLevel::debug},
                             {"info", base::LogLevel::info},
                             {"warning", base::LogLevel::warning},
                             {"error", base::LogLevel::error}};

}  // namespace

void LogFlags::add_to(CLI::App& command) {
  command
      .add_option("--log-format", format,
                  "Of the log on standard error; json: an object a line, with version, digest and member as "
                  "fields")
      ->envname("RINGSHIFT_LOG_FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command.add_option("--log-level", level, "The least that is logged")
      ->envname("RINGSHIFT_LOG_LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  command.add_flag("--verbose", verbose, "Log more: --log-level debug");
}

void LogFlags::apply() const {
  base::LogLevel least = verbose ? base::LogLevel::debug : base::LogLevel::info;
  for (const auto& [name, value] : kLevels)
    if (!verbose && level == name) least = value;
  log_to_stderr(least, format == "json" ? LogFormat::json : LogFormat::text);
}

}  // namespace ringshift::cli
