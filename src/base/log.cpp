#include "base/log.h"

#include <atomic>
#include <mutex>

namespace ringshift::base {
namespace {
std::atomic<LogLevel> g_level{LogLevel::off};
std::mutex g_mutex;
LogSink g_sink;  // Guarded by g_mutex.
}  // namespace

void set_log_sink(LogLevel level, LogSink sink) {
  const std::lock_guard lock(g_mutex);
  g_sink = std::move(sink);
  g_level.store(level, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) noexcept { return level >= g_level.load(std::memory_order_relaxed); }

void write_log(LogLevel level, std::string_view line, std::span<const LogField> fields) {
  const std::lock_guard lock(g_mutex);
  if (g_sink) g_sink(level, line, fields);
}

}  // namespace ringshift::base
