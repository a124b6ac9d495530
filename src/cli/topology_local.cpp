// `ringshift topology validate` and `ringshift topology diff`: files in, answers out, no server.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/cli.h"
#include "cli/spec_file.h"
#include "cli/topology.h"
#include "ringshift/diff.h"

namespace ringshift::cli {
namespace {

using nlohmann::json;

void print(const json& value) {
  std::fprintf(stdout, "%s\n", value.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

struct ValidateOptions {
  std::vector<std::string> files;
  bool json = false;
};

// With its discovery, which is judged here and is no part of Spec.
Result<topology::Spec> read_whole_spec(const std::string& file) {
  const Result<std::string> text = read_text(file);
  if (!text) return std::unexpected(text.error());
  if (const auto discovery = discovery_of_text(*text, file); !discovery)
    return std::unexpected(discovery.error());
  return topology::parse_spec(*text, file);
}

// An object a file: {file, valid, error?, warnings}.
int run_validate(const ValidateOptions& options) {
  bool all_valid = true;
  for (const std::string& file : options.files) {
    const Result<topology::Spec> spec = read_whole_spec(file);
    all_valid = all_valid && spec.has_value();
    const std::vector<std::string> notes = spec ? topology::warnings(*spec) : std::vector<std::string>{};
    if (options.json) {
      json out = {{"file", file}, {"valid", spec.has_value()}, {"warnings", notes}};
      if (!spec) out["error"] = spec.error().message;
      print(out);
    } else if (!spec) {
      report(spec.error().message);
    } else {
      fmt::print("{}: valid: cluster {}, {} member{}, {}\n", file, spec->cluster, spec->members.size(),
                 spec->members.size() == 1 ? "" : "s", spec->placement.algorithm);
      for (const std::string& note : notes) fmt::print("{}: warning: {}\n", file, note);
    }
  }
  return all_valid ? kDone : kFailed;
}

struct DiffOptions {
  std::string from, to;
  bool json = false;
};

void print_diff(const topology::Diff& diff) {
  fmt::print("{:.4f} % of the keyspace moves; no balanced placement can move less than {:.4f} %\n",
             diff.moved_share * 100, diff.minimum_share * 100);
  if (!diff.exact) fmt::print("(an estimate from 1,000,000 sampled keys)\n");
  std::size_t width = 0;
  for (const topology::PairShare& pair : diff.pairs)
    width = std::max(width, pair.from.size() + pair.to.size());
  for (const topology::PairShare& pair : diff.pairs) {
    const std::string pair_name = fmt::format("{} -> {}", pair.from, pair.to);
    fmt::print("  {:<{}}  {:9.4f} %\n", pair_name, width + 4, pair.share * 100);
  }
}

int run_diff(const DiffOptions& options) {
  const Result<topology::Spec> from = read_spec(options.from), to = read_spec(options.to);
  for (const auto* spec : {&from, &to}) {
    if (*spec) continue;
    report(spec->error().message);
    return kFailed;
  }
  const Result<topology::Diff> diff = topology::diff(*from, *to);
  if (!diff) {
    report(diff.error().message);
    return kFailed;
  }
  if (!options.json) {
    print_diff(*diff);
    return kDone;
  }
  json pairs = json::array();
  for (const topology::PairShare& pair : diff->pairs) {
    pairs.push_back({{"from", pair.from}, {"to", pair.to}, {"share", pair.share}});
  }
  print({{"moved_share", diff->moved_share},
         {"minimum_share", diff->minimum_share},
         {"exact", diff->exact},
         {"pairs", std::move(pairs)}});
  return kDone;
}

void add_validate(CLI::App& topology) {
  CLI::App* command = topology.add_subcommand("validate", "Check spec files and say what is wrong with them");
  const auto options = std::make_shared<ValidateOptions>();
  command->add_option("FILE", options->files, "Spec files; - is standard input")->required();
  command->add_flag("--json", options->json, "One JSON object a file");
  command->footer(
      "Examples:\n  ringshift topology validate four.yaml\n  ringshift topology validate --json *.yaml");
  command->callback([options] {
    if (const int status = run_validate(*options); status != kDone) throw CLI::RuntimeError(status);
  });
}

void add_diff(CLI::App& topology) {
  CLI::App* command =
      topology.add_subcommand("diff", "Tell which share of the keys moves, from whom to whom");
  const auto options = std::make_shared<DiffOptions>();
  command->add_option("A", options->from, "The spec before")->required();
  command->add_option("B", options->to, "The spec after")->required();
  command->add_flag("--json", options->json, "One JSON object");
  command->footer(
      "Examples:\n  ringshift topology diff four.yaml five.yaml\n  ringshift topology diff --json four.yaml "
      "five.yaml");
  command->callback([options] {
    if (const int status = run_diff(*options); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace

void add_topology_local(CLI::App& topology) {
  add_validate(topology);
  add_diff(topology);
}

}  // namespace ringshift::cli
