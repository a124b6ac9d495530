// docs/commands.md is made from the command table. After a change of the table:
//   RINGSHIFT_UPDATE=1 build/debug/bin/unit_proxy --gtest_filter='CommandsDoc.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "protocol/resp/command_table.h"
#include "proxy/served.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::all_commands;
using protocol::resp::Command;
using protocol::resp::FanOut;
using protocol::resp::Handling;
using protocol::resp::KeyFinder;

std::string_view fan_out_text(FanOut how) {
  switch (how) {
    case FanOut::all_ok:
    case FanOut::same:
      return "all members";
    case FanOut::any_ok:
      return "all members, one is enough";
    case FanOut::merge_exists:
      return "all members, answers merged";
    case FanOut::any:
      return "any member";
    case FanOut::sum:
      return "all members, summed";
    case FanOut::concat:
      return "all members, one after the other";
    case FanOut::random:
      return "a member by chance";
    case FanOut::scan:
      return "all members, one cursor";
    case FanOut::flush:
      return "all members, if allowed";
    case FanOut::wait:
      return "all members, the least";
    case FanOut::none:
      break;
  }
  return "?";
}

std::string_view what(const Command& command) {
  switch (command.handling) {
    case Handling::routed:
    case Handling::names_database:
      return command.always_one_key ? "routed by its key" : "routed, keys on one member";
    case Handling::split_mget:
    case Handling::split_mset:
    case Handling::split_count:
      return "split, one command a member";
    case Handling::local:
      return "the proxy answers";
    case Handling::fan_out:
      return fan_out_text(command.fan_out);
    case Handling::transaction:
      return "transaction on one member";
    case Handling::blocking:
      return command.finder == KeyFinder::xread ? "routed, keys on one member; may wait"
                                                : "waits, keys on one member";
    case Handling::pubsub:
      return "publish and subscribe";
    case Handling::unsupported:
      return "refused";
    case Handling::container:
    case Handling::undecided:
      break;
  }
  return "?";
}

std::string row(const Command& command) {
  std::string name(command.name);
  std::ranges::replace(name, '|', ' ');
  std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
  std::string note(command.reason);
  if (command.handling != Handling::unsupported && !served(command))
    note = fmt::format("not yet ({}){}{}", why_not_served(command), note.empty() ? "" : "; then: ", note);
  return fmt::format("| `{}` | {} | {} |\n", name, what(command), note);
}

std::string document() {
  std::string text =
      "# Commands\n"
      "\n"
      "Every command of Redis 7.0.15 and what Ringshift's proxy does with it. Made from the command table\n"
      "(`src/protocol/resp/command_table_policy.h`) by `tests/unit/proxy/commands_doc_test.cpp`, which fails "
      "when this\n"
      "page is not current.\n"
      "\n"
      "- **routed**: goes to the member of its key as it came, and the member's answer comes back as it is. "
      "With keys of\n"
      "  several members it is refused, `-CROSSSLOT Keys in request don't hash to the same slot`, and "
      "nothing is\n"
      "  executed; a hash tag, `{user1}.cart {user1}.name`, keeps keys together.\n"
      "- **split**: cut into one command a member, and the answers put together.\n"
      "- **refused**: `-ERR command '...' is not supported by ringshift:` and the reason; the connection "
      "lives.\n"
      "- Between **MULTI and EXEC** the queue goes to one member as one block. So what the proxy answers is "
      "refused\n"
      "  there, but for `PING`, `ECHO` and `TIME`, which the member answers as well; and what concerns all "
      "members, or\n"
      "  subscriptions, but for `PUBLISH`. `QUIT` and `RESET` act at once, as in Redis.\n"
      "- What is wrong in itself gets the error that Redis gives.\n"
      "- `COMMAND` lists what is served, sorted by name. `COMMAND GETKEYS` differs where Redis is wrong "
      "about its own\n"
      "  commands: a consumer group named `STREAMS`, `PFMERGE` without sources, numbers of keys like `01`.\n"
      "\n"
      "| command | what is done | difference from one Redis, or why it is refused |\n"
      "|---|---|---|\n";
  for (const Command& command : all_commands())
    if (command.handling != Handling::container) text += row(command);
  return text;
}

TEST(CommandsDoc, IsCurrent) {
  const std::string path = std::string(RINGSHIFT_SOURCE_DIR) + "/docs/commands.md";
  const std::string expected = document();
  EXPECT_FALSE(expected.contains("| ? |"));
  if (std::getenv("RINGSHIFT_UPDATE") != nullptr) std::ofstream(path) << expected;
  std::ifstream file(path);
  const std::string committed((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(committed == expected) << "RINGSHIFT_UPDATE=1 build/debug/bin/unit_proxy "
                                        "--gtest_filter='CommandsDoc.*' writes docs/commands.md anew";
}

}  // namespace
}  // namespace ringshift::proxy
