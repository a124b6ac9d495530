// What a text looks like, by the first word that only one format has.
#include <algorithm>

#include "import/import.h"

namespace ringshift::importing {
namespace {

constexpr std::size_t kMaxLinesRead = 20'000;

std::string_view trimmed(std::string_view line) {
  const auto first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

bool is_node_id(std::string_view line) {
  constexpr std::size_t kIdLength = 40;
  return line.size() > kIdLength && line[kIdLength] == ' ' &&
         line.substr(0, kIdLength).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool starts_with_word(std::string_view line, std::string_view word) {
  return line.starts_with(word) &&
         (line.size() == word.size() || line[word.size()] == ' ' || line[word.size()] == '\t');
}

}  // namespace

std::optional<Format> guess(std::string_view text) {
  std::size_t lines = 0;
  while (!text.empty() && ++lines <= kMaxLinesRead) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("--")) return Format::libmemcached;
    if (is_node_id(line)) return Format::redis_cluster;
    if (line.find("servers:") != std::string_view::npos || line.starts_with("distribution:"))
      return Format::nutcracker;
    if (starts_with_word(line, "upstream") || line.ends_with(';') || line.ends_with('{') ||
        line.ends_with("; }"))
      return Format::nginx;
    for (const std::string_view section : {"global", "defaults", "backend", "listen", "frontend"}) {
      if (starts_with_word(line, section)) return Format::haproxy;
    }
    if (line.starts_with("listen:")) return Format::nutcracker;
  }
  return std::nullopt;
}

}  // namespace ringshift::importing
