// `ringshift compare`: every placement side by side, for one change of members.
#include "cli/compare.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <optional>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/spec_file.h"
#include "topology/validate.h"

namespace ringshift::cli {
namespace {

using compare::Report;
using plan::compare::Change;
using plan::compare::Family;
using plan::compare::Variant;

struct CompareOptions {
  std::optional<std::size_t> from, to;
  std::string spec, to_spec;
  plan::compare::Edits edits;
  std::vector<std::string> placements;
  compare::KeySource keys;
  bool skew = false, articles = false, json = false, csv = false;
  std::string html;
};

// What to compare; a spec's own placement comes first.
struct Plan {
  Change change;
  std::string title;
  std::vector<Variant> variants;
};

// On a terminal, a line on standard error that says how far it is, once it takes longer than two seconds; and
// an ear for Ctrl-C, where somebody must clean up (else the signal may end the process at once).
class Watch {
 public:
  explicit Watch(Interrupt* interrupt = nullptr)
      : interrupt_(interrupt), terminal_(::isatty(STDERR_FILENO) == 1) {}
  ~Watch() { clear(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // False when somebody wants it to end.
  [[nodiscard]] bool at(const std::string& what, double fraction) {
    if (interrupt_ != nullptr && interrupt_->requested()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now - begin_ < kPatience || now < next_) return true;
    constexpr std::chrono::milliseconds kRedraw{200};
    next_ = now + kRedraw;
    fmt::print(stderr, "\r\033[K{:3.0f} %  {}", 100 * fraction, what);
    std::fflush(stderr);
    drawn_ = true;
    return true;
  }
  void clear() {
    if (drawn_) std::fputs("\r\033[K", stderr);
    drawn_ = false;
  }

 private:
  static constexpr std::chrono::seconds kPatience{2};
  Interrupt* interrupt_;
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), next_{};
};

std::string count_of(std::size_t members) {
  return fmt::format("{} member{}", members, members == 1 ? "" : "s");
}

std::string title_of(const CompareOptions& options, const Change& change) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  for (const std::string& id : options.edits.remove) add("without " + id);
  for (const std::string& edit : options.edits.reweight) add("weight " + edit);
  for (const std::string& edit : options.edits.add) add("with " + edit.substr(0, edit.find('=')));
  const std::string sizes =
      change.before.size() == change.after.size()
          ? count_of(change.after.size())
          : fmt::format("{} -> {}", change.before.size(), count_of(change.after.size()));
  return out.empty() ? sizes : fmt::format("{} ({})", sizes, out);
}

Result<Plan> from_specs(const CompareOptions& options) {
  const Result<topology::Spec> spec = read_spec(options.spec);
  if (!spec) return std::unexpected(spec.error());
  Plan out;
  out.change.before = spec->members;
  if (!options.to_spec.empty()) {
    Result<topology::Spec> next = read_spec(options.to_spec);
    if (!next) return std::unexpected(next.error());
    out.change.after = std::move(next->members);
  } else {
    auto edited = plan::compare::apply(options.edits, spec->members);
    if (!edited) return std::unexpected(edited.error());
    out.change.after = std::move(*edited);
  }
  out.variants = plan::compare::default_variants(spec->placement.hash_tag);
  out.variants.insert(out.variants.begin(), Variant{"spec", spec->placement, Family::yours});
  return out;
}

Result<Plan> made_up(const CompareOptions& options) {
  constexpr std::size_t kFrom = 4;
  Plan out;
  out.change.before = plan::compare::synthetic_members(options.from.value_or(kFrom));
  if (options.edits.empty()) {
    out.change.after =
        plan::compare::synthetic_members(options.to.value_or(options.from.value_or(kFrom) + 1));
  } else {
    auto edited = plan::compare::apply(options.edits, out.change.before);
    if (!edited) return std::unexpected(edited.error());
    out.change.after = std::move(*edited);
  }
  out.variants = plan::compare::default_variants();
  return out;
}

Result<Plan> plan_of(const CompareOptions& options) {
  Result<Plan> out = options.spec.empty() ? made_up(options) : from_specs(options);
  if (!out) return out;
  if (out->change.after.empty()) return fail(ErrorKind::invalid, "no member is left after the change");
  // Whatever is wrong with the members is wrong for every placement: said once, and not in each row.
  for (const auto* members : {&out->change.before, &out->change.after}) {
    topology::Spec spec = plan::compare::first_spec(Variant{"rendezvous", {}, Family::ours}, *members);
    spec.placement.algorithm = "rendezvous";
    if (const auto problem = topology::check_spec(spec))
      return fail(ErrorKind::invalid, fmt::format("{}: {}", problem->path, problem->message));
  }
  out->title = title_of(options, out->change);
  if (options.placements.empty()) return out;
  auto chosen = plan::compare::choose(out->variants, options.placements);
  if (!chosen) return std::unexpected(chosen.error());
  out->variants = std::move(*chosen);
  return out;
}

Result<Report> run_all(const CompareOptions& options, Plan plan, const compare::Keys& keys, Watch& watch) {
  Report report;
  report.title = plan.title;
  report.keys_source = keys.source;
  report.key_count = keys.set.size();
  const auto total = static_cast<double>(plan.variants.size());
  for (std::size_t i = 0; i < plan.variants.size(); ++i) {
    const Variant& variant = plan.variants[i];
    auto row = plan::compare::run(variant, plan.change, keys.set, [&](double fraction) {
      return watch.at(variant.name, (static_cast<double>(i) + fraction) / total);
    });
    if (!row) return std::unexpected(row.error());
    if (row->refused.empty()) report.minimum = row->minimum;
    // The first that can be made says how the prefixes fall.
    if (row->refused.empty() && report.skew_placement.empty() && (options.skew || options.keys.real())) {
      const auto placement = plan::compare::placement_after(variant, plan.change);
      if (!placement) return std::unexpected(placement.error());
      report.skew_placement = variant.name;
      report.has_skew = true;
      report.skew = plan::compare::heaviest_prefixes(keys.set, *placement, plan.change.after);
    }
    report.rows.push_back(std::move(*row));
  }
  if (options.json || !options.html.empty()) {
    auto curve = plan::compare::balance_curve(plan.change.after, keys.set, [&](double fraction) {
      return watch.at("ring by its points", fraction);
    });
    if (!curve) return std::unexpected(curve.error());
    report.curve = std::move(*curve);
  }
  report.change = std::move(plan.change);
  return report;
}

int give_up(const Error& error) {
  report(error.message);
  return kFailed;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!text.ends_with('\n')) std::fputc('\n', stdout);
  std::fflush(stdout);
}

int run_articles(const CompareOptions& options) {
  Interrupt interrupt;  // The redis-server and its directory are to be gone afterwards.
  Watch watch(&interrupt);
  compare::ArticleReport report;
  auto figures = plan::compare::article_figures(
      [&](double fraction) { return watch.at("the articles' figures", fraction); });
  if (!figures) return give_up(figures.error());
  report.figures = std::move(*figures);
  report.members = options.from.value_or(5);
  const auto keys = plan::compare::synthetic_keys(10'000);
  if (!watch.at("look-ups", 0.7)) return give_up({ErrorKind::overloaded, "interrupted"});
  report.lookups = plan::compare::lookup_costs(report.members, keys);
  report.hashes = plan::compare::hash_costs(keys);
  if (!watch.at("a ring in Redis", 0.9)) return give_up({ErrorKind::overloaded, "interrupted"});
  auto sets = compare::sorted_set_costs(report.members, keys);
  if (sets) {
    report.sorted_sets = std::move(*sets);
  } else if (sets.error().kind == ErrorKind::not_found) {
    report.skipped = sets.error().message;
  } else {
    return give_up(sets.error());
  }
  watch.clear();
  print(options.json ? compare::json(report) : compare::table(report));
  return kDone;
}

int run_compare(const CompareOptions& options) {
  if (options.articles) return run_articles(options);
  Result<Plan> plan = plan_of(options);
  if (!plan) return give_up(plan.error());
  const Result<compare::Keys> keys = compare::load_keys(options.keys);
  if (!keys) return give_up(keys.error());
  Watch watch;
  const Result<Report> report = run_all(options, std::move(*plan), *keys, watch);
  watch.clear();
  if (!report) return give_up(report.error());
  if (!options.html.empty()) {
    const Interrupt whole_file;  // Until now a signal ended it at once, and nothing was written.
    if (const Status written = compare::write_whole(options.html, compare::html(*report)); !written)
      return give_up(written.error());
  }
  print(options.json  ? compare::json(*report)
        : options.csv ? compare::csv(*report)
                      : compare::table(*report));
  return kDone;
}

void add_change(CLI::App& command, CompareOptions& options) {
  constexpr std::size_t kMost = plan::compare::kMaxSyntheticMembers;
  auto* from =
      command.add_option("--from", options.from, "Members before, made up: cache-1 to cache-N (default 4)")
          ->type_name("N")
          ->check(CLI::Range(std::size_t{1}, kMost));
  auto* to = command.add_option("--to", options.to, "Members after (default: one more)")
                 ->type_name("M")
                 ->check(CLI::Range(std::size_t{1}, kMost));
  auto* spec =
      command.add_option("--spec", options.spec, "The members before, and a placement to compare, from FILE")
          ->type_name("FILE")
          ->excludes(from);
  spec->excludes(to);
  auto* to_spec = command
                      .add_option("--to-spec", options.to_spec,
                                  "The members after, from FILE (its placement is not used)")
                      ->type_name("FILE")
                      ->needs(spec);
  for (const auto& [name, list, type, text] :
       {std::tuple{"--add", &options.edits.add, "ID=ADDRESS", "A member more; may be repeated"},
        {"--remove", &options.edits.remove, "ID", "A member less; may be repeated"},
        {"--reweight", &options.edits.reweight, "ID=WEIGHT", "A member's new weight; may be repeated"}}) {
    auto* option = command.add_option(name, *list, text)->type_name(type)->allow_extra_args(false);
    option->excludes(to);
    option->excludes(to_spec);
  }
}

void add_keys(CLI::App& command, CompareOptions& options) {
  constexpr auto kMost = std::uint64_t{compare::KeySet::kMaxKeys};
  auto* keys = command.add_option("--keys", options.keys.count, "Keys, made up")
                   ->check(CLI::Range(std::uint64_t{1}, kMost))
                   ->capture_default_str();
  auto* file = command
                   .add_option("--keys-file", options.keys.file,
                               "Real keys from FILE, one a line; - is standard input")
                   ->type_name("FILE")
                   ->excludes(keys);
  auto* redis = command
                    .add_option("--redis", options.keys.redis,
                                "Real keys of a server, by SCAN: redis://[user:password@]host[:port][/db]")
                    ->type_name("URL")
                    ->excludes(keys);
  redis->excludes(file);
  command.add_option("--sample", options.keys.sample, "At most so many of the server's keys")
      ->needs(redis)
      ->check(CLI::Range(std::uint64_t{1}, kMost))
      ->capture_default_str();
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "compare", "All placements side by side: what a change moves, how even the load is, what it costs");
  const auto options = std::make_shared<CompareOptions>();
  add_change(*command, *options);
  command
      ->add_option("--placements", options->placements,
                   "Only these, by name or group: ours, peers, articles (default: all)")
      ->type_name("A,B,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_keys(*command, *options);
  command->add_flag(
      "--skew", options->skew,
      "Show the heaviest key prefixes too (always shown for real keys), by the first placement");
  auto* json = command->add_flag("--json", options->json, "One JSON object");
  auto* csv =
      command->add_flag("--csv", options->csv, "A line a placement, separated by commas")->excludes(json);
  auto* html =
      command->add_option("--html", options->html, "Write a page with charts to FILE too")->type_name("FILE");
  auto* articles = command->add_flag("--articles", options->articles,
                                     "What published articles claim, beside what is true; on --from members");
  articles->excludes(csv);
  articles->excludes(html);
  command->footer(
      "Examples:\n"
      "  ringshift compare --from 4 --to 5\n"
      "  ringshift compare --from 5 --remove cache-2 --placements ring,jump,memento\n"
      "  ringshift compare --spec four.yaml --to-spec five.yaml --redis redis://127.0.0.1:6379\n"
      "  ringshift compare --spec four.yaml --reweight cache-1=2 --keys-file keys.txt --html compare.html\n"
      "  ringshift compare --articles");
  command->callback([options] {
    if (const int status = run_compare(*options); status != kDone) throw CLI::RuntimeError(status);
  });
}

}  // namespace ringshift::cli
