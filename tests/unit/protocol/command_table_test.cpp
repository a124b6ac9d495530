#include "protocol/resp/command_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>

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
    {"sinter", Handling::routed, "routed when it names one key"},
    {"mget", Handling::split_mget, "split"},
    {"mset", Handling::split_mset, "split"},
    {"unlink", Handling::split_count, "split"},
    {"object", Handling::container, "its subcommands have the keys"},
    {"rename", Handling::unsupported, "two keys"},
    {"blpop", Handling::unsupported, "blocks"},
    {"sort", Handling::unsupported, "movable keys: STORE, BY"},
    {"eval", Handling::unsupported, "script"},
    {"watch", Handling::unsupported, "transaction"},
    {"multi", Handling::unsupported, "transaction"},
    {"spublish", Handling::unsupported, "publish"},
    {"flushall", Handling::unsupported, "no key"},
    {"move", Handling::unsupported, "another database"},
    {"ping", Handling::local, "local"},
};

TEST(CommandTable, Policy) {
  for (const PolicyCase& c : kPolicy)
    EXPECT_EQ(command(c.name).handling, c.handling) << c.name << ": " << c.why;
  EXPECT_EQ(find_subcommand(command("object"), "ENCODING")->handling, Handling::routed);
  EXPECT_EQ(find_subcommand(command("object"), "help")->handling, Handling::unsupported);
  for (const Command& c : all_commands()) {
    if (c.handling == Handling::routed) {
      EXPECT_GT(c.first_key, 0) << c.name;
      EXPECT_NE(c.key_use, KeyUse::none) << c.name;
    }
  }
}

TEST(CommandTable, KnowsWhichCommandsOnlyRead) {
  EXPECT_EQ(command("hgetall").key_use, KeyUse::read);
  EXPECT_EQ(command("getex").key_use, KeyUse::write);
  EXPECT_EQ(command("pfcount").key_use, KeyUse::write)
      << "it is flagged readonly, and updates its cached count";
}

TEST(CommandTable, CountsKeys) {
  EXPECT_TRUE(command("get").has_one_key(2));
  EXPECT_TRUE(command("sinter").has_one_key(2));
  EXPECT_FALSE(command("sinter").has_one_key(3));
  EXPECT_TRUE(command("msetnx").has_one_key(3));
  EXPECT_FALSE(command("msetnx").has_one_key(5));
}

TEST(CommandTable, IsWhatARealServerSays) {
  const std::string program = std::string(RINGSHIFT_SOURCE_DIR) + "/scripts/generate-command-table";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(program.c_str(), "r"), pclose);
  ASSERT_NE(pipe, nullptr);
  std::string generated;
  std::array<char, 4096> block{};
  while (const std::size_t n = fread(block.data(), 1, block.size(), pipe.get()))
    generated.append(block.data(), n);
  std::ifstream file(std::string(RINGSHIFT_SOURCE_DIR) + "/src/protocol/resp/command_table.inc");
  const std::string committed((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(generated, committed)
      << "run scripts/generate-command-table > src/protocol/resp/command_table.inc";
}

}  // namespace
}  // namespace ringshift::protocol::resp
