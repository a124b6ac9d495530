// A file of instances: its form, and how changes of it are noticed.
#include "discovery/file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/discovery/collect.h"

namespace ringshift::discovery {
namespace {

namespace fs = std::filesystem;

TEST(InstanceFile, YamlAndJsonAndBothShapes) {
  const char* texts[] = {
      "- {id: b, address: '10.0.0.2:6379', state: draining, labels: {zone: a, rack: 7}}\n- {id: a, address: "
      "'10.0.0.1:6379'}\n",
      "instances:\n  - id: a\n    address: 10.0.0.1:6379\n  - id: b\n    address: 10.0.0.2:6379\n    state: "
      "draining\n"
      "    labels: {zone: a, rack: 7}\n",
      R"({"instances":[{"id":"a","address":"10.0.0.1:6379"},
          {"id":"b","address":"10.0.0.2:6379","state":"draining","labels":{"zone":"a","rack":7}}]})",
  };
  for (const char* text : texts) {
    const auto all = parse_instances(text, "x.yaml");
    ASSERT_TRUE(all) << all.error().message;
    ASSERT_EQ(all->size(), 2U);
    EXPECT_EQ((*all)[0], (Instance{"a", "10.0.0.1:6379", "redis", InstanceState::ready, {}}));
    EXPECT_EQ(
        (*all)[1],
        (Instance{"b", "10.0.0.2:6379", "redis", InstanceState::draining, {{"rack", "7"}, {"zone", "a"}}}));
  }
  EXPECT_TRUE(parse_instances("[]", "x")->empty());
}

TEST(InstanceFile, RefusalsNameThePlaceAndTheFix) {
  const struct {
    const char* text;
    const char* says;
  } bad[] = {
      {"", "x.yaml: instances: a list of instances belongs here"},
      {"instances: 3", "x.yaml:1: instances: a list of instances belongs here"},
      {"instances:\n- {id: a, addres: 'h:1'}", "did you mean 'address'?"},
      {"- {id: a, address: 'h:1'}\n- {address: 'h:2'}", "x.yaml:2: instances[1]: the field 'id' is missing"},
      {"- {id: a, address: 'h'}", "x.yaml:1: instances[0]: address 'h' has no port"},
      {"- {id: 'a b', address: 'h:1'}", "instances[0]: id 'a b' has characters"},
      {"- {id: a, address: 'h:1', state: up}", "state: 'up' is not one of ready, unhealthy, draining"},
      {"- {id: a, address: 'h:1', protocol: http}", "protocol 'http' is neither redis nor memcached"},
      {"- {id: a, address: 'h:1'}\n- {id: b, address: 'h:1'}", "address h:1 is there twice, for 'a' and 'b'"},
      {"- {id: a, address: 'h:1', labels: [1]}", "labels: a map of label to value belongs here"},
      {"- {id: a, address: 'h:1'", "x.yaml:"},
      {"- {id: a, address: 'h:1', weight: 3}", "weight"},
  };
  for (const auto& one : bad) {
    const auto all = parse_instances(one.text, "x.yaml");
    ASSERT_FALSE(all) << one.text;
    EXPECT_NE(all.error().message.find(one.says), std::string::npos) << all.error().message;
  }
}

struct FileSourceTest : testing::Test {
  fs::path directory;
  Collect sink;
  std::unique_ptr<Source> source;

  void SetUp() override {
    char name[] = "/tmp/ringshift-file-XXXXXX";
    directory = mkdtemp(name);
  }
  void TearDown() override {
    source.reset();
    fs::remove_all(directory);
  }
  static void write(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }
  void replace(const fs::path& path, std::string_view text) {
    write(directory / "next", text);
    fs::rename(directory / "next", path);
  }
  // A poll of minutes: what is seen is seen by inotify.
  void start(const fs::path& path, const char* poll = "10m") {
    auto made = make_source(*read_options("file", {{"path", path.string()}, {"poll", poll}}));
    source = *std::move(made);
    ASSERT_TRUE(source->start(sink));
  }
  bool lists(std::size_t count) {
    return sink.wait([&, count] { return sink.lists().size() >= count; });
  }
  bool troubles(std::size_t count) {
    return sink.wait([&, count] { return sink.troubles().size() >= count; });
  }
};

TEST_F(FileSourceTest, AtomicReplacementIsNoticedAndAParseErrorKeepsTheLast) {
  const fs::path path = directory / "list.yaml";
  write(path, "- {id: a, address: 'h:1'}");
  start(path);
  ASSERT_TRUE(lists(1));
  replace(path, "- {id: a, address: 'h:1'}\n- {id: b, address: 'h:2'}");
  ASSERT_TRUE(lists(2));
  EXPECT_EQ(sink.lists()[1].size(), 2U);
  replace(path, "- {id: a, address: 'h:1'}\n- {id: b");
  ASSERT_TRUE(troubles(1));
  EXPECT_NE(sink.troubles()[0].message.find(path.string() + ":2"), std::string::npos)
      << sink.troubles()[0].message;
  EXPECT_NE(sink.troubles()[0].message.find("the last list stands"), std::string::npos);
  EXPECT_EQ(sink.lists().size(), 2U);
  // Whole again, and the same as before: told, for the trouble is over.
  replace(path, "- {id: a, address: 'h:1'}\n- {id: b, address: 'h:2'}");
  ASSERT_TRUE(lists(3));
  fs::remove(path);
  ASSERT_TRUE(troubles(2));
  EXPECT_EQ(sink.troubles()[1].kind, ErrorKind::not_found);
  replace(path, "[]");
  ASSERT_TRUE(lists(4));
  EXPECT_TRUE(sink.lists()[3].empty());
}

TEST_F(FileSourceTest, ASwappedLinkAsKubernetesMakesIt) {
  fs::create_directory(directory / "..1");
  write(directory / "..1/list.yaml", "- {id: a, address: 'h:1'}");
  fs::create_directory_symlink("..1", directory / "..data");
  fs::create_symlink("..data/list.yaml", directory / "list.yaml");
  start(directory / "list.yaml");
  ASSERT_TRUE(lists(1));
  fs::create_directory(directory / "..2");
  write(directory / "..2/list.yaml", "- {id: b, address: 'h:2'}");
  fs::create_directory_symlink("..2", directory / "..data_tmp");
  fs::rename(directory / "..data_tmp", directory / "..data");
  fs::remove_all(directory / "..1");
  ASSERT_TRUE(lists(2));
  EXPECT_EQ(sink.lists()[1][0].id, "b");
}

TEST_F(FileSourceTest, WhatInotifyDoesNotSeeThePollDoes) {
  // The directory comes later than we: there is nothing to watch.
  const fs::path path = directory / "later" / "list.yaml";
  start(path, "100ms");
  ASSERT_TRUE(troubles(1));
  fs::create_directory(directory / "later");
  write(directory / "next", "- {id: a, address: 'h:1'}");
  fs::rename(directory / "next", path);
  ASSERT_TRUE(lists(1));
  // And a directory that is replaced as a whole is watched anew.
  fs::create_directory(directory / "other");
  write(directory / "other/list.yaml", "- {id: b, address: 'h:2'}");
  fs::rename(directory / "later", directory / "old");
  fs::rename(directory / "other", directory / "later");
  ASSERT_TRUE(sink.wait([&] { return !sink.lists().empty() && sink.lists().back()[0].id == "b"; }));
  replace(path, "- {id: c, address: 'h:3'}");
  ASSERT_TRUE(sink.wait([&] { return sink.lists().back()[0].id == "c"; }));
}

}  // namespace
}  // namespace ringshift::discovery
