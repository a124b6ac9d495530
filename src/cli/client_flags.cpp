#include "cli/client_flags.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <string>

namespace ringshift::cli {
namespace {

constexpr std::int64_t kMaxSeconds = 2147483647;

void add_seconds(CLI::App& command, const std::string& flag, std::chrono::seconds& value, std::int64_t lowest,
                 const std::string& help) {
  command
      .add_option_function<std::int64_t>(
          flag, [&value](const std::int64_t& seconds) { value = std::chrono::seconds(seconds); }, help)
      ->check(CLI::Range(lowest, kMaxSeconds))
      ->type_name("SECONDS")
      ->default_str(std::to_string(value.count()));
}

}  // namespace

void add_client_flags(CLI::App& command, proxy::Options& options) {
  command.add_option("--max-clients", options.max_clients, "More are refused")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000000}))
      ->capture_default_str();
  command.add_flag("--allow-flush", options.allow_flush,
                   "Serve FLUSHALL and FLUSHDB, which empty every member");
  command.add_flag("!--no-protected-mode", options.protected_mode,
                   "Serve other machines though nobody needs a password");
  add_seconds(command, "--timeout", options.idle_timeout, 0, "Close clients idle for so long; 0: never");
  add_seconds(command, "--tcp-keepalive", options.tcp_keepalive, 0,
              "Ask a silent client after so long whether it lives; 0: never");
  command
      .add_option("--max-client-output", options.cut_output_bytes,
                  "Disconnect a client that leaves more bytes of answers unread")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--max-total-output", options.max_total_output_bytes,
                  "Unread answers of all clients, beyond which those that do not read have to wait")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_seconds(command, "--slow-client-timeout", options.slow_client_timeout, 1,
              "Then disconnect those of them that read nothing for so long");
  command
      .add_option("--slowlog-log-slower-than", options.slowlog_slower_than,
                  "Microseconds from which SLOWLOG keeps a command; -1: nothing is measured")
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{3600000000}))
      ->capture_default_str();
  command
      .add_option_function<std::int64_t>(
          "--slow-log-ms",
          [&options](const std::int64_t& ms) { options.slow_log = std::chrono::milliseconds(ms); },
          "Log each request that took as long: client, command, member and its share of the time; 0: none")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{3600000}))
      ->type_name("MS")
      ->default_str("0");
  command.add_option("--slowlog-max-len", options.slowlog_max_len, "Commands that SLOWLOG keeps")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1000000}))
      ->capture_default_str();
}

}  // namespace ringshift::cli
