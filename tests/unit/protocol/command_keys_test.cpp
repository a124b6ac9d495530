// The key finder beside a real server: what it finds is what COMMAND GETKEYS and GETKEYSANDFLAGS say, what it
// calls malformed is an error there, and where the two differ the server refuses the command.
#include "protocol/resp/command_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "protocol/resp/value.h"
#include "tests/support/redis_process.h"
#include "tests/unit/proxy/client.h"

namespace ringshift::protocol::resp {
namespace {

using Kind = KeysResult::Kind;
using Words = std::vector<std::string_view>;
using proxy::Client;

const Command* command_of(const Words& words) {
  const Command* command = find_command(words[0]);
  if (command != nullptr && command->handling == Handling::container && words.size() > 1)
    command = find_subcommand(*command, words[1]);
  return command;
}

struct Found {
  KeysResult result;
  std::vector<KeyRef> keys;
};

Found find(const Words& words) {
  Found found;
  found.result = find_keys(*command_of(words), Arguments(std::span(words)), found.keys);
  return found;
}

std::string flags_text(std::uint16_t flags) {
  std::string text;
  for (std::size_t bit = 0; bit < key_flag_names().size(); ++bit)
    if ((flags >> bit & 1) != 0) text += " " + std::string(key_flag_names()[bit]);
  return text;
}

// "k1 RO access, k2 OW update".
std::string ours(const Words& words, const Found& found) {
  std::string text;
  for (const KeyRef& key : found.keys)
    text += fmt::format("{}{}, ", words[key.argument], flags_text(key.flags));
  return text;
}

class Server {
 public:
  Server() {
    client_.ask({"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 1 end)"});
    client_.ask({"FUNCTION", "LOAD",
                 "#!lua name=m\nredis.register_function{function_name='r', "
                 "callback=function() return 1 end, flags={'no-writes'}}"});
  }

  Value ask(const Words& words) {
    std::string bytes;
    append_command(bytes, std::span(words));
    EXPECT_TRUE(client_.send(bytes));
    const std::string reply = client_.reply(std::chrono::seconds(5));
    const auto decoded = decode(reply);
    if (!decoded || !*decoded) throw std::runtime_error(fmt::format("{}: {}", fmt::join(words, " "), reply));
    return (*decoded)->value;
  }

  // The same form as ours(); an error's text.
  std::string keys(const Words& words) {
    Words question{"COMMAND", "GETKEYSANDFLAGS"};
    question.insert(question.end(), words.begin(), words.end());
    const Value answer = ask(question);
    if (answer.is_error()) return answer.text;
    std::string text;
    std::string names;
    for (const Value& key : answer.items) {
      text += key.items[0].text;
      names += key.items[0].text + ",";
      for (const Value& flag : key.items[1].items) text += " " + flag.text;
      text += ", ";
    }
    question[1] = "GETKEYS";
    std::string plain;
    for (const Value& key : ask(question).items) plain += key.text + ",";
    EXPECT_EQ(plain, names);
    return text;
  }

  // Whether the server refuses the command for its form, and not for what its keys hold.
  bool refuses(const Words& words) {
    const Value answer = ask(words);
    if (answer.text.starts_with("NOSCRIPT ")) return words[1].size() != 40;  // No name of a script.
    return answer.is_error() && answer.text.starts_with("ERR ") && !answer.text.contains("no such key");
  }

 private:
  test::RedisProcess redis_;
  Client client_{redis_.port()};
};

constexpr std::string_view kNoKeys = "ERR The command has no key arguments";

struct Case {
  Words words;
  Kind kind;
  std::string_view keys;  // Empty: as the server says.
};

TEST(CommandKeys, KnownCases) {
  const std::vector<Case> cases = {
      {{"GET", "k"}, Kind::found, "k RO access, "},
      {{"SET", "k", "v"}, Kind::found, "k OW update, "},
      {{"SET", "k", "v", "EX", "9", "get"}, Kind::found, "k RW access update, "},
      {{"BITFIELD", "k", "OVERFLOW", "SAT", "GET", "u8", "0"}, Kind::found, "k RO access, "},
      {{"BITFIELD", "k", "GET", "u8", "0", "SET", "u8", "0", "1"}, Kind::found, "k RW access update, "},
      {{"MSETNX", "a", "1", "b", "2"}, Kind::found, ""},
      {{"MSETNX", "a", "1", "b"}, Kind::malformed, ""},
      {{"RENAME", "a", "b"}, Kind::found, ""},
      {{"COPY", "a", "b"}, Kind::found, ""},
      {{"LMOVE", "a", "b", "LEFT", "LEFT"}, Kind::found, ""},
      {{"SMOVE", "a", "b", "m"}, Kind::found, ""},
      {{"BITOP", "AND", "d", "a", "b"}, Kind::found, "d OW update, a RO access, b RO access, "},
      {{"PFMERGE", "d", "a"}, Kind::found, ""},
      {{"BLPOP", "a", "b", "0"}, Kind::found, ""},
      {{"BLMPOP", "0", "2", "a", "b", "LEFT"}, Kind::found, ""},
      {{"LMPOP", "2", "a", "LEFT"}, Kind::malformed, ""},
      {{"EVAL", "return 1", "0"}, Kind::none, ""},
      {{"EVAL", "return 1", "0", "argument"}, Kind::none, ""},
      {{"EVAL", "return 1", "2", "a", "b", "argument"}, Kind::found, ""},
      {{"EVAL", "return 1", "3", "a", "b"}, Kind::malformed, ""},
      {{"EVAL", "return 1", "-1", "a"}, Kind::malformed, ""},
      {{"EVAL", "return 1", "01", "a"}, Kind::malformed, ""},
      {{"EVAL", "return 1", "99999999999999999999", "a"}, Kind::malformed, ""},
      {{"EVAL", "return 1", "9223372036854775807", "a"}, Kind::malformed, ""},
      {{"EVAL_RO", "return 1", "1", "a"}, Kind::found, ""},
      {{"FCALL", "f", "1", "a"}, Kind::found, ""},
      {{"FCALL_RO", "r", "x", "a"}, Kind::malformed, ""},
      {{"ZUNIONSTORE", "d", "2", "a", "b", "WEIGHTS", "1", "2"}, Kind::found, ""},
      {{"ZUNIONSTORE", "d", "0", "a"}, Kind::malformed, ""},
      {{"ZUNIONSTORE", "d", "3", "a", "b"}, Kind::malformed, ""},
      {{"ZDIFF", "1", "a"}, Kind::found, ""},
      {{"SINTERCARD", "2", "a", "b", "LIMIT", "1"}, Kind::found, ""},
      {{"SORT", "k"}, Kind::found, ""},
      {{"SORT", "k", "LIMIT", "0", "9", "STORE", "c", "store", "d"},
       Kind::found,
       "k RO access, d OW update, "},
      {{"SORT", "k", "BY", "nosort", "GET", "#"}, Kind::found, "k RO access, "},
      {{"SORT", "k", "BY", "w_*"}, Kind::refused, "k RO access, "},
      {{"SORT_RO", "k", "GET", "*->f"}, Kind::refused, "k RO access, "},
      {{"SORT", "k", "GET", "STORE", "ALPHA"}, Kind::found, "k RO access, "},
      {{"GEORADIUS", "k", "1", "2", "3", "m"}, Kind::found, "k RO access, "},
      {{"GEORADIUS", "k", "1", "2", "3", "m", "COUNT", "1", "STORE", "d"}, Kind::found, ""},
      {{"GEORADIUSBYMEMBER", "k", "m", "3", "m", "STOREDIST", "d"}, Kind::found, ""},
      {{"XREAD", "STREAMS", "a", "b", "0", "0"}, Kind::found, "a RO access, b RO access, "},
      {{"XREAD", "BLOCK", "9", "COUNT", "1", "streams", "a", "$"}, Kind::found, "a RO access, "},
      {{"XREAD", "STREAMS", "a", "b", "0"}, Kind::malformed, ""},
      {{"XREAD", "COUNT", "1", "a", "0"}, Kind::malformed, ""},
      {{"XREADGROUP", "GROUP", "g", "c", "NOACK", "STREAMS", "a", ">"}, Kind::found, ""},
      {{"OBJECT", "ENCODING", "k"}, Kind::found, ""},
      {{"MEMORY", "USAGE", "k"}, Kind::found, ""},
      {{"XGROUP", "CREATE", "k", "g", "0"}, Kind::found, ""},
      {{"PING"}, Kind::none, ""},
      {{"SPUBLISH", "channel", "m"}, Kind::none, ""},
      {{"WATCH", "a", "b"}, Kind::found, "a RO, b RO, "},
  };
  Server server;
  for (const Case& c : cases) {
    const Found found = find(c.words);
    const std::string text = fmt::format("{}", fmt::join(c.words, " "));
    EXPECT_EQ(found.result.kind, c.kind) << text;
    if (!c.keys.empty()) {
      EXPECT_EQ(ours(c.words, found), c.keys) << text;
    }
    if (c.kind == Kind::malformed) {
      EXPECT_TRUE(server.refuses(c.words)) << text;
    } else if (c.words.size() > 1) {
      const std::string said = server.keys(c.words);
      EXPECT_EQ(said == kNoKeys ? "" : said, ours(c.words, found)) << text;
    }
  }
}

TEST(CommandKeys, AGroupNamedLikeAnOptionIsNoOption) {
  // The specification of Redis takes the first STREAMS for the option; the command itself does not.
  const Words words{"XREADGROUP", "COUNT", "1", "GROUP", "STREAMS", "c", "STREAMS", "s", ">"};
  const Found found = find(words);
  EXPECT_EQ(ours(words, found), "s RO access, ");
  EXPECT_EQ(found.keys[0].use, KeyUse::write) << "it changes the group";
  Server server;
  server.ask({"XGROUP", "CREATE", "s", "STREAMS", "0", "MKSTREAM"});
  server.ask({"XADD", "s", "1-1", "f", "v"});
  EXPECT_EQ(server.ask(words).items.size(), 1U);
}

TEST(CommandKeys, AnOptionEndsAtItsFirstNul) {
  const Words words{"SORT", "k", std::string_view("STORE\0x", 7), "d"};
  EXPECT_EQ(ours(words, find(words)), "k RO access, d OW update, ");
  Server server;
  EXPECT_EQ(server.keys(words), "k RO access, d OW update, ");
}

// --- generated -------------------------------------------------------------------------------------------

struct Random {
  std::mt19937 engine{20260101};
  std::size_t below(std::size_t n) { return engine() % n; }
  std::string_view word() {
    static constexpr std::string_view kWords[] = {
        "0",   "1",       "1",      "2",     "2",       "3",        "4",   "-1",      "x",        "k1",
        "k2",  "k3",      "k4",     "k5",    "STORE",   "BY",       "GET", "LIMIT",   "COUNT",    "STOREDIST",
        "ASC", "STREAMS", "BLOCK",  "GROUP", "NOACK",   "WEIGHTS",  "SET", "m",       "u8",       "LEFT",
        "MIN", "k1:*",    "nosort", "ANY",   "streams", "OVERFLOW", "EX",  "KEEPTTL", "withcoord"};
    return kWords[below(std::size(kWords))];
  }
};

// Mostly the commands whose keys move: each of them is as likely as all the others together.
std::vector<const Command*> commands_with_keys() {
  std::vector<const Command*> list;
  for (const Command& command : all_commands()) {
    if (command.key_use == KeyUse::none || command.handling == Handling::unsupported) continue;
    const bool moves = (command.flags & k_movablekeys) != 0 || command.finder != KeyFinder::specs;
    list.insert(list.end(), moves ? 6 : 1, &command);
  }
  return list;
}

// What options may follow a command's beginning, so that many a random command is well formed.
Words beginning(const Command& command, Random& random) {
  const std::size_t bar = command.name.find('|');
  Words words{command.name.substr(0, bar)};
  if (bar != std::string_view::npos) words.push_back(command.name.substr(bar + 1));
  if (random.below(3) == 0) return words;
  if (command.name == "georadius") words.insert(words.end(), {"k1", "1", "2", "3", "m"});
  if (command.name == "georadiusbymember") words.insert(words.end(), {"k1", "m", "3", "m"});
  if (command.name == "xreadgroup") words.insert(words.end(), {"GROUP", "g", "c"});
  if (command.name.starts_with("fcall")) words.push_back(command.name == "fcall" ? "f" : "r");
  if (command.name == "eval" || command.name == "eval_ro") words.push_back("return 1");
  if (command.name.starts_with("eval") && random.below(3) == 0) words = {command.name, "return 1", "0"};
  if (command.name.starts_with("sort") && random.below(2) == 0)
    words.insert(words.end(), {"k1", random.below(2) == 0 ? "BY" : "get", "k1:*"});
  return words;
}

TEST(CommandKeys, GeneratedCommandsAgreeWithTheServer) {
  Server server;
  Random random;
  const std::vector<const Command*> commands = commands_with_keys();
  std::map<Kind, int> seen;
  int harmless = 0;
  for (int n = 0; n < 40000; ++n) {
    const Command& command = *commands[random.below(commands.size())];
    Words words = beginning(command, random);
    const auto least = static_cast<std::size_t>(std::abs(command.arity));
    const std::size_t count = command.arity >= 0 ? least : std::max(words.size(), least) + random.below(7);
    while (words.size() < count) words.push_back(random.word());
    if (!command.arity_fits(words.size())) continue;
    const std::string text = fmt::format("{}", fmt::join(words, " "));
    const Found found = find(words);
    ++seen[found.result.kind];
    if (found.result.kind == Kind::malformed) {
      ASSERT_TRUE(server.refuses(words)) << text;
      continue;
    }
    const std::string said = server.keys(words);
    if (said == ours(words, found)) continue;
    const auto streams =
        std::ranges::count_if(words, [](auto w) { return equals_ignoring_case(w, "streams"); });
    if (streams > 1) continue;  // See AGroupNamedLikeAnOptionIsNoOption.
    if (command.name == "pfmerge" && words.size() == 2)
      continue;  // Without sources: legal, but not to GETKEYS.
    ASSERT_TRUE(server.refuses(words))
        << text << "\n  ours: " << ours(words, found) << "\n  server: " << said;
    ++harmless;
  }
  EXPECT_GT(seen[Kind::found], 20000);
  EXPECT_GT(seen[Kind::malformed], 3000);
  EXPECT_GT(seen[Kind::none], 100);
  EXPECT_GT(seen[Kind::refused], 100);
  EXPECT_LT(harmless, 400) << "differences in commands that the server refuses anyway";
}

TEST(CommandKeys, WhichCommandsMayWait) {
  struct BlocksCase {
    Words words;
    bool may_wait, forever;
    int milliseconds;
  };
  const std::vector<BlocksCase> cases = {
      {{"GET", "k"}, false, false, 0},
      {{"BLPOP", "a", "b", "1.5"}, true, false, 1500},
      {{"BLPOP", "a", "0"}, true, true, 0},
      {{"BLPOP", "a", "0.0001"}, true, false, 1},
      {{"BLPOP", "a", "x"}, true, true, 0},
      {{"BLPOP", "a", "-1"}, true, true, 0},
      {{"BLPOP", "a", "1e300"}, true, true, 0},
      {{"BLPOP", "a", "nan"}, true, true, 0},
      {{"BRPOPLPUSH", "a", "b", "2"}, true, false, 2000},
      {{"BLMOVE", "a", "b", "LEFT", "LEFT", "3"}, true, false, 3000},
      {{"BZPOPMIN", "a", "4"}, true, false, 4000},
      {{"BLMPOP", "0.25", "1", "a", "LEFT"}, true, false, 250},
      {{"BZMPOP", "7", "1", "a", "MIN"}, true, false, 7000},
      {{"XREAD", "STREAMS", "BLOCK", "0"}, false, false, 0},
      {{"XREAD", "COUNT", "1", "BLOCK", "40", "STREAMS", "s", "$"}, true, false, 40},
      {{"XREADGROUP", "GROUP", "BLOCK", "c", "STREAMS", "s", ">"}, false, false, 0},
      {{"XREADGROUP", "GROUP", "g", "c", "block", "0", "STREAMS", "s", ">"}, true, true, 0},
      {{"WAIT", "1", "100"}, true, false, 100},
      {{"WAIT", "1", "0"}, true, true, 0},
  };
  for (const BlocksCase& c : cases) {
    const Blocks got = blocks(*command_of(c.words), Arguments(std::span(c.words)));
    const std::string text = fmt::format("{}", fmt::join(c.words, " "));
    EXPECT_EQ(got.may_wait, c.may_wait) << text;
    EXPECT_EQ(got.forever, c.forever) << text;
    EXPECT_EQ(got.timeout.count(), c.milliseconds) << text;
  }
}

}  // namespace
}  // namespace ringshift::protocol::resp
