// `ringshift vectors`: recorded answers of other programs against ours.
#include "plan/vectors/vectors.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/cli.h"
#include "cli/spec_file.h"

namespace ringshift::cli {
namespace {

using nlohmann::ordered_json;
namespace vectors = plan::vectors;

struct VectorsOptions {
  std::vector<std::string> files;
  bool json = false;
  bool record = false;
  bool strict = false;
};

// Files named in a recording are beside it, and nowhere else.
vectors::Sibling beside(const std::string& file) {
  const auto slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : file.substr(0, slash + 1);
  return [folder](const std::string& name) -> Result<std::string> {
    if (name.empty() || name.find('/') != std::string::npos) {
      return fail(ErrorKind::invalid,
                  fmt::format("'{:.60}' is no name of a file beside the recording", name));
    }
    return read_text(folder + name);
  };
}

bool matches(const vectors::Case& one) {
  return one.asked == one.matched && (one.problem.empty() || one.not_computed != 0);
}

void print_case(const std::string& file, const vectors::Case& one, bool as_json) {
  const bool good = matches(one);
  if (as_json) {
    const ordered_json line = {
        {"file", file},           {"case", one.name}, {"asked", one.asked},
        {"matched", one.matched}, {"ok", good},       {"not_computed", one.not_computed},
        {"problem", one.problem}};
    fmt::print("{}\n", line.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    return;
  }
  if (one.not_computed != 0) {
    fmt::print("{}: {}: NOT COMPUTED, {} recorded figures: {}\n", file, one.name, one.not_computed,
               one.problem);
    return;
  }
  fmt::print("{}: {}: {} {} of {}{}{}\n", file, one.name, good ? "ok" : "FAILED", one.matched, one.asked,
             one.problem.empty() ? "" : ": ", one.problem);
}

// The file with our answers in the place of the recorded ones.
Result<std::string> recorded_by_us(const std::string& content, const vectors::File& checked) {
  ordered_json document = ordered_json::parse(content, nullptr, false);
  if (document.is_discarded()) return fail(ErrorKind::invalid, "not JSON");
  document["recorded_by"] = "ringshift";
  for (const vectors::Case& one : checked.cases) {
    for (const auto& [pointer, json] : one.answers) {
      ordered_json answer = ordered_json::parse(json, nullptr, false);
      const ordered_json::json_pointer place(pointer);
      if (!answer.is_discarded() && document.contains(place)) document[place] = std::move(answer);
    }
  }
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace);
}

struct Total {
  std::uint64_t asked = 0, matched = 0, not_computed = 0;
  bool good = true;
};

void run_file(const std::string& file, const VectorsOptions& options, Total& total) {
  const Result<std::string> content = read_text(file);
  const auto checked = content ? vectors::check(*content, file, beside(file))
                               : Result<vectors::File>(std::unexpected(content.error()));
  if (!checked) {
    // A folder's own description may stand among its recordings.
    if (content && file.ends_with(".md")) {
      if (!options.record) fmt::print("{}: no recorded answers: a text, skipped\n", file);
      return;
    }
    report(checked.error().message);
    total.good = false;
    return;
  }
  if (options.record) {
    const auto out = recorded_by_us(*content, *checked);
    if (out) fmt::print("{}\n", *out);
    if (!out) report(fmt::format("{}: {}", file, out.error().message));
    total.good = total.good && out.has_value();
    return;
  }
  if (!checked->recorded) {
    if (options.json) {
      fmt::print("{}\n", ordered_json{{"file", file}, {"recorded", false}, {"note", checked->note}}.dump());
    } else {
      fmt::print("{}: no recorded answers: {}\n", file, checked->note);
    }
  }
  for (const vectors::Case& one : checked->cases) {
    total.asked += one.asked;
    total.matched += one.matched;
    total.not_computed += one.not_computed;
    total.good = total.good && matches(one);
    print_case(file, one, options.json);
  }
}

int run_vectors(const VectorsOptions& options) {
  Total total;
  for (const std::string& file : options.files) run_file(file, options, total);
  if (options.record) return total.good ? kDone : kFailed;
  if (options.strict && total.not_computed != 0) total.good = false;
  if (options.json) {
    fmt::print("{}\n", ordered_json{{"matched", total.matched},
                                    {"total", total.asked},
                                    {"not_computed", total.not_computed},
                                    {"ok", total.good}}
                           .dump());
  } else {
    if (total.not_computed != 0) {
      fmt::print("{} recorded figures were not computed, and so not compared{}\n", total.not_computed,
                 options.strict ? "" : " (--strict makes that a failure)");
    }
    fmt::print("{} of {} assignments match\n", total.matched, total.asked);
  }
  return total.good ? kDone : kFailed;
}

}  // namespace

void add_vectors(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("vectors", "Check recorded answers of other clients and servers against ours");
  const auto options = std::make_shared<VectorsOptions>();
  command->add_option("FILE", options->files, "Recordings; the key set they name is beside them")->required();
  command->add_flag("--json", options->json, "One JSON object a case, then one with the total");
  command->add_flag("--record", options->record,
                    "Print each file again with our answers in it, to compare a client of your own with");
  command->add_flag("--strict", options->strict,
                    "Recorded figures of a program that we cannot compute are a failure, too");
  command->footer(
      "Examples:\n  ringshift vectors tests/vectors/*.json\n  ringshift vectors --json twemproxy.json\n  "
      "ringshift vectors --record twemproxy.json > ours.json");
  command->callback([options] {
    if (const int status = run_vectors(*options); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
