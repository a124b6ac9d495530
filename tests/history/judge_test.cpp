// The checker proves itself: hand-written histories, each with the reason why it is right or wrong.
#include "check/judge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "check/report.h"
#include "tests/history/notation.h"

namespace ringshift::check {
namespace {

struct Case {
  const char* why;
  Kind kind;
  std::vector<std::string> lines;
  std::optional<Violation::Kind> fault;  // None: the history is fine.
};

using V = Violation::Kind;
constexpr Kind R = Kind::register_, C = Kind::counter, H = Kind::hash, E = Kind::expiry, L = Kind::list,
               S = Kind::set, Z = Kind::zset, X = Kind::stream;

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      // Registers.
      {"write, then read", R, {"0 0..1 SET a", "1 2..3 GET a"}, {}},
      {"a key begins absent", R, {"0 0..1 GET nil", "0 2..3 DEL 0", "0 4..5 EXISTS 0"}, {}},
      {"a read during a write may see either", R, {"0 0..9 SET a", "1 1..2 GET nil", "1 3..4 GET a"}, {}},
      {"but not new, then old", R, {"0 0..9 SET a", "1 1..2 GET a", "2 3..4 GET nil"}, V::lost_write},
      {"stale read after an acknowledged write",
       R,
       {"0 0..1 SET a", "0 2..3 SET b", "1 4..5 GET a"},
       V::stale_read},
      {"lost write", R, {"0 0..1 SET a", "1 2..3 GET nil"}, V::lost_write},
      {"a deleted value comes back", R, {"0 0..1 SET a", "0 2..3 DEL 1", "1 4..5 GET a"}, V::resurrected},
      {"a deleted value comes back for good, as EXISTS tells",
       R,
       {"0 0..1 SET a", "0 2..3 DEL 1", "1 4..5 EXISTS 1"},
       V::resurrected},
      {"DEL must find what was written", R, {"0 0..1 SET a", "0 2..3 DEL 0"}, V::lost_write},
      {"a value from nowhere", R, {"0 0..1 SET a", "1 2..3 GET b"}, V::invented},
      {"a value before it was written", R, {"1 0..1 GET a", "0 2..3 SET a"}, V::resurrected},
      {"concurrent writes take effect in either order",
       R,
       {"0 0..9 SET a", "1 0..9 SET b", "2 10..11 GET a"},
       {}},
      {"but in one order for all",
       R,
       {"0 0..9 SET a", "1 0..9 SET b", "2 10..11 GET a", "3 12..13 GET b"},
       V::stale_read},
      {"readers agree on the order while the writes still run",
       R,
       {"0 0..20 SET a", "1 0..20 SET b", "2 1..2 GET a", "2 3..4 GET b", "3 5..6 GET a"},
       V::stale_read},
      {"an overlapping third write explains it",
       R,
       {"0 0..20 SET a", "1 0..20 SET b", "2 1..2 GET a", "2 3..4 GET b", "3 5..6 GET b"},
       {}},
      {"an unknown write may take effect late",
       R,
       {"0 0..? SET a", "1 1..2 SET b", "2 3..4 GET b", "2 5..6 GET a"},
       {}},
      {"and never", R, {"0 0..? SET a", "1 1..2 SET b", "2 3..4 GET b", "2 500..501 GET b"}, {}},
      {"but only once", R, {"0 0..? SET a", "1 1..2 GET a", "1 3..4 SET b", "2 5..6 GET a"}, V::stale_read},
      {"and not before it was sent", R, {"2 0..1 GET a", "0 2..? SET a"}, V::resurrected},
      {"an unknown delete explains a vanished value",
       R,
       {"0 0..1 SET a", "1 2..? DEL", "2 9..10 GET nil"},
       {}},
      {"one unknown delete does not explain two",
       R,
       {"0 0..1 SET a", "1 2..? DEL", "2 3..4 GET nil", "2 5..6 SET b", "2 7..8 GET nil"},
       V::lost_write},
      {"a write that was not executed never shows",
       R,
       {"0 0..1 SET a", "1 2..- SET b", "2 3..4 GET b"},
       V::stale_read},
      {"a read of unknown outcome says nothing", R, {"0 0..1 SET a", "1 2..? GET nil", "2 3..4 GET a"}, {}},
      {"GETSET hands on each value once", R, {"0 0..1 SET a", "1 2..9 GETSET b a", "2 2..9 GETSET c b"}, {}},
      {"two GETSETs cannot both get it",
       R,
       {"0 0..1 SET a", "1 2..9 GETSET b a", "2 2..9 GETSET c a"},
       V::stale_read},
      {"SET NX wins once", R, {"0 0..9 SETNX a OK", "1 0..9 SETNX b nil", "2 10..11 GET a"}, {}},
      {"SET NX cannot win twice", R, {"0 0..9 SETNX a OK", "1 0..9 SETNX b OK"}, V::lost_write},
      {"an unknown delete makes room for an unknown SET NX",
       R,
       {"0 0..1 SET a", "1 2..? DEL", "1 2..? SETNX b", "2 3..4 GET b"},
       {}},
      {"an unknown SET NX cannot overwrite",
       R,
       {"0 0..? SETNX a", "1 1..2 SET b", "2 3..4 GET b", "2 5..6 GET a"},
       V::stale_read},
      {"one pipeline: the order of the connection holds",
       R,
       {"0 0..1 SET a", "0 0..2 GET a", "0 0..3 SET b", "0 0..4 GET b"},
       {}},
      {"one pipeline: a read that overtook its write",
       R,
       {"0 0..4 SET a", "0 0..4 GET a", "0 0..4 SET b", "0 0..4 GET a"},
       V::stale_read},
      {"one pipeline: the first read sees the second write",
       R,
       {"0 0..4 SET a", "0 0..4 GET b", "0 0..4 SET b", "0 0..4 GET b"},
       V::stale_read},
      // Counters.
      {"increments count", C, {"0 0..1 INCR 1", "1 0..2 INCR 2", "2 3..4 GET 2"}, {}},
      {"an increment is lost", C, {"0 0..1 INCR 1", "1 2..3 INCR 2", "2 4..5 INCR 2"}, V::lost_write},
      {"concurrent increments got the same number", C, {"0 0..9 INCR 1", "1 0..9 INCR 1"}, V::lost_write},
      {"the counter started again", C, {"0 0..1 INCR 1", "0 2..3 INCR 2", "1 4..5 INCR 1"}, V::lost_write},
      {"the counter is gone", C, {"0 0..1 INCR 1", "1 4..5 GET nil"}, V::lost_write},
      {"the counter went back", C, {"0 0..1 INCR 1", "0 2..3 INCR 2", "1 4..5 GET 1"}, V::stale_read},
      {"an unknown increment may have counted", C, {"0 0..1 INCR 1", "1 2..? INCR", "0 3..4 INCR 3"}, {}},
      {"or not", C, {"0 0..1 INCR 1", "1 2..? INCR", "0 3..4 INCR 2"}, {}},
      {"or later", C, {"1 0..? INCR", "0 1..2 INCR 1", "0 3..4 INCR 3"}, {}},
      {"but only once", C, {"1 0..? INCR", "0 1..2 INCR 2", "0 3..4 INCR 4"}, V::lost_write},
      {"two unknown ones may count twice",
       C,
       {"1 0..? INCR", "2 0..? INCR", "0 1..2 GET 2", "0 3..4 INCR 3"},
       {}},
      {"not before they were sent", C, {"0 1..2 GET 1", "1 3..? INCR"}, V::stale_read},
      // Hashes.
      {"fields are registers of their own",
       H,
       {"0 0..1 HSET a x 1", "1 0..1 HSET b y 1", "2 2..3 HGET a x", "2 4..5 HGETALL a=x,b=y",
        "0 6..7 HDEL a 1", "1 8..9 HGETALL b=y"},
       {}},
      {"a field is lost when another is written",
       H,
       {"0 0..1 HSET a x 1", "1 2..3 HSET b y 1", "2 4..5 HGETALL b=y"},
       V::lost_write},
      {"a deleted field comes back",
       H,
       {"0 0..1 HSET a x 1", "0 2..3 HSET b y 1", "1 4..5 HDEL a 1", "2 6..7 HGETALL a=x,b=y"},
       V::resurrected},
      {"HSET says whether the field was new", H, {"0 0..1 HSET a x 1", "0 2..3 HSET a y 1"}, V::lost_write},
      {"HGETALL is one instant: no mixture of before and after",
       H,
       {"0 0..1 HSET a x 1", "0 2..3 HSET b y 1", "0 4..5 HSET a z 0", "0 6..7 HSET b w 0",
        "1 3.5..9 HGETALL a=x,b=w"},
       V::stale_read},
      {"DEL takes all fields",
       H,
       {"0 0..1 HSET a x 1", "0 2..3 HSET b y 1", "1 4..5 DEL 1", "2 6..7 HGETALL none", "2 8..9 DEL 0"},
       {}},
      {"DEL leaves none",
       H,
       {"0 0..1 HSET a x 1", "0 2..3 HSET b y 1", "1 4..5 DEL 1", "2 6..7 HGET b y"},
       V::resurrected},
      {"an unknown DEL explains it",
       H,
       {"0 0..1 HSET a x 1", "0 2..3 HSET b y 1", "1 4..? DEL", "2 6..7 HGETALL a=x,b=y", "2 8..9 HGET a nil",
        "2 10..11 HGETALL none"},
       {}},
      {"two unknown writes of different fields, seen together",
       H,
       {"0 0..? HSET a x", "1 0..? HSET b y", "2 5..6 HGETALL none", "2 7..8 HGETALL a=x,b=y"},
       {}},
      {"a DEL that found nothing although a field was there",
       H,
       {"0 0..1 HSET a x 1", "1 2..3 DEL 0"},
       V::lost_write},
      // Lists and streams count; sets and sorted sets have cells.
      {"elements count", L, {"0 0..1 RPUSH 1", "1 0..2 RPUSH 2", "2 3..4 LLEN 2"}, {}},
      {"an element is lost", L, {"0 0..1 RPUSH 1", "0 2..3 RPUSH 2", "2 4..5 RPUSH 2"}, V::lost_write},
      {"entries count", X, {"0 0..1 XADD 1-1", "1 0..2 XADD 1-2", "2 3..4 XLEN 2"}, {}},
      {"an entry is lost", X, {"0 0..1 XADD 1-1", "1 2..3 XADD 1-2", "2 4..5 XLEN 1"}, V::stale_read},
      {"members come and go",
       S,
       {"0 0..1 SADD a 1", "0 2..3 SADD a 0", "1 4..5 SREM a 1", "1 6..7 SADD a 1", "2 8..9 SMEMBERS a",
        "2 10..11 SISMEMBER a 1"},
       {}},
      {"a member is lost", S, {"0 0..1 SADD a 1", "0 2..3 SADD b 1", "1 4..5 SMEMBERS b"}, V::lost_write},
      {"a member comes back",
       S,
       {"0 0..1 SADD a 1", "0 2..3 SREM a 1", "1 4..5 SISMEMBER a 1"},
       V::resurrected},
      {"an unknown SREM explains it", S, {"0 0..1 SADD a 1", "0 2..? SREM a", "1 4..5 SISMEMBER a 0"}, {}},
      {"a score is what was set", Z, {"0 0..1 ZADD a 7 1", "1 2..3 ZSCORE a 7"}, {}},
      {"an old score", Z, {"0 0..1 ZADD a 7 1", "0 2..3 ZADD a 8 0", "1 4..5 ZSCORE a 7"}, V::stale_read},
      // Expiry; the slack is 250 ms.
      {"a value lives until its deadline",
       E,
       {"0 0..1 SETPX a 1000", "1 990..991 GET a", "1 1300..1301 GET nil"},
       {}},
      {"and a little longer when it moved", E, {"0 0..1 SETPX a 1000", "1 1200..1201 GET a"}, {}},
      {"but not much", E, {"0 0..1 SETPX a 1000", "1 1300..1301 GET a"}, V::stale_read},
      {"a value vanished early", E, {"0 0..1 SETPX a 1000", "1 500..501 GET nil"}, V::lost_write},
      {"an expired value came back",
       E,
       {"0 0..1 SETPX a 1000", "1 1001..1002 GET nil", "1 1003..1004 GET a"},
       V::resurrected},
      {"PTTL reaches past the deadline", E, {"0 0..1 SETPX a 1000", "1 2..3 PTTL 2000"}, V::stale_read},
      {"PTTL is cut short", E, {"0 0..1 SETPX a 1000", "1 2..3 PTTL 400"}, V::lost_write},
      {"the time to live got lost", E, {"0 0..1 SETPX a 1000", "1 2..3 PTTL -1"}, V::stale_read},
      {"PEXPIRE moves the deadline",
       E,
       {"0 0..1 SETPX a 1000", "0 2..3 PEXPIRE 5000 1", "1 4000..4001 GET a"},
       {}},
      {"PEXPIRE was lost",
       E,
       {"0 0..1 SETPX a 1000", "0 2..3 PEXPIRE 5000 1", "1 4000..4001 GET nil"},
       V::lost_write},
      {"PEXPIRE did not find the key", E, {"0 0..1 SETPX a 1000", "0 2..3 PEXPIRE 5000 0"}, V::lost_write},
      {"the value before the last",
       E,
       {"0 0..1 SETPX a 1000", "0 2..3 SETPX b 1000", "1 4..5 GET a"},
       V::stale_read},
      {"a read during the write may see either",
       E,
       {"0 0..1 SETPX a 1000", "0 2..9 SETPX b 1000", "1 4..5 GET a"},
       {}},
      {"after a write of unknown outcome nothing is judged",
       E,
       {"0 0..1 SETPX a 1000", "0 2..? SETPX b 1000", "1 4..5 GET b", "1 6..7 GET nil"},
       {}},
  };
  return kCases;
}

TEST(Check, JudgesHandWrittenHistories) {
  for (const Case& c : cases()) {
    const History history = parse_history(c.kind, c.lines);
    const Judgement result = judge(history);
    const std::string text = to_text(result, info_of(history, 0));
    EXPECT_EQ(result.clean(), !c.fault) << c.why << "\n" << text;
    if (!result.clean() && c.fault) {
      EXPECT_STREQ(to_string(result.violations[0].kind), to_string(*c.fault)) << c.why << "\n" << text;
    }
  }
}

TEST(Check, ShowsTheFewOperationsThatCannotBeExplained) {
  // A hundred writes and reads that are right, and one read in their midst that is not.
  std::vector<std::string> lines;
  for (int i = 0; i < 100; ++i) {
    lines.push_back(fmt::format("{} {}..{} SET v{}", i % 4, 10 * i, 10 * i + 4, i));
    lines.push_back(fmt::format("5 {}..{} GET v{}", 10 * i + 5, 10 * i + 6, i));
  }
  lines.push_back("6 503..509 GET v20");
  const History history = parse_history(R, lines);
  const Judgement result = judge(history);
  ASSERT_EQ(result.violations.size(), 1U);
  const Violation& violation = result.violations[0];
  EXPECT_EQ(violation.kind, V::stale_read);
  EXPECT_EQ(violation.of, 201U);
  ASSERT_EQ(violation.operations.size(), 3U);  // What was read, what replaced it, and who read it.
  EXPECT_EQ(violation.operations[0].value, "v20");
  EXPECT_EQ(violation.operations[1].verb, Verb::set);
  EXPECT_EQ(violation.operations[violation.culprit].text, "v20");
  History few;
  few.operations = violation.operations;
  EXPECT_FALSE(judge(few).clean());
}

TEST(Check, TheBoundOfTheSearchIsSaid) {
  std::vector<std::string> lines;
  for (int i = 0; i < 24; ++i) lines.push_back(fmt::format("{} 0..9 SET v{}", i, i));
  for (int i = 0; i < 24; ++i) lines.push_back(fmt::format("{} 10..? SET w{}", i, i));
  lines.push_back("90 11..12 GET w23");
  CheckOptions options;
  options.limits.max_work = 3;
  const Judgement result = judge(parse_history(R, lines), options);
  EXPECT_EQ(result.inconclusive, 1U);
  EXPECT_FALSE(result.clean());
  EXPECT_THAT(to_text(result, {}), testing::HasSubstr("INCONCLUSIVE"));
  EXPECT_THAT(to_json(result, {}), testing::HasSubstr("\"verdict\":\"inconclusive\""));
}

TEST(Check, ReportNamesKeyAndOperation) {
  const History history = parse_history(R, {"0 0..1 SET a", "0 2..3 SET b", "1 4..5 GET a"});
  const Judgement result = judge(history);
  const std::string text = to_text(result, info_of(history, 77));
  EXPECT_THAT(text, testing::HasSubstr("VIOLATED: 3 operations on 1 keys"));
  EXPECT_THAT(text, testing::HasSubstr("seed 77"));
  EXPECT_THAT(text, testing::HasSubstr("stale read on key k"));
  EXPECT_THAT(text, testing::HasSubstr("the key could be b before it"));
  EXPECT_THAT(text, testing::ContainsRegex(R"(> +\|-+\| +\[ +0\.000 \.\. +1\.000\] client 1  GET -> a)"));
  EXPECT_THAT(to_json(result, info_of(history, 77)), testing::HasSubstr("\"stale_reads\":1"));
}

// A simulated atomic key with overlapping clients, some of whose outcomes stay unknown. Exactness in one
// direction: what a right key answers is never called wrong, and the search stays small.
History simulate(std::uint64_t seed, std::size_t count, std::uint32_t clients, std::uint32_t unknown_percent,
                 bool corrupt) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
  std::vector<std::int64_t> free_at(clients, 0);
  struct Planned {
    Operation op;
    std::int64_t effect;
  };
  std::vector<Planned> plan;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t client = pick(clients);
    Planned p;
    p.op.client = client;
    p.op.sequence = i;
    p.op.key = "k";
    p.op.invoked = free_at[client] + pick(50);
    p.effect = p.op.invoked + pick(1000);
    p.op.returned = p.effect + pick(1000);
    const std::uint32_t dice = pick(100);
    p.op.verb = dice < 45 ? Verb::get : dice < 80 ? Verb::set : dice < 90 ? Verb::del : Verb::getset;
    if (p.op.verb == Verb::set || p.op.verb == Verb::getset) p.op.value = "v" + std::to_string(i);
    if (pick(100) < unknown_percent) {
      p.op.outcome = Outcome::unknown;
      p.effect = pick(2) == 0 ? kNever : p.effect + pick(20000);  // Never, or late.
    }
    free_at[client] = p.op.returned + 1;
    plan.push_back(p);
  }
  std::ranges::stable_sort(plan, {}, &Planned::effect);
  std::optional<std::string> value;
  History history;
  for (Planned& p : plan) {
    Operation& op = p.op;
    if (p.effect != kNever) {
      op.text = op.verb == Verb::set ? std::optional<std::string>("OK") : value;
      op.number = value ? 1 : 0;
      if (op.verb == Verb::set || op.verb == Verb::getset) value = op.value;
      if (op.verb == Verb::del) value.reset();
    }
    history.operations.push_back(op);
  }
  if (corrupt) {  // Long after the rest: two writes, and a read that sees the first.
    for (const std::int64_t i : {0, 1, 2}) {
      Operation op;
      op.key = "k";
      op.client = clients;
      op.sequence = static_cast<std::uint64_t>(i);
      op.invoked = 1'000'000'000 + 10 * i;
      op.returned = op.invoked + 1;
      op.verb = i < 2 ? Verb::set : Verb::get;
      if (i < 2) op.value = "last" + std::to_string(i);
      op.text = i < 2 ? "OK" : "last0";
      history.operations.push_back(op);
    }
  }
  return history;
}

TEST(Check, NeverAccusesARightKey) {
  const std::uint64_t base = std::random_device{}();
  for (std::uint64_t seed = base; seed < base + 30; ++seed) {
    const History history = simulate(seed, 400, 12, seed % 3 == 0 ? 5 : 0, false);
    const Judgement result = judge(history);
    EXPECT_TRUE(result.clean()) << "seed " << seed << "\n" << to_text(result, info_of(history, seed));
  }
}

TEST(Check, FindsOneOldValueAmongHundreds) {
  const std::uint64_t base = std::random_device{}();
  for (std::uint64_t seed = base; seed < base + 20; ++seed) {
    const History history = simulate(seed, 300, 12, 0, true);
    const Judgement result = judge(history);
    ASSERT_EQ(result.violations.size(), 1U) << "seed " << seed;
    EXPECT_THAT(result.violations[0].why, testing::HasSubstr("last1")) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ringshift::check
