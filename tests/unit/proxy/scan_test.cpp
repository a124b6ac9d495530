// SCAN over all members, while keys move between them.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cluster.h"
#include "proxy/scan_state.h"

namespace ringshift::proxy {
namespace {

using Snapshots = std::vector<std::shared_ptr<const topology::Snapshot>>;

struct Batch {
  std::string cursor;
  std::vector<std::string> keys;
};

Batch batch(const std::string& raw) {
  const auto decoded = protocol::resp::decode(raw);
  if (!decoded || !*decoded || (*decoded)->value.items.size() != 2) {
    ADD_FAILURE() << raw;
    return {"0", {}};
  }
  Batch out{(*decoded)->value.items[0].text, {}};
  for (const auto& item : (*decoded)->value.items[1].items) out.keys.push_back(item.text);
  return out;
}

TEST(Scan, GivesEveryKeyOfEveryMemberOnce) {
  Cluster cluster(3);
  Client client = cluster.client();
  for (int i = 0; i < 500; ++i) ASSERT_EQ(client.ask({"SET", fmt::format("key:{}", i), "v"}), "+OK\r\n");
  for (int i = 0; i < 50; ++i) client.ask({"LPUSH", fmt::format("list:{}", i), "v"});
  Client(cluster.member(1).port()).ask({"SET", "rs:stamp", "1.1.open.x"});
  const auto whole = [&](std::vector<std::string_view> options) {
    std::multiset<std::string> keys;
    std::string cursor = "0";
    int steps = 0;
    do {
      std::vector<std::string_view> words = {"SCAN", cursor};
      words.insert(words.end(), options.begin(), options.end());
      std::string bytes;
      protocol::resp::append_command(bytes, words);
      client.send(bytes);
      Batch got = batch(client.reply());
      cursor = got.cursor;
      keys.insert(got.keys.begin(), got.keys.end());
    } while (cursor != "0" && ++steps < 2000);
    EXPECT_EQ(cursor, "0");
    return keys;
  };
  for (const auto& options :
       std::vector<std::vector<std::string_view>>{{}, {"COUNT", "1"}, {"COUNT", "100000"}}) {
    const auto keys = whole(options);
    EXPECT_EQ(keys.size(), 550U);
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), 550U);
    EXPECT_FALSE(keys.contains("rs:stamp"));
  }
  EXPECT_EQ(whole({"MATCH", "key:1?"}).size(), 10U);
  EXPECT_EQ(whole({"TYPE", "list", "COUNT", "77"}).size(), 50U);
  client.command({"HELLO", "3"});
  client.reply();
  EXPECT_EQ(whole({"COUNT", "7"}).size(), 550U);
}

TEST(Scan, AnswersMalformedOnesAsRedisDoes) {
  Cluster cluster(2);
  Client client = cluster.client();
  Client plain(cluster.member(0).port());
  const std::vector<std::vector<std::string_view>> cases = {{"SCAN", "x"},
                                                            {"SCAN", "99999999999999999999"},
                                                            {"SCAN", " 0"},
                                                            {"SCAN", "0x"},
                                                            {"SCAN", "0", "COUNT"},
                                                            {"SCAN", "0", "COUNT", "0"},
                                                            {"SCAN", "0", "COUNT", "a"},
                                                            {"SCAN", "0", "NONE", "a"},
                                                            {"SCAN"},
                                                            {"SCAN", ""},
                                                            {"SCAN", "+0"},
                                                            {"SCAN", "0"}};
  for (const auto& words : cases) {
    std::string bytes;
    protocol::resp::append_command(bytes, words);
    client.send(bytes);
    plain.send(bytes);
    EXPECT_EQ(client.reply(), plain.reply()) << words.back();
  }
  // Nothing that we gave out.
  EXPECT_EQ(client.ask({"SCAN", "2000"}), "-ERR invalid cursor\r\n");
  EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
}

TEST(Scan, AFailureLeavesItWhereItWas) {
  Options options;
  options.request_timeout = std::chrono::milliseconds(300);
  Cluster cluster(2, options);
  Client client = cluster.client();
  std::set<std::string> all;
  for (int i = 0; i < 100; ++i) client.ask({"SET", fmt::format("key:{}", i), "v"});
  std::string cursor = "0";
  std::size_t given = 0;
  bool failed = false;
  for (int i = 0; i < 300; ++i) {
    const std::string raw = client.ask({"SCAN", cursor, "COUNT", "5"});
    if (raw.starts_with('-')) {
      EXPECT_TRUE(failed) << raw;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    const Batch got = batch(raw);
    given += got.keys.size();
    all.insert(got.keys.begin(), got.keys.end());
    cursor = got.cursor;
    if (cursor == "0") break;
    if (given > 20 && !failed) {
      failed = true;
      ::kill(cluster.member(0).pid(), SIGSTOP);
      EXPECT_TRUE(client.ask({"SCAN", cursor, "COUNT", "5"}).starts_with("-T"));
      ::kill(cluster.member(0).pid(), SIGCONT);
    }
  }
  EXPECT_TRUE(failed);
  EXPECT_EQ(all.size(), 100U);
  EXPECT_EQ(given, 100U);
}

TEST(Scan, MoreScansThanItRememberAllComeToTheirEnd) {
  Cluster cluster(2);
  Client client = cluster.client();
  for (int i = 0; i < 60; ++i) client.ask({"SET", fmt::format("key:{}", i), "v"});
  std::vector<std::string> cursors(400, "0");
  std::vector<std::set<std::string>> keys(cursors.size());
  std::vector<bool> over(cursors.size(), false);
  for (int round = 0; round < 60; ++round) {
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      if (over[i]) continue;
      const Batch got = batch(client.ask({"SCAN", cursors[i], "COUNT", "10"}));
      keys[i].insert(got.keys.begin(), got.keys.end());
      cursors[i] = got.cursor;
      over[i] = got.cursor == "0";
    }
  }
  for (std::size_t i = 0; i < cursors.size(); ++i) {
    EXPECT_TRUE(over[i]);
    EXPECT_EQ(keys[i].size(), 60U);
  }
}

// --- the state, before members that are simulated exactly: a scan's cursor is a bucket of keys
// -----------------

// Keys of a cluster at members that move some of them; a member is scanned by the key's hash, as Redis does.
class World {
 public:
  static constexpr std::uint64_t kBuckets = 64;
  explicit World(std::uint32_t seed, int keys) : random_(seed) {
    for (int i = 0; i < keys; ++i) all_.push_back(fmt::format("k{}", i));
    topology_.spec.cluster = "test";
    set_members({1, 2, 3, 4});
    publish();
    for (const auto& key : all_) at_[key] = id(snapshot_->route(key).member);
  }
  void set_members(std::vector<int> numbers) { topology_.spec.members = members(std::move(numbers)); }
  void begin_resize(std::vector<int> numbers) {
    topology::Resize resize;
    resize.id = fmt::format("r{}", ++resizes_);
    resize.members = members(std::move(numbers));
    topology_.resize = resize;
    ++topology_.fence.epoch;
    publish();
  }
  void dual() {
    topology_.resize->phase = topology::Phase::dual;
    topology_.resize->active = {{0, topology::kSliceCount}};
    publish();
  }
  void roll_back() {
    topology_.resize->rollback = true;
    publish();
  }
  void end_resize() {
    move(1.0);
    if (!topology_.resize->rollback) topology_.spec.members = topology_.resize->members;
    topology_.resize.reset();
    publish();
  }
  // Moves about this share of what is yet to be moved.
  void move(double share) {
    for (const auto& key : all_) {
      const auto to = topology_.resize->rollback ? snapshot_->owner_before(key) : snapshot_->owner_after(key);
      if (at_[key] != id(to) && std::uniform_real_distribution<>(0, 1)(random_) < share) at_[key] = id(to);
    }
  }
  // A batch of a member: keys, and its next cursor.
  std::pair<std::vector<std::string>, std::uint64_t> scan(const std::string& member, std::uint64_t cursor) {
    std::vector<std::string> keys;
    const std::uint64_t end = std::min<std::uint64_t>(kBuckets, cursor + 1 + random_() % 20);
    for (const auto& key : all_) {
      const std::uint64_t bucket = std::hash<std::string>{}(member + key) % kBuckets;
      if (at_[key] == member && bucket >= cursor && bucket < end) keys.push_back(key);
    }
    return {keys, end == kBuckets ? 0 : end};
  }
  [[nodiscard]] std::string id(topology::MemberIndex member) const { return snapshot_->members()[member].id; }
  [[nodiscard]] const auto& snapshot() const { return snapshot_; }
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }
  [[nodiscard]] std::mt19937& random() { return random_; }
  [[nodiscard]] bool resizing() const { return topology_.resize.has_value(); }

 private:
  static std::vector<topology::Member> members(std::vector<int> numbers) {
    std::vector<topology::Member> out;
    for (const int number : numbers) {
      topology::Member member;
      member.id = fmt::format("m{}", number);
      member.address = fmt::format("127.0.0.1:{}", 7000 + number);
      out.push_back(member);
    }
    return out;
  }
  void publish() {
    auto compiled = topology::Snapshot::compile(topology_, {1, ++revision_});
    if (!compiled) throw std::runtime_error(compiled.error().message);
    snapshot_ = *compiled;
  }
  std::mt19937 random_;
  topology::Topology topology_;
  std::shared_ptr<const topology::Snapshot> snapshot_;
  std::uint64_t revision_ = 0;
  int resizes_ = 0;
  std::vector<std::string> all_;
  std::map<std::string, std::string> at_;
};

// One scan, between whose steps `event` does what it likes. Now and then an answer is lost and asked for
// again.
void scan_through(World& world, const std::function<void(int step)>& event) {
  ScanTable table;
  std::map<std::string, int> given;
  std::uint64_t cursor = 0;
  int step = 0;
  while (true) {
    ASSERT_LT(step, 3000) << "the scan does not end";
    event(step++);
    auto scan = table.find(cursor, {});
    ScanPosition position = scan->position_of(cursor);
    std::vector<std::string> keys;
    std::uint64_t next = 0;
    while (true) {
      const Snapshots views = {world.snapshot()};
      const auto target = scan->next(position, views);
      if (!target) break;
      auto [got, member_cursor] = world.scan(world.id(target->member), position.member_cursor);
      scan->take(position, member_cursor, got);
      keys = got;
      position.member_cursor = member_cursor;
      if (member_cursor == 0) ++position.place;
      if (!keys.empty() || member_cursor != 0) break;
    }
    event(-1);
    const Snapshots views = {world.snapshot()};
    next = scan->answer(position, views);
    if (cursor != 0 && world.random()() % 8 == 0) continue;  // The answer is lost.
    for (const auto& key : keys) ++given[key];
    if (next == 0) break;
    cursor = next;
  }
  for (const auto& key : world.all()) EXPECT_EQ(given[key], 1) << key;
}

TEST(ScanState, GrowthShrinkageAndRollbackAtAnyMoment) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed, 150);
    const std::vector<int> other =
        seed % 2 == 0 ? std::vector<int>{1, 2, 3, 4, 5} : std::vector<int>{1, 2, 3};
    const int begin = static_cast<int>(world.random()() % 30),
              length = static_cast<int>(world.random()() % 60);
    const bool back = world.random()() % 3 == 0;
    scan_through(world, [&](int step) {
      if (step == begin) world.begin_resize(other);
      if (step == begin + 1) world.dual();
      if (step > begin + 1 && world.resizing()) world.move(0.1);
      if (back && step == begin + length / 2 + 2) world.roll_back();
      if (step == begin + length + 3) world.end_resize();
      if (step < 0 && world.resizing() && world.random()() % 3 == 0) world.move(0.05);
    });
    if (HasFailure()) return;
  }
}

TEST(ScanState, OneResizeAfterAnother) {
  for (std::uint32_t seed = 1000; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed, 150);
    const std::vector<std::vector<int>> targets = {{1, 2, 3, 4, 5}, {1, 2, 4, 5}, {2, 4, 5, 6}, {1, 2, 3}};
    std::size_t next = 0;
    scan_through(world, [&](int step) {
      if (step < 0) return;
      if (!world.resizing() && next < targets.size() && world.random()() % 6 == 0) {
        world.begin_resize(targets[next++]);
        world.dual();
      } else if (world.resizing()) {
        world.move(0.2);
        if (world.random()() % 8 == 0) world.end_resize();
      }
    });
    if (HasFailure()) return;
  }
}

// Without a resize nothing is remembered for long, and no member is asked twice.
TEST(ScanState, AQuietScanVisitsEachMemberOnce) {
  World world(1, 300);
  std::map<std::string, int> visits;
  ScanTable table;
  std::uint64_t cursor = 0;
  do {
    auto scan = table.find(cursor, {});
    ScanPosition position = scan->position_of(cursor);
    const Snapshots views = {world.snapshot()};
    const auto target = scan->next(position, views);
    ASSERT_TRUE(target);
    if (position.member_cursor == 0) ++visits[world.id(target->member)];
    auto [got, member_cursor] = world.scan(world.id(target->member), position.member_cursor);
    scan->take(position, member_cursor, got);
    position.member_cursor = member_cursor;
    if (member_cursor == 0) ++position.place;
    cursor = scan->answer(position, views);
  } while (cursor != 0);
  EXPECT_EQ(visits, (std::map<std::string, int>{{"m1", 1}, {"m2", 1}, {"m3", 1}, {"m4", 1}}));
}

TEST(ScanState, CursorsHoldWhatTheyAreMadeOf) {
  const ScanPosition position{ScanPosition::kMaxMemberCursor, 255, 1, 2047};
  const ScanPosition back = ScanPosition::of(position.cursor());
  EXPECT_EQ(back.member_cursor, position.member_cursor);
  EXPECT_EQ(back.name, 255U);
  EXPECT_EQ(back.pass, 1U);
  EXPECT_EQ(back.place, 2047U);
}

}  // namespace
}  // namespace ringshift::proxy
