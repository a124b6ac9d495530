#include "protocol/resp/command_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "protocol/resp/value.h"

namespace ringshift::protocol::resp {
namespace {

const Command& command(std::string_view name) {
  const Command* found = find_command(name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

std::string upper_case(std::string_view name) {
  std::string upper;
  for (const char c : name) upper += static_cast<char>(std::toupper(c));
  return upper;
}

TEST(CommandTable, FindsEveryNameInAnyCase) {
  std::size_t commands = 0;
  for (const Command& c : all_commands()) {
    if (c.name.contains('|')) continue;
    ++commands;
    const std::string upper = upper_case(c.name);
    EXPECT_EQ(find_command(c.name), &c);
    EXPECT_EQ(find_command(upper), &c);
    EXPECT_EQ(find_command(std::string(c.name) + "x"), find_command(upper + "X"));
    for (std::size_t i = 1; i <= c.subcommands; ++i) {
      const Command& sub = *(&c + i);
      EXPECT_EQ(find_subcommand(c, upper_case(sub.name.substr(c.name.size() + 1))), &sub);
    }
  }
  EXPECT_GT(commands, 200U);
}

TEST(CommandTable, DoesNotFindWhatIsNotThere) {
  for (const std::string_view name :
       {"", "g", "getx", "object|encoding", "sort\x7fro", "zrevrangebyscorf", "constructor"}) {
    EXPECT_EQ(find_command(name), nullptr) << name;
  }
  EXPECT_EQ(find_command(std::string(100000, 'a')), nullptr);
  EXPECT_EQ(find_subcommand(command("object"), "nothing"), nullptr);
}

struct PolicyCase {
  std::string_view name;
  Handling handling;
  std::string_view why;
};

constexpr PolicyCase kPolicy[] = {
    {"get", Handling::routed, "one key"},
    {"set", Handling::routed, "one key"},
    {"hset", Handling::routed, "one key"},
    {"sinter", Handling::routed, "its keys must be on one member"},
    {"rename", Handling::routed, "two keys"},
    {"sort", Handling::routed, "movable keys: STORE, BY"},
    {"eval", Handling::routed, "movable keys"},
    {"msetnx", Handling::routed, "all or nothing, so never split"},
    {"mget", Handling::split_mget, "split"},
    {"mset", Handling::split_mset, "split"},
    {"unlink", Handling::split_count, "split"},
    {"object", Handling::container, "its subcommands have the keys"},
    {"client", Handling::container, "not all of its subcommands are the proxy's"},
    {"blpop", Handling::blocking, "blocks"},
    {"xread", Handling::blocking, "may block"},
    {"watch", Handling::transaction, "transaction"},
    {"multi", Handling::transaction, "transaction"},
    {"spublish", Handling::pubsub, "its channel is no key"},
    {"publish", Handling::pubsub, "publish"},
    {"flushall", Handling::fan_out, "every member"},
    {"scan", Handling::fan_out, "every member"},
    {"move", Handling::names_database, "routed once its database is known to be one"},
    {"copy", Handling::names_database, "the same with DB"},
    {"swapdb", Handling::unsupported, "not at one instant on all members"},
    {"migrate", Handling::unsupported, "has keys, but moves them away"},
    {"pfdebug", Handling::unsupported, "has a key, but administers"},
    {"ping", Handling::local, "local"},
};

TEST(CommandTable, Policy) {
  for (const PolicyCase& c : kPolicy)
    EXPECT_EQ(command(c.name).handling, c.handling) << c.name << ": " << c.why;
  EXPECT_EQ(find_subcommand(command("object"), "ENCODING")->handling, Handling::routed);
  EXPECT_EQ(find_subcommand(command("object"), "help")->local, LocalCommand::help);
  EXPECT_EQ(find_subcommand(command("cluster"), "help")->local, LocalCommand::cluster)
      << "Redis refuses it too";
  EXPECT_EQ(find_subcommand(command("script"), "exists")->fan_out, FanOut::merge_exists);
  EXPECT_EQ(find_subcommand(command("pubsub"), "numsub")->handling, Handling::pubsub);
  EXPECT_EQ(find_subcommand(command("client"), "SetInfo")->local, LocalCommand::client);
}

// As the static_assert in the table's source says it, and what hangs together besides.
TEST(CommandTable, EveryCommandIsDecided) {
  for (const Command& c : all_commands()) {
    EXPECT_NE(c.handling, Handling::undecided) << c.name;
    EXPECT_EQ(c.handling == Handling::local, c.local != LocalCommand::none) << c.name;
    EXPECT_EQ(c.handling == Handling::fan_out, c.fan_out != FanOut::none) << c.name;
    EXPECT_EQ(c.handling == Handling::container, c.subcommands > 0 && c.name != "command") << c.name;
    if (c.handling == Handling::unsupported || c.handling == Handling::fan_out) {
      EXPECT_FALSE(c.reason.empty()) << c.name;
    }
    if (c.handling == Handling::routed || c.handling == Handling::blocking) {
      EXPECT_NE(c.key_use, KeyUse::none) << c.name;
    }
    if (c.local == LocalCommand::help) {
      EXPECT_FALSE(help_lines(c.name.substr(0, c.name.find('|'))).empty()) << c.name;
    }
  }
}

TEST(CommandTable, KnowsWhichCommandsOnlyRead) {
  EXPECT_EQ(command("hgetall").key_use, KeyUse::read);
  EXPECT_EQ(command("getex").key_use, KeyUse::write);
  EXPECT_EQ(command("pfcount").key_use, KeyUse::write)
      << "it is flagged readonly, and updates its cached count";
  EXPECT_EQ(command("xreadgroup").key_use, KeyUse::write)
      << "its key specification says RO, but it changes the group";
}

TEST(CommandTable, CountsKeys) {
  EXPECT_TRUE(command("get").has_one_key(2));
  EXPECT_TRUE(command("sinter").has_one_key(2));
  EXPECT_FALSE(command("sinter").has_one_key(3));
  EXPECT_FALSE(command("sort").has_one_key(2)) << "it may have more: its first key only seems to be all";
  EXPECT_FALSE(command("eval").has_one_key(4));
  EXPECT_FALSE(command("rename").has_one_key(3));
  EXPECT_TRUE(command("msetnx").has_one_key(3));
  EXPECT_FALSE(command("msetnx").has_one_key(5));
}

TEST(CommandTable, DocumentationOfEachIsOneReply) {
  for (const Command& c : all_commands()) {
    for (const bool resp3 : {false, true}) {
      std::string reply = "before";
      append_docs(reply, c, resp3, 0);
      const auto decoded = decode(std::string_view(reply).substr(6));
      ASSERT_TRUE(decoded && *decoded) << c.name;
      EXPECT_EQ((*decoded)->size, reply.size() - 6) << c.name;
      EXPECT_EQ((*decoded)->value.items[0].text, "summary") << c.name;
    }
  }
}

// What the generator prints from a real server is what is committed.
void is_current(const std::string& option, const std::string& name) {
  const std::string program = std::string(RINGSHIFT_SOURCE_DIR) + "/scripts/generate-command-table " + option;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(program.c_str(), "r"), pclose);
  ASSERT_NE(pipe, nullptr);
  std::string generated;
  std::array<char, 4096> block{};
  while (const std::size_t n = fread(block.data(), 1, block.size(), pipe.get()))
    generated.append(block.data(), n);
  std::ifstream file(std::string(RINGSHIFT_SOURCE_DIR) + "/src/protocol/resp/" + name);
  const std::string committed((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(generated == committed)
      << "run scripts/generate-command-table " << option << " > src/protocol/resp/" << name;
}

TEST(CommandTable, IsWhatARealServerSays) { is_current("", "command_table.inc"); }
TEST(CommandTable, DocumentationIsWhatARealServerSays) { is_current("--docs", "command_table_docs.inc"); }

}  // namespace
}  // namespace ringshift::protocol::resp
