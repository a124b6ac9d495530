// Users, their routes and their limits, before real servers; AUTH, HELLO and ACL as a real server answers.
#include <gmock/gmock.h>
#include <ifaddrs.h>

#include <algorithm>

#include "cluster.h"
#include "protocol/resp/command_parser.h"
#include "proxy/limits.h"

namespace ringshift::proxy {
namespace {

using access::User;
using protocol::resp::CommandParser;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Words = std::vector<std::string>;

std::shared_ptr<Proxy::Holder> holder_of(const RedisProcess& redis, const std::string& name) {
  topology::Topology topology;
  topology.spec.cluster = name;
  topology::Member member;
  member.id = name + "-1";
  member.address = redis.address();
  topology.spec.members.push_back(member);
  return std::make_shared<Proxy::Holder>(*topology::Snapshot::compile(topology, {0, 1}));
}

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

// Clusters "a" and "b" of one member each behind one proxy with two threads.
class Pools {
 public:
  explicit Pools(Rules rules, Options options = {}) {
    if (options.listen == Options{}.listen) options.listen = "127.0.0.1:0";
    options.threads = 2;
    proxy_ = std::move(*Proxy::start(
        options, {{"a", holder_of(a, "a"), nullptr}, {"b", holder_of(b, "b"), nullptr}}, std::move(rules)));
  }
  Client client() { return Client(port_of(proxy_->address())); }
  Client client(std::string_view user, std::string_view password) {
    Client made = client();
    EXPECT_EQ(made.ask({"AUTH", user, password}), "+OK\r\n");
    return made;
  }
  Proxy& proxy() { return *proxy_; }
  RedisProcess a, b;

 private:
  std::unique_ptr<Proxy> proxy_;
};

Rules with_users(const std::vector<std::pair<std::string, Words>>& users) {
  Rules rules;
  for (const auto& [name, words] : users) rules.users.add(*User::parse(name, words));
  return rules;
}

// The same users at a real server and here; what both answer to everything in `lines` must be the same.
const std::vector<std::pair<std::string, Words>> kUsers = {
    {"default", {"off"}},
    {"al", {"on", ">secret", "~al:*", "%R~shared:*", "&news:*", "+@all", "-@dangerous", "+acl|whoami"}},
    {"bo", {"on", "nopass", "~*", "&*", "+get", "+ping", "(~w:* +set)"}},
    {"root", {"on", ">r", "~*", "&*", "+@all"}},
    {"gone", {"off", ">secret", "~*", "+@all"}},
};

TEST(AccessAtProxy, AnswersAsARealServer) {
  RedisProcess real;
  {
    Client setup(port_of(real.address()));
    for (const auto& [name, words] : kUsers) {
      if (name == "default") continue;
      std::vector<std::string_view> command{"ACL", "SETUSER", name};
      command.insert(command.end(), words.begin(), words.end());
      std::string bytes;
      protocol::resp::append_command(bytes, command);
      EXPECT_TRUE(setup.send(bytes));
      ASSERT_EQ(setup.reply(), "+OK\r\n") << name;
    }
    ASSERT_EQ(setup.ask({"ACL", "SETUSER", "default", "reset", "off"}), "+OK\r\n");
  }
  Rules rules = with_users(kUsers);
  rules.users.add(*User::parse("default", Words{"reset", "off"}));
  Pools pools(std::move(rules));
  Client ours = pools.client();
  Client theirs(port_of(real.address()));
  const char* const lines[] = {
      "GET x",
      "PING",
      "NOCOMMAND",
      "GET",
      "CLIENT",
      "HELLO",
      "HELLO 3",
      "HELLO 9",
      "RESET",
      "AUTH secret",
      "AUTH al wrong",
      "AUTH nobody x",
      "AUTH gone secret",
      "AUTH a b c",
      "AUTH",
      "HELLO 3 AUTH al wrong",
      "HELLO 2 AUTH",
      "ACL WHOAMI",
      "MULTI",
      "EXEC",
      "AUTH al secret",
      "ACL WHOAMI",
      "SET al:1 v",
      "GET al:1",
      "GET other",
      "MGET al:1 other",
      "MGET al:1 al:2",
      "SET shared:1 v",
      "GET shared:1",
      "GETDEL shared:1",
      "COPY shared:1 al:9",
      "FLUSHALL",
      "KEYS *",
      "DEL al:1 x",
      "EVAL return(1) 1 other",
      "EVAL return(1) 1 al:1",
      "MULTI",
      "SET al:1 w",
      "GET other",
      "EXEC",
      "MULTI",
      "SET al:1 z",
      "EXEC",
      "GET al:1",
      "ACL LIST",
      "RESET",
      "GET al:1",
      "AUTH bo whatever",
      "GET al:1",
      "SET al:1 v",
      "SET w:1 v",
      "GET w:1",
      "ACL WHOAMI",
      "MGET al:1",
      "AUTH bo wrong",
      "AUTH al wrong",
      "PING",
      "HELLO 2 AUTH root r SETNAME me",
      "ACL USERS",
      "ACL GETUSER al",
      "ACL GETUSER bo",
      "ACL GETUSER none",
      "ACL GETUSER default",
      "ACL CAT",
      "ACL CAT nope",
      "ACL DRYRUN al GET al:1",
      "ACL DRYRUN al GET x",
      "ACL DRYRUN al FLUSHALL",
      "ACL DRYRUN none GET x",
      "ACL DRYRUN al NOCMD",
      "ACL DRYRUN al GET",
      "ACL DRYRUN al PUBLISH q m",
      "ACL DRYRUN al PUBLISH news:1 m",
      "ACL DRYRUN al CLIENT ID",
      "ACL DRYRUN al CLIENT foo",
      "ACL DRYRUN al CONFIG",
      "ACL GENPASS 0",
      "ACL GENPASS 5000",
      "ACL GENPASS x",
      "ACL GETUSER",
      "ACL DRYRUN al",
      "ACL WHOAMI x",
      "ACL USERS x",
      "ACL LOG x",
      "ACL LOG 0",
      "ACL LOG RESET",
      "ACL LOG",
      "HELLO 3 AUTH al secret",
      "ACL WHOAMI",
      "GET nope",
      "HELLO 3 AUTH root r",
      "ACL GETUSER none",
      "QUIT",
  };
  for (const std::string line : lines) {
    EXPECT_TRUE(ours.send(line + "\r\n"));
    EXPECT_TRUE(theirs.send(line + "\r\n"));
    std::string mine = ours.reply();
    std::string real_answer = theirs.reply();
    if (line.starts_with("HELLO") && !mine.starts_with("-")) {
      EXPECT_FALSE(real_answer.starts_with("-")) << line << ": " << real_answer;  // The ids differ.
      continue;
    }
    if (line.starts_with("ACL GETUSER")) {  // Single commands come in a random order there.
      std::ranges::sort(mine);
      std::ranges::sort(real_answer);
    }
    EXPECT_EQ(mine, real_answer) << line;
  }
}

TEST(AccessAtProxy, LogsRefusalsAsARealServer) {
  Pools pools(with_users({{"al", {"on", ">p", "~al:*", "+@all"}}}));
  Client root = pools.client();
  {
    Client al = pools.client("al", "p");
    for (int i = 0; i < 3; ++i) EXPECT_THAT(al.ask({"GET", "x"}), StartsWith("-NOPERM"));
    EXPECT_THAT(al.ask({"AUTH", "al", "q"}), StartsWith("-WRONGPASS"));
  }
  const std::string log = root.ask({"ACL", "LOG"});
  EXPECT_THAT(log,
              StartsWith("*2\r\n*14\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$4\r\nauth\r\n$7\r\ncontext\r\n"
                         "$8\r\ntoplevel\r\n$6\r\nobject\r\n$4\r\nAUTH\r\n$8\r\nusername\r\n$2\r\nal\r\n"));
  EXPECT_THAT(log, HasSubstr("count\r\n:3\r\n$6\r\nreason\r\n$3\r\nkey\r\n"));
  EXPECT_EQ(root.ask({"ACL", "GENPASS", "5"}).substr(0, 4), "$2\r\n");
  EXPECT_NE(root.ask({"ACL", "GENPASS"}), root.ask({"ACL", "GENPASS"}));
  EXPECT_THAT(root.ask({"ACL", "CAT", "scripting"}), HasSubstr("script|load"));
  EXPECT_THAT(root.ask({"ACL", "SETUSER", "x"}), HasSubstr("not supported by ringshift"));
  EXPECT_EQ(telemetry::get(pools.proxy().stats(), telemetry::Counter::errors_denied), 4U);
  EXPECT_EQ(root.ask({"ACL", "LOG", "RESET"}), "+OK\r\n");
  EXPECT_EQ(root.ask({"ACL", "LOG"}), "*0\r\n");
}

TEST(AccessAtProxy, NothingRunsBeforeThePassword) {
  Pools pools(with_users({{"default", {"reset", "on", ">p", "~*", "&*", "+@all"}}}));
  Client client = pools.client();
  // In one write, so that nothing behind AUTH is judged before it.
  client.send("SET k 1\r\nMULTI\r\nINFO\r\nAUTH p\r\nSET k 2\r\nGET k\r\nRESET\r\nGET k\r\n");
  EXPECT_EQ(client.reply(), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(client.reply(), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(client.reply(), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(client.reply(), "+OK\r\n");
  EXPECT_EQ(client.reply(), "+OK\r\n");
  EXPECT_EQ(client.reply(), "$1\r\n2\r\n");
  EXPECT_EQ(client.reply(), "+RESET\r\n");
  EXPECT_EQ(client.reply(), "-NOAUTH Authentication required.\r\n");
}

// Or anybody who reaches the port could fill the memory. Word for word as a real server.
TEST(AccessAtProxy, StrangersMaySendLittle) {
  RedisProcess real;
  Client setup(port_of(real.address()));
  ASSERT_EQ(setup.ask({"CONFIG", "SET", "requirepass", "p"}), "+OK\r\n");
  Pools pools(with_users({{"default", {"reset", "on", ">p", "~*", "&*", "+@all"}}}));
  const std::string most(CommandParser::kStrangersBulkBytes, 'x');
  const std::string beginnings[] = {
      fmt::format("*2\r\n$4\r\nAUTH\r\n${}\r\n", most.size() + 1),
      "*11\r\n",
      "*2\r\n$62914660\r\n",
      fmt::format("*2\r\n$4\r\nAUTH\r\n${}\r\n{}\r\n*11\r\n", most.size(), most),
      "*10\r\n$3\r\nGET\r\n$16385\r\n",
      "*-1\r\n*3000000000\r\n",
      "*2\r\n$4\r\nAUTH\r\n$600000000\r\n"};
  for (const std::string& bytes : beginnings) {
    Client ours = pools.client();
    Client theirs(port_of(real.address()));
    EXPECT_TRUE(ours.send(bytes) && theirs.send(bytes));
    EXPECT_EQ(ours.rest(), theirs.rest()) << bytes.substr(0, 60);
  }
  Client al = pools.client("default", "p");
  EXPECT_EQ(al.ask({"SET", "k", most + "y"}), "+OK\r\n");
  EXPECT_EQ(al.ask({"DEL", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "k"}), ":1\r\n");
  EXPECT_EQ(al.ask({"RESET"}), "+RESET\r\n");
  EXPECT_TRUE(al.send("*11\r\n"));
  EXPECT_EQ(al.rest(), "-ERR Protocol error: unauthenticated multibulk length\r\n");
  // Once nobody needs a password any more, those who wait are trusted, too.
  Client waiting = pools.client();
  EXPECT_THAT(waiting.ask({"GET", "k"}), StartsWith("-NOAUTH"));
  pools.proxy().set_rules({});
  for (int n = 0; n < 200 && !waiting.ask({"GET", "none"}).starts_with("$-1"); ++n) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(waiting.ask({"SET", "k", most + "z"}), "+OK\r\n");
}

TEST(AccessAtProxy, RoutesByPrefixAndByUser) {
  Rules rules =
      with_users({{"tenant", {"on", ">t", "~*", "&*", "+@all"}}, {"lost", {"on", ">l", "+@all", "~*"}}});
  rules.routes = RouteTable({{"order:", 1}, {"", 0}});
  rules.user_routes.emplace("tenant", RouteTable(std::vector<RouteRule>{{"", 1}}));
  rules.user_routes.emplace("lost", RouteTable(std::vector<RouteRule>{{"x:", 0}}));
  Pools pools(std::move(rules));
  Client all = pools.client();
  EXPECT_EQ(all.ask({"MSET", "order:1", "o", "page:1", "p"}), "+OK\r\n");
  EXPECT_EQ(pools.b.command("GET order:1"), "$1\r\no\r\n");
  EXPECT_EQ(pools.a.command("GET page:1"), "$1\r\np\r\n");
  EXPECT_EQ(all.ask({"MGET", "order:1", "page:1", "no"}), "*3\r\n$1\r\no\r\n$1\r\np\r\n$-1\r\n");
  EXPECT_THAT(all.ask({"RENAME", "order:1", "page:2"}), StartsWith("-CROSSSLOT"));
  Client tenant = pools.client("tenant", "t");
  EXPECT_EQ(tenant.ask({"GET", "page:1"}), "$-1\r\n");
  EXPECT_EQ(tenant.ask({"SET", "mine", "1"}), "+OK\r\n");
  EXPECT_EQ(pools.b.command("GET mine"), "$1\r\n1\r\n");
  EXPECT_EQ(tenant.ask({"DBSIZE"}), ":2\r\n");
  EXPECT_THAT(tenant.ask({"KEYS", "*"}), AllOf(HasSubstr("mine"), Not(HasSubstr("page"))));
  // Key "mine" is in cluster b, where no route leads those without their own.
  EXPECT_EQ(all.ask({"GET", "mine"}), "$-1\r\n");
  EXPECT_THAT(all.ask({"KEYS", "*"}),
              AllOf(HasSubstr("page:1"), HasSubstr("order:1"), Not(HasSubstr("mine"))));
  Client lost = pools.client("lost", "l");
  EXPECT_THAT(lost.ask({"GET", "page:1"}), HasSubstr("no route takes this key"));
  EXPECT_EQ(lost.ask({"KEYS", "*"}), "*0\r\n");
  EXPECT_EQ(lost.ask({"SET", "x:1", "1"}), "+OK\r\n");
  // In a transaction, and what waits.
  tenant.ask({"MULTI"});
  EXPECT_EQ(tenant.ask({"GET", "order:1"}), "+QUEUED\r\n");
  EXPECT_EQ(tenant.ask({"EXEC"}), "*1\r\n$1\r\no\r\n");
  EXPECT_EQ(tenant.ask({"RPUSH", "list", "1"}), ":1\r\n");
  EXPECT_EQ(tenant.ask({"BLPOP", "list", "1"}), "*2\r\n$4\r\nlist\r\n$1\r\n1\r\n");
}

TEST(AccessAtProxy, AScanAsksNoClusterThatItsUserDoesNotReach) {
  for (const std::size_t reached : {std::size_t{0}, std::size_t{1}}) {
    Rules rules = with_users({{"al", {"on", ">p", "~*", "+@all"}}});
    rules.user_routes.emplace("al", RouteTable(std::vector<RouteRule>{{"", reached}}));
    Pools pools(std::move(rules));
    Client al = pools.client("al", "p");
    for (int i = 0; i < 50; ++i) ASSERT_EQ(al.ask({"SET", fmt::format("k{}", i), "v"}), "+OK\r\n");
    (reached == 0 ? pools.b : pools.a).kill();  // Whose errors, or silence, are not his.
    std::string cursor = "0";
    std::size_t keys = 0;
    do {
      const auto answer = protocol::resp::decode(al.ask({"SCAN", cursor, "COUNT", "7"}));
      ASSERT_TRUE(answer && *answer && (*answer)->value.items.size() == 2);
      cursor = (*answer)->value.items[0].text;
      keys += (*answer)->value.items[1].items.size();
    } while (cursor != "0");
    EXPECT_EQ(keys, 50U);
  }
}

TEST(AccessAtProxy, UsersWhomNoRouteTakesReachNothing) {
  Rules rules = with_users({{"al", {"on", ">p", "~*", "+@all"}}});
  rules.routes = RouteTable(std::vector<RouteRule>{});
  rules.user_routes.emplace("al", RouteTable(std::vector<RouteRule>{{"", 0}}));
  Pools pools(std::move(rules));
  Client none = pools.client();
  EXPECT_EQ(none.ask({"PING"}), "+PONG\r\n");
  for (const auto command : {"GET x", "KEYS *", "DBSIZE", "EVAL return(1) 0", "SCRIPT LOAD x", "MULTI",
                             "WATCH x", "FLUSHALL", "BLPOP x 0", "MGET x y"}) {
    EXPECT_TRUE(none.send(std::string(command) + "\r\n"));
    EXPECT_THAT(none.reply(), StartsWith("-ERR")) << command;
  }
  EXPECT_EQ(pools.client("al", "p").ask({"SET", "x", "1"}), "+OK\r\n");
}

TEST(AccessAtProxy, NewRulesReachOpenConnections) {
  Pools pools(with_users({{"al", {"on", ">p", "~*", "+@all"}}, {"bo", {"on", ">p", "~*", "+@all"}}}));
  Client al = pools.client("al", "p");
  Client bo = pools.client("bo", "p");
  EXPECT_EQ(al.ask({"SET", "k", "1"}), "+OK\r\n");
  EXPECT_EQ(bo.ask({"GET", "k"}), "$1\r\n1\r\n");
  Rules rules = with_users({{"al", {"on", ">new", "~*", "+get"}}});
  rules.routes = RouteTable(std::vector<RouteRule>{{"", 1}});
  pools.proxy().set_rules(std::move(rules));
  EXPECT_EQ(bo.rest(), "");                    // He is no more.
  EXPECT_EQ(al.ask({"GET", "k"}), "$-1\r\n");  // In the other cluster now.
  EXPECT_THAT(al.ask({"SET", "k", "2"}), StartsWith("-NOPERM"));
  EXPECT_THAT(pools.client().ask({"AUTH", "al", "p"}), StartsWith("-WRONGPASS"));
}

// What was admitted before it was held up is judged anew, and nothing later passes in its name.
TEST(AccessAtProxy, AnAdmissionEndsWithItsRules) {
  const std::vector<std::pair<std::string, Words>> users = {
      {"reader", {"on", ">p", "~*", "+@read", "+ping"}}};
  Rules limited = with_users(users);
  limited.limits.push_back({.scope = LimitRule::Scope::client, .name = "", .requests_per_second = 1e6});
  Pools pools(std::move(limited));
  Client admin = pools.client(), client = pools.client();
  ASSERT_EQ(admin.ask({"CLIENT", "PAUSE", "60000", "WRITE"}), "+OK\r\n");
  client.command({"SET", "k", "1"});
  EXPECT_EQ(client.reply(std::chrono::milliseconds(300)), "(timeout)");
  pools.proxy().set_rules(with_users(users));  // Sessions of `default` have nothing to ask now.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  client.command({"AUTH", "reader", "p"});
  client.command({"SET", "k", "2"});
  client.command({"GET", "k"});
  ASSERT_EQ(admin.ask({"CLIENT", "UNPAUSE"}), "+OK\r\n");
  EXPECT_EQ(client.reply(), "+OK\r\n");
  EXPECT_EQ(client.reply(), "+OK\r\n");
  EXPECT_THAT(client.reply(), StartsWith("-NOPERM"));
  EXPECT_EQ(client.reply(), "$1\r\n1\r\n");
}

TEST(AccessAtProxy, LimitsSayWhichAndForHowLong) {
  Rules rules = with_users({{"al", {"on", ">p", "~*", "+@all"}}, {"bo", {"on", ">p", "~*", "+@all"}}});
  using Scope = LimitRule::Scope;
  rules.limits = {{Scope::user, "al", 1, 0, 5, 0},
                  {Scope::prefix, "slow:", 1, 0, 2, 0},
                  {Scope::cluster, "b", 1, 0, 3, 0},
                  {Scope::client, "", 0, 100, 0, 5000}};
  rules.routes = RouteTable({{"b:", 1}, {"", 0}});
  Pools pools(std::move(rules));
  Client al = pools.client("al", "p");
  Client al2 = pools.client("al", "p");  // Perhaps at the other worker: one bucket for both.
  int passed = 0;
  for (int i = 0; i < 10; ++i) passed += (i % 2 == 0 ? al : al2).ask({"GET", "x"}) == "$-1\r\n" ? 1 : 0;
  EXPECT_EQ(passed, 5);
  EXPECT_THAT(
      al.ask({"GET", "x"}),
      testing::MatchesRegex("-ERR rate limit exceeded for user 'al': 1 requests per second; retry after "
                            "[0-9]+ ms\r\n"));
  Client bo = pools.client("bo", "p");
  EXPECT_EQ(bo.ask({"GET", "slow:1"}), "$-1\r\n");
  EXPECT_EQ(bo.ask({"MGET", "slow:1", "slow:2", "x"}), "*3\r\n$-1\r\n$-1\r\n$-1\r\n");
  EXPECT_THAT(bo.ask({"GET", "slow:3"}), HasSubstr("for prefix 'slow:'"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bo.ask({"GET", "b:1"}), "$-1\r\n");
  EXPECT_THAT(bo.ask({"GET", "b:1"}), HasSubstr("for cluster 'b'"));
  EXPECT_EQ(bo.ask({"GET", "x"}), "$-1\r\n");
  bo = pools.client("bo", "p");
  EXPECT_EQ(bo.ask({"SET", "big", std::string(6000, 'x')}), "+OK\r\n");  // Into debt.
  EXPECT_THAT(bo.ask({"GET", "x"}), HasSubstr("for this connection: 100 bytes per second"));
  EXPECT_THAT(bo.ask({"AUTH", "bo", "p"}), "+OK\r\n");  // Always; and it is no way to a new bucket.
  EXPECT_THAT(bo.ask({"GET", "x"}), HasSubstr("for this connection"));
  // Inside MULTI a refused command spoils it, and EXEC itself is never refused.
  Client root = pools.client();
  root.ask({"MULTI"});
  EXPECT_THAT(root.ask({"GET", "slow:1"}), HasSubstr("rate limit exceeded"));
  EXPECT_THAT(root.ask({"EXEC"}), StartsWith("-EXECABORT"));
  EXPECT_GE(telemetry::get(pools.proxy().stats(), telemetry::Counter::errors_limited), 8U);
  EXPECT_THAT(root.ask({"INFO", "stats"}), HasSubstr("errors_limited:"));
}

TEST(AccessAtProxy, BucketsFillWithTime) {
  Bucket bucket(10, 2);  // One in 100 ms.
  constexpr std::int64_t kStart = 1'000'000'000'000, kMs = 1'000'000;
  EXPECT_EQ(bucket.take(1, kStart), 0);
  EXPECT_EQ(bucket.take(1, kStart), 0);
  EXPECT_EQ(bucket.take(1, kStart), 100 * kMs);
  EXPECT_EQ(bucket.take(1, kStart + 60 * kMs), 40 * kMs);
  EXPECT_EQ(bucket.take(1, kStart + 100 * kMs), 0);
  EXPECT_GT(bucket.take(1, kStart + 100 * kMs), 0);
  bucket.give_back(1);
  EXPECT_EQ(bucket.take(1, kStart + 100 * kMs), 0);
  EXPECT_EQ(bucket.take(50, kStart + 1000 * kMs), 0);  // Larger than it holds, but it is full.
  EXPECT_GT(bucket.take(1, kStart + 2000 * kMs), 0);
}

TEST(AccessAtProxy, ProtectedModeRefusesOtherMachines) {
  ifaddrs* list = nullptr;
  ASSERT_EQ(::getifaddrs(&list), 0);
  in_addr own{};
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    const in_addr address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr;
    if ((ntohl(address.s_addr) >> 24) != 127) own = address;
  }
  ::freeifaddrs(list);
  if (own.s_addr == 0) GTEST_SKIP() << "this machine has no address but loopback";
  const auto first_line = [&](std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr = own;
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    (void)!::send(fd, "PING\r\n", 6, MSG_NOSIGNAL);
    char text[2048];
    const ssize_t n = ::recv(fd, text, sizeof text, 0);
    ::close(fd);
    return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string("(closed)");
  };
  Options options;
  options.listen = "0.0.0.0:0";
  Pools pools({}, options);
  const std::uint16_t port = port_of(pools.proxy().address());
  EXPECT_THAT(first_line(port), StartsWith("-DENIED Redis is running in protected mode"));
  EXPECT_EQ(pools.client().ask({"PING"}), "+PONG\r\n");
  pools.proxy().set_rules(with_users({{"default", {"reset", "on", ">p", "~*", "+@all"}}}));
  Client al = pools.client();
  while (al.ask({"GET", "x"}) == "$-1\r\n") al = pools.client();
  EXPECT_THAT(first_line(port), StartsWith("-NOAUTH"));
  // A listener on one address alone makes no difference, as in Redis.
  char text[INET_ADDRSTRLEN];
  ASSERT_NE(::inet_ntop(AF_INET, &own, text, sizeof text), nullptr);
  Options alone;
  alone.listen = fmt::format("{}:0", text);
  alone.also_listen.push_back({.address = "127.0.0.1:0"});
  Pools there({}, alone);
  EXPECT_THAT(first_line(port_of(there.proxy().address())), StartsWith("-DENIED"));
  EXPECT_EQ(Client(port_of(there.proxy().listening()[1].address)).ask({"PING"}), "+PONG\r\n");
  alone.protected_mode = false;
  alone.also_listen.clear();
  Pools open({}, alone);
  EXPECT_EQ(first_line(port_of(open.proxy().address())), "+PONG\r\n");
}

TEST(AccessAtProxy, ClientsAreKilledByUser) {
  Pools pools(with_users({{"al", {"on", ">p", "~*", "+@all"}}, {"bo", {"on", ">p", "~*", "+@all"}}}));
  Client al = pools.client("al", "p"), other = pools.client("al", "p"), admin = pools.client();
  EXPECT_EQ(admin.ask({"CLIENT", "KILL", "USER", "bo"}), ":0\r\n");  // He exists, and is not there.
  EXPECT_EQ(admin.ask({"CLIENT", "KILL", "USER", "cy"}), "-ERR No such user 'cy'\r\n");
  EXPECT_EQ(admin.ask({"CLIENT", "KILL", "USER", "al"}), ":2\r\n");
  EXPECT_EQ(al.rest(), "");
  EXPECT_EQ(other.rest(), "");
  EXPECT_EQ(admin.ask({"PING"}), "+PONG\r\n");
}

// A message as RESP2 has it, its pattern first if one matched.
std::string heard(const Words& words) {
  std::string out = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) out += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return out;
}

TEST(AccessAtProxy, SubscribersHearOfTheirRoutesAndChannelsAlone) {
  const Words free = {"on", ">p", "~*", "&*", "+@all"};
  const auto rules = [&](const Words& al, std::size_t cluster_of_al) {
    Rules made = with_users({{"al", al}, {"bo", free}});
    made.routes = RouteTable({{"a:", 0}, {"b:", 1}});
    made.user_routes.emplace("al", RouteTable(std::vector<RouteRule>{{"a:", cluster_of_al}}));
    return made;
  };
  Pools pools(rules(free, 0));
  Client al = pools.client("al", "p"), bo = pools.client("bo", "p"), root = pools.client();
  EXPECT_THAT(al.ask({"PSUBSCRIBE", "*"}), HasSubstr(":1\r\n"));
  EXPECT_THAT(bo.ask({"PSUBSCRIBE", "*"}), HasSubstr(":1\r\n"));
  EXPECT_THAT(al.ask({"SUBSCRIBE", "b:x"}), HasSubstr("no route takes this"));
  EXPECT_THAT(root.ask({"PUBLISH", "none", "0"}), HasSubstr("no route takes this"));
  EXPECT_EQ(root.ask({"PUBLISH", "b:x", "1"}), ":1\r\n");
  EXPECT_EQ(bo.reply(), heard({"pmessage", "*", "b:x", "1"}));  // Members overtake each other.
  EXPECT_EQ(root.ask({"PUBLISH", "a:x", "2"}), ":2\r\n");
  EXPECT_EQ(bo.reply(), heard({"pmessage", "*", "a:x", "2"}));
  EXPECT_EQ(al.reply(), heard({"pmessage", "*", "a:x", "2"}));
  // Past the routes: a member of al's cluster tells of a channel that no route of his leads to.
  EXPECT_THAT(pools.a.command("PUBLISH b:y 3"), StartsWith(":"));
  EXPECT_EQ(root.ask({"PUBLISH", "a:x", "4"}), ":2\r\n");
  EXPECT_EQ(al.reply(), heard({"pmessage", "*", "a:x", "4"}));
  // New rules: who may have all that he has stays, who may not is disconnected.
  pools.proxy().set_rules(rules({"on", ">p", "~*", "&a:x", "+@all"}, 0));
  EXPECT_EQ(al.rest(), "");
  EXPECT_EQ(bo.reply(), heard({"pmessage", "*", "a:x", "4"}));
  EXPECT_EQ(root.ask({"PUBLISH", "b:x", "5"}), ":1\r\n");
  EXPECT_EQ(bo.reply(), heard({"pmessage", "*", "b:x", "5"}));
  Client again = pools.client("al", "p");
  EXPECT_THAT(again.ask({"PSUBSCRIBE", "a:*"}), StartsWith("-NOPERM"));
  EXPECT_THAT(again.ask({"SUBSCRIBE", "a:x"}), HasSubstr(":1\r\n"));
  pools.proxy().set_rules(rules(free, 1));  // His channel is in the other cluster now.
  EXPECT_EQ(again.rest(), "");
}

TEST(AccessAtProxy, SeveralListeners) {
  Options options;
  options.also_listen.push_back({"127.0.0.1:0"});
  options.listen = "127.0.0.1:0";
  Pools pools({}, options);
  ASSERT_EQ(pools.proxy().listening().size(), 2U);
  for (const Options::Listen& at : pools.proxy().listening()) {
    EXPECT_EQ(Client(port_of(at.address)).ask({"PING"}), "+PONG\r\n");
  }
}

}  // namespace
}  // namespace ringshift::proxy
