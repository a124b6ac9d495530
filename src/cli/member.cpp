// ringshift member: a change of the members in one word. Reads the spec in force, edits it, and starts the
// resize as `resize start` does, with the same plan, question and flags.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/cli.h"
#include "cli/ending.h"
#include "cli/member_policy.h"
#include "cli/plan_verbs.h"
#include "cli/resize_start.h"

namespace ringshift::cli {
namespace {

struct MemberChange {
  StartFlags flags;
  std::vector<std::string> words;
  std::optional<double> weight;
  std::string zone, host, label;
};

bool has_equals(const std::string& word) { return word.find('=') != std::string::npos; }

plan::Edit parse_or_end(const std::string& verb, std::vector<std::string> words) {
  words.insert(words.begin(), verb);
  const Result<PlanWords> parsed = parse_plan_words(words);
  if (!parsed) end_command(kBadUsage, parsed.error().message);
  return *parsed->edit;
}

plan::Edit edit_to_add(const MemberChange& change) {
  std::vector<std::string> words = change.words;
  // "ID ADDRESS" is one member; its address may be a path with '=' in it.
  if (words.size() == 2 && !has_equals(words[0])) words = {words[0] + "=" + words[1]};
  plan::Edit edit = parse_or_end("add", std::move(words));
  for (topology::Member& member : edit.add) {
    if (change.weight) member.weight = *change.weight;
    if (!change.zone.empty()) member.zone = change.zone;
    if (!change.host.empty()) member.host = change.host;
    if (!change.label.empty()) member.label = change.label;
  }
  return edit;
}

plan::Edit edit_of_weights(const MemberChange& change) {
  std::vector<std::string> words = change.words;
  if (words.size() == 2 && !has_equals(words[0])) words = {words[0] + "=" + words[1]};
  return parse_or_end("weight", std::move(words));
}

void run_change(const MemberChange& change, plan::Edit edit, bool retire) {
  edit.retire = retire;
  start_resize(change.flags, [&](const topology::Spec& in_force) { return plan::edit(in_force, edit); });
}

CLI::App* add_verb(CLI::App& app, const std::shared_ptr<MemberChange>& change, const char* name,
                   const char* what, const char* words, const char* footer) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("MEMBER", change->words, words)->required()->type_name("");
  change->flags.add_to(*command, /*cluster_required=*/true);
  command->footer(footer);
  return command;
}

}  // namespace

void add_member(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("member", "Add, remove, drain or reweigh members while the cluster serves");
  command->require_subcommand(1);
  command->footer(
      "Each edits the spec in force and starts a resize to it: shows the plan and asks, as 'resize start' "
      "does.\n"
      "'candidates', 'admit' and 'policy' are about instances that register themselves (ringshift agent).\n"
      "Examples:\n"
      "  ringshift member add cache-5 10.0.0.5:6379 --cluster cache\n"
      "  ringshift member drain cache-2 --cluster cache");

  auto change = std::make_shared<MemberChange>();
  CLI::App* one =
      add_verb(*command, change, "add", "New members, which take their share of the keys",
               "ID ADDRESS of one, or ID=ADDRESS[,weight=W][,zone=Z][,host=H][,label=L] of several",
               "Examples:\n"
               "  ringshift member add cache-5 10.0.0.5:6379 --weight 2 --zone b --cluster cache\n"
               "  ringshift member add cache-5=10.0.0.5:6379 cache-6=10.0.0.6:6379,zone=b --cluster cache");
  one->add_option("--weight", change->weight, "Its weight [1]")->check(CLI::PositiveNumber);
  one->add_option("--zone", change->zone, "Its zone");
  one->add_option("--host", change->host, "The machine it runs on");
  one->add_option("--label", change->label, "The name that another program's placement hashes");
  one->callback([change] {
    plan::Edit edit = edit_to_add(*change);
    std::vector<std::string> ids;
    for (const topology::Member& member : edit.add) ids.push_back(member.id);
    mark_drained(change->flags, std::move(ids), false);
    run_change(*change, std::move(edit), false);
  });

  change = std::make_shared<MemberChange>();
  add_verb(*command, change, "remove",
           "Members leave for good: their keys go to the others, their ids never return", "Ids of members",
           "The members must be up: their keys are moved off them. Their ids are put on the spec's 'retired' "
           "list; a\n"
           "member that shall come back is taken out by 'member drain'.\n"
           "Examples:\n"
           "  ringshift member remove cache-2 --cluster cache\n"
           "  ringshift member remove cache-2 cache-3 --soak 5m --yes --wait --cluster cache")
      ->callback([change] { run_change(*change, parse_or_end("remove", change->words), true); });

  change = std::make_shared<MemberChange>();
  add_verb(
      *command, change, "drain", "Members leave for now: empty when it is over, and free to be added again",
      "Ids of members",
      "As 'member remove', but the ids are not retired: for maintenance of a server. When the resize is "
      "finished\n"
      "nothing of the cluster is left on it; 'member add' with the same id brings it back. Until then it "
      "is marked\n"
      "in the registry: no policy admits it, whatever its agent says, and its agent shows it as draining.\n"
      "Examples:\n"
      "  ringshift member drain cache-2 --cluster cache\n"
      "  ringshift member drain cache-2 --yes --wait --cluster cache && systemctl stop redis")
      ->callback([change] {
        const plan::Edit edit = parse_or_end("remove", change->words);
        mark_drained(change->flags, edit.remove, true);
        run_change(*change, edit, false);
      });

  change = std::make_shared<MemberChange>();
  add_verb(*command, change, "weight", "More or fewer keys for members", "ID W of one, or ID=W of several",
           "Examples:\n"
           "  ringshift member weight cache-2 1.5 --cluster cache\n"
           "  ringshift member weight cache-1=2 cache-2=0.5 --dry-run --cluster cache")
      ->callback([change] { run_change(*change, edit_of_weights(*change), false); });

  add_member_policy(*command);
}

}  // namespace ringshift::cli
