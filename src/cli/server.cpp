#include "cli/server.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/line_writer.h"

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

// Only forms the line. base::log calls one at a time.
class QueueSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit QueueSink(base::LineWriter& writer) : writer_(writer) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writer_.write(std::string(line.data(), line.size()));
  }
  void flush_() override {}

  base::LineWriter& writer_;
};

base::LineWriter* standard_error = nullptr;

// A line of JSON: time, level, message, then the line's own fields. What is no UTF-8 is replaced.
std::string json_line(base::LogLevel level, std::string_view line, std::span<const base::LogField> fields) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  nlohmann::ordered_json out;
  out["time"] =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                  utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, now.time_since_epoch().count() % 1000);
  out["level"] =
      level == base::LogLevel::warning ? "warning" : spdlog::level::to_string_view(level_of(level)).data();
  out["message"] = line;
  for (const base::LogField& field : fields) {
    auto& value = out[std::string(field.name)];
    if (!field.is_text) value = nlohmann::ordered_json::parse(field.value, nullptr, false);
    if (field.is_text || value.is_discarded()) value = field.value;  // Infinity is no number in JSON.
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void flush_the_log() { (void)standard_error->flush(base::LineWriter::kFlushAtEnd); }

}  // namespace

void log_to_stderr(base::LogLevel level, LogFormat format) {
  if (standard_error == nullptr) {
    standard_error = new base::LineWriter(STDERR_FILENO);  // Never destroyed: threads may log to the end.
    (void)std::atexit(flush_the_log);
    static const std::terminate_handler before = std::get_terminate();
    std::set_terminate([] {
      flush_the_log();
      before();
    });
  }
  if (format == LogFormat::json) {
    base::set_log_sink(
        level, [](base::LogLevel line_level, std::string_view line, std::span<const base::LogField> fields) {
          standard_error->write(json_line(line_level, line, fields));
        });
    return;
  }
  auto logger = std::make_shared<spdlog::logger>("ringshift", std::make_shared<QueueSink>(*standard_error));
  logger->set_level(spdlog::level::trace);  // base::log has its own level.
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  base::set_log_sink(
      level, [logger](base::LogLevel line_level, std::string_view line, std::span<const base::LogField>) {
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
