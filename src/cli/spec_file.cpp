#include "cli/spec_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "topology/discovery.h"
#include "topology/document.h"

namespace ringshift::cli {
namespace {

struct Close {
  void operator()(std::FILE* file) const noexcept {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

Result<std::string> read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return fail(ErrorKind::not_found, fmt::format("{}: {}", path, std::strerror(errno)));
  std::string text;
  char part[1 << 16];
  while (text.size() <= topology::kMaxTextBytes) {
    const std::size_t got = std::fread(part, 1, sizeof part, file.get());
    text.append(part, got);
    if (got != 0) continue;
    if (std::ferror(file.get()) != 0) {
      return fail(ErrorKind::internal, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    }
    return text;
  }
  return fail(ErrorKind::invalid, fmt::format("{}: has more than the {} bytes allowed: is it the right file?",
                                              path, topology::kMaxTextBytes));
}

Result<topology::Spec> read_spec(const std::string& path) {
  const Result<std::string> text = read_text(path);
  if (!text) return std::unexpected(text.error());
  return topology::parse_spec(*text, path);
}

Result<discovery::Options> source_options(const topology::DiscoverySource& words, std::string_view place) {
  discovery::Fields fields;  // Lists are separated by commas there.
  for (const auto& [name, values] : words.options) fields[name] = fmt::format("{}", fmt::join(values, ","));
  return discovery::read_options(words.kind, fields, {}, fmt::format("{}discovery.source.", place));
}

Result<std::optional<topology::DiscoverySpec>> discovery_of_text(std::string_view text,
                                                                 std::string_view place) {
  auto found = topology::discovery_of_spec(text, place);
  if (!found || !*found) return found;
  if (const auto source = source_options((*found)->source, fmt::format("{}: ", place)); !source)
    return std::unexpected(source.error());
  return found;
}

Result<std::shared_ptr<const topology::Snapshot>> load_spec_snapshot(const std::string& path) {
  Result<topology::Spec> spec = read_spec(path);
  if (!spec) return std::unexpected(spec.error());
  topology::Topology topology;
  topology.spec = std::move(*spec);
  return topology::Snapshot::compile(std::move(topology), {0, 1});
}

}  // namespace ringshift::cli
