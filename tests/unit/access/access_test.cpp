// The rules against a real server: the same rules there by ACL SETUSER, the same questions by ACL DRYRUN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>

#include "access/describe.h"
#include "access/glob.h"
#include "access/user.h"
#include "protocol/resp/value.h"
#include "tests/support/redis_process.h"
#include "tests/unit/proxy/client.h"

namespace ringshift::access {
namespace {

using protocol::resp::Arguments;
using protocol::resp::Command;
using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::uint16_t port_of(const test::RedisProcess& redis) {
  const std::string address = redis.address();
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

class RealServer {
 public:
  RealServer() : client_(port_of(redis_)) {}
  protocol::resp::Value ask(const Words& words) {
    std::string bytes;
    protocol::resp::append_command(bytes, std::vector<std::string_view>(words.begin(), words.end()));
    EXPECT_TRUE(client_.send(bytes));
    const std::string raw = client_.reply();
    return (*protocol::resp::decode(raw))->value;
  }
  // ACL SETUSER of a user "t" who was not there. Whether it was accepted.
  bool set(const Words& rules) {
    (void)ask({"ACL", "DELUSER", "t"});
    Words words{"ACL", "SETUSER", "t"};
    words.insert(words.end(), rules.begin(), rules.end());
    return ask(words).text == "OK";
  }
  std::string list() {
    for (const auto& line : ask({"ACL", "LIST"}).items) {
      if (line.text.starts_with("user t ")) return line.text;
    }
    return "";
  }

 private:
  test::RedisProcess redis_;
  proxy::Client client_;
};

RealServer& server() {
  static RealServer real;
  return real;
}

const Command* command_of(const Words& words) {
  const Command* command = protocol::resp::find_command(words[0]);
  if (command != nullptr && command->subcommands != 0 && words.size() > 1) {
    command = protocol::resp::find_subcommand(*command, words[1]);
  }
  return command;
}

std::string ours(const User& user, const Words& words) {
  const Command* command = command_of(words);
  const std::vector<std::string_view> views(words.begin(), words.end());
  const Verdict verdict = user.check(*command, std::span(views));
  return verdict.kind == Verdict::Kind::allowed ? "OK" : dry_denial(verdict, *command, std::span(views));
}

// The text of a line as a set: single commands come in a random order from the server.
std::multiset<std::string> unordered(const std::string& line) {
  const Words words = words_of(line);
  return {words.begin(), words.end()};
}

// With spaces between the rules.
const char* const kRules[] = {
    "",
    "on nopass ~* &* +@all",
    "on >secret ~order:* +@read",
    "on >a >b <a ~a* ~b* +get +set",
    "off #ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "allkeys allchannels allcommands -@dangerous",
    "ALLKEYS AllChannels +@ALL -@Write nocommands +GET",
    "%R~r:* %W~w:* %RW~rw:* +@all",
    "%r~x %W~x +@all",
    "%R +@all",
    "~ +@all",
    "~* resetkeys ~a +@all",
    "&news:* &exact +@pubsub",
    "&* resetchannels &x +@pubsub",
    "~* +@all -@all +@string +@hash -hget",
    "~* +@all -config +config|get",
    "~* -@all +config|get +client|id +client|list",
    "~* +@all -client|kill -get",
    "~* +@all -@admin -@slow +@list",
    "~* +select|0 +select|1 +SELECT|0",
    "~* +select|0 +select -select",
    "~* +get|x -get",
    "on nopass ~a +get (~b +set) (%R~c &x +@all -@write)",
    "( ~b  +set ) ()",
    "(~b +set) clearselectors ~z",
    "on nopass +@all ~* reset",
    "reset on skip-sanitize-payload sanitize-payload",
    "skip-sanitize-payload",
    "+@all -@fast -@slow",
    "~* +@keyspace +@read +@write +@set +@sortedset",
    "~* +@blocking +@transaction +@scripting +@connection",
    "~[a-c]* ~\\*x ~?? +@read",
    "resetpass nopass on ~user:[0-9][0-9] +get +mget +exists",
};
const char* const kWrong[] = {
    "x",
    "+foo",
    "-foo",
    "+@foo",
    "-@foo",
    "#12",
    "!12",
    "<nope",
    "%~x",
    "%X~x",
    "%RR~x",
    "+client|",
    "+client|foo",
    "+client|id|x",
    "+get|",
    "-select|0",
    "(~x",
    "(+foo)",
    "((~x))",
    "(on)",
    "(>x)",
    "~* ~x",
    "&* &x",
    "allkeys %R~x",
    "+",
    "-",
    "+all",
    "(",
    "!ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "#BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "+@",
    "on x",
};
const char* const kCommands[] = {
    "get a",
    "get order:1",
    "get r:1",
    "get w:1",
    "get rw:1",
    "get x",
    "set a 1",
    "set x 1",
    "set r:1 1",
    "set w:1 1",
    "set b 1",
    "set w:1 1 GET",
    "set rw:1 1 GET",
    "mget a b",
    "mget order:1 order:2 x",
    "mget r:1 x",
    "del a",
    "del w:1",
    "append w:1 x",
    "incr w:1",
    "incr rw:1",
    "copy r:1 w:1",
    "copy w:1 r:1",
    "rename a b",
    "sinterstore w:1 r:1 r:2",
    "eval return 1 x",
    "eval x 1 a",
    "eval x 2 a zz",
    "eval_ro x 1 r:1",
    "publish news:1 hi",
    "publish x hi",
    "publish exact hi",
    "subscribe news:1 x",
    "subscribe news:1 news:2",
    "psubscribe news:*",
    "psubscribe news:1*",
    "psubscribe x",
    "ssubscribe news:1",
    "spublish q m",
    "unsubscribe q",
    "config get x",
    "config set a b",
    "client id",
    "client list",
    "client kill x",
    "client setname n",
    "select 0",
    "select 1",
    "select 2",
    "get c",
    "set c 1",
    "hget a f",
    "hset a f v",
    "flushall",
    "keys *",
    "auth x",
    "hello 3",
    "multi",
    "exec",
    "ping",
    "info",
    "lpush a 1",
    "blpop a 0",
    "xread STREAMS a r:1 0 0",
    "xreadgroup GROUP g c STREAMS a 0",
    "zunionstore w:1 2 r:1 r:2",
    "zunionstore r:1 1 w:1",
    "sort a",
    "sort a STORE w:1",
    "georadius r:1 0 0 1 m STORE w:1",
    "object freq r:1",
    "memory usage r:1",
    "touch w:1",
    "exists w:1",
    "expire w:1 1",
    "ttl w:1",
    "dump w:1",
    "lmpop 2 a b LEFT",
    "get *x",
    "get bx",
    "get user:42",
    "mget user:42 user:4x",
    "bitfield w:1 GET u8 0",
    "bitfield r:1 GET u8 0",
    "bitfield rw:1 SET u8 0 1",
    "getex r:1",
    "getdel w:1",
    "strlen w:1",
    "script load x",
    "acl whoami",
    "command count",
    "wait 1 1",
    "watch a",
    "setrange w:1 0 x",
    "pfcount r:1 r:2",
    "pfmerge w:1 r:1",
};

TEST(Access, AnswersAsARealServer) {
  for (const std::string text : kRules) {
    const Words rules = words_of(text);
    ASSERT_TRUE(server().set(rules)) << text;
    const auto user = User::parse("t", rules);
    ASSERT_TRUE(user) << text << ": " << user.error().message;
    EXPECT_EQ(unordered(describe(*user)), unordered(server().list())) << text;
    for (const std::string command : kCommands) {
      Words ask{"ACL", "DRYRUN", "t"};
      const Words words = words_of(command);
      ask.insert(ask.end(), words.begin(), words.end());
      EXPECT_EQ(ours(*user, words), server().ask(ask).text) << "[" << text << "] " << command;
    }
  }
}

TEST(Access, RefusesWhatARealServerRefuses) {
  for (const std::string text : kWrong) {
    EXPECT_FALSE(server().set(words_of(text))) << text;
    const auto user = User::parse("t", words_of(text));
    EXPECT_FALSE(user) << text;
  }
  for (const std::string rule : {"~a b", "&a b", "%R~a\tb"}) {  // One rule each, with a space in it.
    EXPECT_FALSE(server().set({rule})) << rule;
    EXPECT_FALSE(User::parse("t", Words{rule})) << rule;
  }
}

TEST(Access, EveryCommandOfEveryCategory) {
  for (const std::string_view category : protocol::resp::acl_category_names()) {
    for (const std::string form : {"-@all +@", "+@all -@"}) {
      const Words rules = words_of("~* &* " + form + std::string(category));
      ASSERT_TRUE(server().set(rules));
      EXPECT_EQ(unordered(describe(*User::parse("t", rules))), unordered(server().list()))
          << form << category;
    }
  }
}

TEST(Access, PatternsMatchAsARealServersDo) {
  const char* const patterns[] = {"a",     "a*",   "*a",    "*",     "**",   "a*b*c",   "?",       "??",
                                  "[ab]",  "[^a]", "[a-c]", "[c-a]", "[a",   "[^",      "[",       "[]a]",
                                  "[\\]]", "[a-",  "\\a",   "\\",    "a\\",  "\\*",     "a[b]c",   "*[ab]*",
                                  "",      "x**y", "[^]a]", "a?*",   "*?*b", "[\\a-c]", "*a*a*a*b"};
  const char* const texts[] = {"a",
                               "b",
                               "c",
                               "ab",
                               "abc",
                               "aXbYc",
                               "*",
                               "\\",
                               "]",
                               "-",
                               "[",
                               "x-y",
                               "xy",
                               "^",
                               "aaaaaaaaaaaaab",
                               "aaaaaaaaaaaa",
                               "]a]",
                               "d"};
  for (const std::string pattern : patterns) {
    ASSERT_TRUE(server().set({"+get", "~" + pattern}));
    for (const std::string text : texts) {
      const bool theirs = server().ask({"ACL", "DRYRUN", "t", "get", text}).text == "OK";
      EXPECT_EQ(pattern == "*" || matches_glob(pattern, text), theirs) << pattern << " and " << text;
    }
  }
  EXPECT_TRUE(matches_glob("", ""));
}

TEST(Access, PasswordsAndWhoMayNot) {
  Users users;
  EXPECT_FALSE(users.restrict());
  users.add(*User::parse("al", Words{"on", ">one", ">two words"}));
  users.add(*User::parse("off", Words{">one"}));
  users.add(*User::parse("open", Words{"on", "nopass"}));
  EXPECT_TRUE(users.restrict());
  EXPECT_EQ(users.authenticate("al", "one"), users.find("al"));
  EXPECT_EQ(users.authenticate("al", "two words"), users.find("al"));
  EXPECT_EQ(users.authenticate("al", "three"), nullptr);
  EXPECT_EQ(users.authenticate("al", ""), nullptr);
  EXPECT_EQ(users.authenticate("off", "one"), nullptr);
  EXPECT_EQ(users.authenticate("nobody", "one"), nullptr);
  EXPECT_EQ(users.authenticate("open", "whatever"), users.find("open"));
  EXPECT_EQ(users.authenticate("default", "x"), &users.default_user());
  const auto wrong = User::parse("x", Words{">secret", "<other"});
  EXPECT_THAT(wrong.error().message, testing::HasSubstr("'<...'"));
  EXPECT_THAT(wrong.error().message, testing::Not(testing::HasSubstr("other")));
}

TEST(Access, FilesOfUsers) {
  Users users;
  ASSERT_TRUE(read_users("# ours\nuser default off\n\nuser al on >x ~a (~b +set)\r\n", "users.acl", users));
  EXPECT_FALSE(users.default_user().enabled());
  EXPECT_EQ(users.find("al")->selectors().size(), 2U);
  const auto message = [&](std::string_view text) {
    Users some;
    const Status read = read_users(text, "users.acl", some);
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(message("user a on\nusr b"), testing::StartsWith("users.acl:2: "));
  EXPECT_THAT(message("user a on\nuser b +foo"),
              testing::AllOf(testing::StartsWith("users.acl:2: "), testing::HasSubstr("'+foo'")));
  EXPECT_THAT(message("user a on\nuser a on"), testing::HasSubstr("in line 1 already"));
}

}  // namespace
}  // namespace ringshift::access
