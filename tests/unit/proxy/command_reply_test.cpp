// COMMAND through the proxy, beside a real server: byte for byte, but that what is not served is not there
// and that the server's order of names is chance.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cluster.h"
#include "protocol/resp/command_table.h"
#include "proxy/served.h"

namespace ringshift::proxy {
namespace {

using protocol::resp::all_commands;
using protocol::resp::Command;
using protocol::resp::Value;
using Arguments = std::vector<std::string>;

class BothCommands : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (Client* client : {&direct_, &proxied_}) client->ask({"HELLO", GetParam()});
  }
  static std::string ask(Client& client, const Arguments& arguments) {
    const std::vector<std::string_view> views(arguments.begin(), arguments.end());
    std::string bytes;
    protocol::resp::append_command(bytes, views);
    EXPECT_TRUE(client.send(bytes));
    return client.reply();
  }
  std::string direct(const Arguments& arguments) { return ask(direct_, arguments); }
  std::string proxied(const Arguments& arguments) { return ask(proxied_, arguments); }
  void same(const Arguments& arguments) {
    EXPECT_EQ(proxied(arguments), direct(arguments)) << testing::PrintToString(arguments);
  }

 private:
  RedisProcess server_;
  Cluster cluster_{1};
  Client direct_{server_.port()}, proxied_{cluster_.client()};
};

Value value_of(const std::string& reply) {
  auto decoded = protocol::resp::decode(reply);
  if (!decoded || !*decoded) throw std::runtime_error("no reply: " + reply.substr(0, 100));
  return std::move((*decoded)->value);
}

bool is_served(std::string_view name) {
  const std::size_t bar = name.find('|');
  const Command* command = protocol::resp::find_command(name.substr(0, bar));
  if (command != nullptr && bar != std::string_view::npos)
    command = protocol::resp::find_subcommand(*command, name.substr(bar + 1));
  return command != nullptr && served(*command);
}

// Everything in a value, the kinds of its parts included.
std::string text_of(const Value& value) {
  std::string text = fmt::format("{}'{}'{}(", static_cast<int>(value.type), value.text, value.integer);
  for (const Value& item : value.items) text += text_of(item) + " ";
  return text + ")";
}

// A container's entry of COMMAND INFO or DOCS as the proxy is to have it: unserved subcommands go, the others
// are sorted.
void keep_served_entries(Value& info) {
  std::vector<Value>& subcommands = info.items[9].items;
  std::erase_if(subcommands, [](const Value& entry) { return !is_served(entry.items[0].text); });
  std::ranges::sort(subcommands, {}, [](const Value& entry) { return entry.items[0].text; });
}

void keep_served_docs(Value& docs) {
  for (std::size_t i = 0; i < docs.items.size(); i += 2) {
    if (docs.items[i].text != "subcommands") continue;
    std::vector<std::pair<Value, Value>> pairs;
    const std::vector<Value>& items = docs.items[i + 1].items;
    for (std::size_t j = 0; j < items.size(); j += 2)
      if (is_served(items[j].text)) pairs.emplace_back(items[j], items[j + 1]);
    std::ranges::sort(pairs, {}, [](const auto& pair) { return pair.first.text; });
    docs.items[i + 1].items.clear();
    for (auto& [name, entry] : pairs)
      docs.items[i + 1].items.insert(docs.items[i + 1].items.end(), {name, entry});
  }
}

TEST_P(BothCommands, InfoOfEachIsTheServers) {
  int compared = 0;
  for (const Command& command : all_commands()) {
    if (!served(command)) continue;
    const Arguments question{"COMMAND", "INFO", std::string(command.name)};
    ++compared;
    if (command.subcommands == 0) {
      same(question);
      continue;
    }
    Value expected = value_of(direct(question));
    keep_served_entries(expected.items[0]);
    EXPECT_EQ(text_of(value_of(proxied(question))), text_of(expected)) << command.name;
  }
  EXPECT_GT(compared, 200);
  EXPECT_EQ(proxied({"COMMAND", "INFO", "monitor", "nosuch", "object|nosuch", "debug"}),
            direct({"COMMAND", "INFO", "nosuch1", "nosuch2", "get|nosuch", "nosuch4"}));
}

TEST_P(BothCommands, DocsOfEachAreTheServers) {
  int compared = 0;
  for (const Command& command : all_commands()) {
    if (!served(command)) continue;
    const Arguments question{"COMMAND", "DOCS", std::string(command.name)};
    ++compared;
    if (command.subcommands == 0) {
      same(question);
      continue;
    }
    Value expected = value_of(direct(question));
    keep_served_docs(expected.items[1]);
    EXPECT_EQ(text_of(value_of(proxied(question))), text_of(expected)) << command.name;
  }
  EXPECT_GT(compared, 200);
  same({"COMMAND", "DOCS", "GET", "nosuch", "Set"});
}

TEST_P(BothCommands, AllOfThemAtOnce) {
  const Value entries = value_of(proxied({"COMMAND"}));
  EXPECT_EQ(text_of(value_of(proxied({"COMMAND", "INFO"}))), text_of(entries));
  EXPECT_EQ(proxied({"COMMAND", "COUNT"}), fmt::format(":{}\r\n", entries.items.size()));
  std::set<std::string> names;
  for (const Value& entry : entries.items) names.insert(entry.items[0].text);
  EXPECT_EQ(names.size(), entries.items.size());
  for (const Value& entry : value_of(direct({"COMMAND"})).items)
    EXPECT_EQ(names.contains(entry.items[0].text), is_served(entry.items[0].text)) << entry.items[0].text;
  const Value docs = value_of(proxied({"COMMAND", "DOCS"}));
  EXPECT_EQ(docs.items.size(), 2 * names.size());
}

TEST_P(BothCommands, ListIsTheServersSorted) {
  const std::vector<Arguments> filters = {{},
                                          {"FILTERBY", "ACLCAT", "hash"},
                                          {"filterby", "aclcat", "READ"},
                                          {"FILTERBY", "ACLCAT", "nosuch"},
                                          {"FILTERBY", "ACLCAT", "@read"},
                                          {"FILTERBY", "MODULE", "x"},
                                          {"FILTERBY", "PATTERN", "*"},
                                          {"FILTERBY", "PATTERN", "x*d*"},
                                          {"FILTERBY", "PATTERN", "X[A-c]*"},
                                          {"FILTERBY", "PATTERN", "[^a-v]*[\\e]"},
                                          {"FILTERBY", "PATTERN", "?et"},
                                          {"FILTERBY", "PATTERN", "g\\et*"},
                                          {"FILTERBY", "PATTERN", "[g-"},
                                          {"FILTERBY", "PATTERN", "*|h*"},
                                          {"FILTERBY", "PATTERN", ""}};
  for (const Arguments& filter : filters) {
    Arguments question{"COMMAND", "LIST"};
    question.insert(question.end(), filter.begin(), filter.end());
    std::vector<std::string> expected;
    for (const Value& name : value_of(direct(question)).items)
      if (is_served(name.text)) expected.push_back(name.text);
    std::vector<std::string> got;
    for (const Value& name : value_of(proxied(question)).items) got.push_back(name.text);
    std::ranges::sort(expected);
    std::ranges::sort(got);
    EXPECT_EQ(got, expected) << testing::PrintToString(filter);
  }
}

TEST_P(BothCommands, SmallAnswersAndErrorsAreTheServers) {
  for (const Arguments& question :
       std::vector<Arguments>{{"COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"},
                              {"COMMAND", "GETKEYSANDFLAGS", "SET", "a", "1", "GET"},
                              {"COMMAND", "GETKEYSANDFLAGS", "SORT", "a", "BY", "w_*", "STORE", "d"},
                              {"COMMAND", "GETKEYSANDFLAGS", "XREAD", "STREAMS", "a", "b", "0", "0"},
                              {"COMMAND", "GETKEYS", "XREAD", "STREAMS", "a", "b", "0"},
                              {"COMMAND", "GETKEYS", "EVAL", "return 1", "0"},
                              {"COMMAND", "GETKEYS", "EVAL", "return 1", "5", "a"},
                              {"COMMAND", "GETKEYS", "ZUNIONSTORE", "d", "5", "a"},
                              {"COMMAND", "GETKEYS", "OBJECT", "ENCODING", "k"},
                              {"COMMAND", "GETKEYS", "object", "nosuch"},
                              {"COMMAND", "GETKEYS", "nosuch", "k"},
                              {"COMMAND", "GETKEYS", "GET", "a", "b"},
                              {"COMMAND", "GETKEYS", "PING", "a"},
                              {"COMMAND", "GETKEYS"},
                              {"COMMAND", "GETKEYS", "GET"},
                              {"COMMAND", "COUNT", "x"},
                              {"COMMAND", "LIST", "x"},
                              {"COMMAND", "LIST", "FILTERBY"},
                              {"COMMAND", "LIST", "FILTERBY", "NOSUCH", "x"},
                              {"COMMAND", "nosuch"},
                              {"COMMAND", "HELP"},
                              {"COMMAND", "HELP", "x"},
                              {"OBJECT", "HELP"},
                              {"XGROUP", "HELP"},
                              {"CLIENT", "HELP"},
                              {"MEMORY", "help"},
                              {"CLUSTER", "INFO"},
                              {"CLUSTER", "HELP"},
                              {"CLUSTER", "KEYSLOT"},
                              {"READONLY"},
                              {"ASKING"},
                              {"ROLE"}}) {
    same(question);
  }
}

INSTANTIATE_TEST_SUITE_P(Resp, BothCommands, testing::Values("2", "3"));

}  // namespace
}  // namespace ringshift::proxy
