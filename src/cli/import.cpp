// `ringshift import`: another program's configuration into specs of ours.
#include "import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/encoding.h"
#include "cli/cli.h"
#include "cli/spec_file.h"

namespace ringshift::cli {
namespace {

using importing::Format;
using importing::Imported;
using nlohmann::json;

struct ImportOptions {
  std::string file, from, pool, cluster, output;
  bool json = false;
};

Result<Format> format_of(const ImportOptions& options, std::string_view text) {
  for (const auto& [name, format] : importing::kFormats) {
    if (options.from == name) return format;
  }
  if (const auto guessed = importing::guess(text)) {
    fmt::print(stderr, "{}: looks like {}; --from says otherwise\n", options.file,
               importing::name_of(*guessed));
    return *guessed;
  }
  std::vector<std::string_view> names;
  for (const auto& [name, format] : importing::kFormats) names.push_back(name);
  return fail(ErrorKind::invalid,
              fmt::format("{}:1:1: looks like none of the formats known: say which by --from ({})",
                          options.file, fmt::join(names, ", ")));
}

void print_notes(const std::string& file, const std::vector<Imported>& all) {
  constexpr std::size_t kMaxShown = 400;
  for (const Imported& one : all) {
    for (const importing::Note& note : one.notes) {
      fmt::print(stderr, "{}:{}:{}: {}: {}: {}\n", file, note.mark.line, note.mark.column,
                 base::printable(one.source, kMaxShown), base::printable(note.words, kMaxShown),
                 base::printable(note.text, kMaxShown));
    }
    for (const std::string& warning : topology::warnings(one.spec))
      fmt::print(stderr, "{}: {}: warning: {}\n", file, base::printable(one.source, kMaxShown), warning);
  }
}

std::string as_json(const std::vector<Imported>& all) {
  json list = json::array();
  for (const Imported& one : all) {
    json notes = json::array();
    for (const importing::Note& note : one.notes) {
      notes.push_back({{"line", note.mark.line},
                       {"column", note.mark.column},
                       {"words", note.words},
                       {"note", note.text}});
    }
    list.push_back({{"source", one.source},
                    {"spec", json::parse(topology::to_json(one.spec), nullptr, false)},
                    {"notes", std::move(notes)},
                    {"warnings", topology::warnings(one.spec)}});
  }
  return json{{"imported", std::move(list)}}.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

Status write_file(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool opened = file != nullptr;
  const bool written = opened && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (opened && std::fclose(file) == 0 && written) return {};
  return fail(ErrorKind::internal, fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
}

// A folder gets a file a pool, anything else one file, "" standard output.
Status write_specs(const std::vector<Imported>& all, Format format, const ImportOptions& options) {
  std::error_code ignored;
  const bool folder = options.output.ends_with('/') || std::filesystem::is_directory(options.output, ignored);
  std::string together;
  for (const Imported& one : all) {
    const std::string yaml = importing::to_yaml(one, format, options.file);
    together += (together.empty() ? "" : "---\n") + yaml;
    if (!folder) continue;
    std::filesystem::create_directories(options.output, ignored);
    const auto path = std::filesystem::path(options.output) / (one.spec.cluster + ".yaml");
    if (Status done = write_file(path.string(), yaml); !done) return done;
    fmt::print(stderr, "{}: {}\n", path.string(), base::printable(one.source, 200));
  }
  if (folder) return {};
  const std::string text = options.json ? as_json(all) : together;
  if (!options.output.empty()) return write_file(options.output, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? Status{} : fail(ErrorKind::internal, "standard output cannot be written");
}

int run_import(const ImportOptions& options) {
  const Result<std::string> text = read_text(options.file);
  if (!text) {
    report(text.error().message);
    return kFailed;
  }
  const Result<Format> format = format_of(options, *text);
  if (!format) {
    report(format.error().message);
    return kFailed;
  }
  const auto imported = importing::import_text(*text, {*format, options.file, options.pool, options.cluster});
  if (!imported) {
    report(imported.error().message);
    return kFailed;
  }
  print_notes(options.file, *imported);
  if (Status done = write_specs(*imported, *format, options); !done) {
    report(done.error().message);
    return kFailed;
  }
  return kDone;
}

}  // namespace

void add_import(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "import", "Make a spec of another program's configuration, with every key where it was");
  const auto options = std::make_shared<ImportOptions>();
  command->add_option("FILE", options->file, "Its configuration; - is standard input")->required();
  std::vector<std::string> names;
  for (const auto& [name, format] : importing::kFormats) names.emplace_back(name);
  command->add_option("--from", options->from, "The format; guessed when not given")
      ->check(CLI::IsMember(names));
  command->add_option("--pool", options->pool, "Only this pool, upstream or backend");
  command->add_option("--cluster", options->cluster, "The cluster's name; the pool's when not given");
  command->add_option("--output", options->output,
                      "A file to write, or a folder (existing, or ending in /) for one file a pool");
  command->add_flag("--json", options->json, "One JSON object with specs, notes and warnings");
  command->footer(
      "What cannot be carried over is said line by line; what would give a key another server is refused.\n"
      "Serve the result by `ringshift serve --spec imported.yaml`, then move on by `ringshift resize "
      "start`.\n\n"
      "Examples:\n"
      "  ringshift import /etc/nutcracker/nutcracker.yml > imported.yaml\n"
      "  ringshift import /etc/nginx/nginx.conf --pool cache --output cache.yaml\n"
      "  ringshift import haproxy.cfg --from haproxy --json\n"
      "  redis-cli -h 10.0.0.1 cluster nodes | ringshift import - --cluster sessions\n"
      "  echo '--SERVER=10.0.0.1 --SERVER=10.0.0.2 --DISTRIBUTION=consistent' | ringshift import -");
  command->callback([options] {
    if (const int status = run_import(*options); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
