#include "cli/server.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdio>

namespace ringshift::cli {
namespace {

spdlog::level::level_enum level_of(base::LogLevel level) {
  switch (level) {
    case base::LogLevel::debug:
      return spdlog::level::debug;
    case base::LogLevel::info:
      return spdlog::level::info;
    case base::LogLevel::warning:
      return spdlog::level::warn;
    case base::LogLevel::error:
      return spdlog::level::err;
    case base::LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

sigset_t set_of(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

void log_to_stderr(base::LogLevel level) {
  auto logger = spdlog::stderr_logger_mt("ringshift");
  logger->set_level(spdlog::level::trace);  // base::log has its own level.
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  base::set_log_sink(level, [logger](base::LogLevel line_level, std::string_view line) {
    logger->log(level_of(line_level), line);
  });
}

Signals::Signals(std::initializer_list<int> signals) : signals_(signals) {
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = set_of(signals_);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int Signals::wait() const {
  const sigset_t set = set_of(signals_);
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  return signal;
}

std::optional<int> Signals::wait_for(std::chrono::milliseconds duration) const {
  const sigset_t set = set_of(signals_);
  const timespec limit{.tv_sec = duration.count() / 1000, .tv_nsec = duration.count() % 1000 * 1'000'000};
  const int signal = sigtimedwait(&set, nullptr, &limit);
  return signal > 0 ? std::optional(signal) : std::nullopt;
}

void announce(std::string_view name, std::string_view address) {
  std::printf("ready: %.*s listening on %.*s\n", static_cast<int>(name.size()), name.data(),
              static_cast<int>(address.size()), address.data());
  std::fflush(stdout);
}

}  // namespace ringshift::cli
