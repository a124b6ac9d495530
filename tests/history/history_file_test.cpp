// A history on disk: what was written is what is read, and what is no history is refused by its line.
#include "check/history_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "check/judge.h"
#include "check/value.h"
#include "tests/history/notation.h"

namespace ringshift::check {
namespace {

class HistoryFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  std::string read_error() {
    const auto header = read_history(path_, [](const auto&) {}, [](const auto&) {});
    return header ? "none" : header.error().message;
  }

  const std::string path_ =
      std::filesystem::temp_directory_path() / ("history-" + std::to_string(::getpid()) + ".jsonl");
};

TEST_F(HistoryFile, WhatWasWrittenIsRead) {
  History hash = parse_history(
      Kind::hash, {"0 0..1 HSET a x 1", "1 2..3 HGETALL a=x", "2 4..? HDEL a", "2 5..6 HGET a nil"});
  History expiry = parse_history(Kind::expiry, {"0 0..1 SETPX a 100", "1 2..- PTTL"});
  for (Operation& op : expiry.operations) op.key = "other";
  {
    auto writer =
        HistoryWriter::create(path_, {7, {"127.0.0.1:1", "127.0.0.1:2"}, std::chrono::milliseconds(9)});
    ASSERT_TRUE(writer);
    (*writer)->write(hash.operations);
    (*writer)->write(expiry.operations);
    ASSERT_TRUE((*writer)->close());
  }
  std::vector<std::vector<Operation>> keys;
  const auto header = read_history(
      path_, [](const HistoryHeader& begin) { EXPECT_EQ(begin.ttl_slack.count(), 9); },
      [&](std::vector<Operation> operations) { keys.push_back(std::move(operations)); });
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->seed, 7U);
  EXPECT_EQ(header->proxies.size(), 2U);
  ASSERT_EQ(keys.size(), 2U);
  for (const auto& [read, written] :
       {std::pair{keys[0], hash.operations}, std::pair{keys[1], expiry.operations}}) {
    ASSERT_EQ(read.size(), written.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
      EXPECT_EQ(describe(read[i]), describe(written[i]));
      EXPECT_EQ(read[i].key, written[i].key);
      EXPECT_EQ(read[i].invoked, written[i].invoked);
      EXPECT_EQ(read[i].returned, written[i].returned);
      EXPECT_EQ(read[i].outcome, written[i].outcome);
      EXPECT_EQ(read[i].client, written[i].client);
    }
  }
}

TEST_F(HistoryFile, WhatIsNoHistoryIsRefusedByItsLine) {
  const std::string head = "{\"ringshift_history\":1}\n";
  const std::string op =
      R"({"kind":"register","key":"k","client":1,"verb":"GET","invoked_ns":5,"returned_ns":6,"outcome":"answered"})";
  EXPECT_THAT(read_error(), testing::HasSubstr(path_));
  write("");
  EXPECT_THAT(read_error(), testing::HasSubstr("empty"));
  write("{}\n");
  EXPECT_THAT(read_error(), testing::HasSubstr(":1: no history of version 1"));
  write(head + "nonsense\n");
  EXPECT_THAT(read_error(), testing::HasSubstr(":2: "));
  write(head + R"({"kind":"rope","key":"k","client":1,"verb":"GET","invoked_ns":5,"outcome":"answered"})");
  EXPECT_THAT(read_error(), testing::HasSubstr("'rope' is no kind"));
  write(head + R"({"kind":"register","key":"k","client":1,"verb":"GET","outcome":"answered"})");
  EXPECT_THAT(read_error(), testing::HasSubstr("invoked_ns"));
  std::string other = op;
  other.replace(other.find("\"k\""), 3, "\"j\"");
  write(head + op + "\n" + other + "\n" + op + "\n");
  EXPECT_THAT(read_error(), testing::HasSubstr(":4: key k again"));
  write(head + op + "\n" + other + "\n");
  EXPECT_EQ(read_error(), "none");
}

TEST(Value, IsKnownAgainToItsLastByte) {
  for (const std::size_t size : {0U, 3U, 40U, 5000U, 1000000U}) {
    const std::string value = long_value("v1.2", size);
    EXPECT_EQ(value.size(), size < 10 ? 4 : size);
    EXPECT_EQ(token_of(value), "v1.2");
  }
  std::string value = long_value("v1.2", 5000);
  EXPECT_THAT(token_of(value.substr(0, 4999)), testing::StartsWith("corrupt v1.2"));
  value[4000] = '-';
  EXPECT_THAT(token_of(value), testing::StartsWith("corrupt v1.2"));
  EXPECT_THAT(token_of(long_value("v1.3", 5000).substr(0, 2500) + long_value("v1.2", 5000).substr(2500)),
              testing::StartsWith("corrupt v1.3"));
}

}  // namespace
}  // namespace ringshift::check
