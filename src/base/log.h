// Logging as the folders below cli/ see it: a level, a line, fields beside it, and a sink that main()
// installs. With no sink installed, lines go nowhere, so that the library is silent inside other people's
// programs. The line alone says everything to a person; the fields say the same to a program that reads logs
// (--log-format json), under names that do not change: version, digest, member and the like.
// Thread-safe; a line below the level costs one relaxed load, but its arguments are already evaluated.
#pragma once
#include <fmt/format.h>

#include <concepts>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ringshift::base {

enum class LogLevel { debug, info, warning, error, off };

// A number as it is written in JSON, or a text.
struct LogField {
  template <class T>
    requires std::integral<T> || std::floating_point<T>
  LogField(std::string_view n, T number) : name(n), value(fmt::format("{}", number)) {}
  LogField(std::string_view n, std::string_view text) : name(n), value(text), is_text(true) {}

  std::string_view name;  // Of a literal.
  std::string value;
  bool is_text = false;
};

using LogSink = std::function<void(LogLevel, std::string_view line, std::span<const LogField>)>;

// Replaces the sink and the level. Call before threads start.
void set_log_sink(LogLevel level, LogSink sink);
[[nodiscard]] bool log_enabled(LogLevel level) noexcept;
void write_log(LogLevel level, std::string_view line, std::span<const LogField> fields = {});

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) write_log(level, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_fields(LogLevel level, std::initializer_list<LogField> fields, fmt::format_string<Args...> format,
                Args&&... args) {
  if (log_enabled(level)) write_log(level, fmt::format(format, std::forward<Args>(args)...), fields);
}

}  // namespace ringshift::base
