// Logging as the folders below cli/ see it: a level, a line, and a sink that main() installs. With no sink
// installed, lines go nowhere, so that the library is silent inside other people's programs.
// Thread-safe; a line below the level costs one relaxed load, but its arguments are already evaluated.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

namespace ringshift::base {

enum class LogLevel { debug, info, warning, error, off };

using LogSink = std::function<void(LogLevel, std::string_view)>;

// Replaces the sink and the level. Call before threads start.
void set_log_sink(LogLevel level, LogSink sink);
[[nodiscard]] bool log_enabled(LogLevel level) noexcept;
void write_log(LogLevel level, std::string_view line);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) write_log(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ringshift::base
