// The vectors reader: every recording matches, and whatever is wrong with one is named.
#include "plan/vectors/vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ringshift::plan::vectors {
namespace {

using testing::HasSubstr;

const std::string kFolder = RINGSHIFT_SOURCE_DIR "/tests/vectors/";

Result<std::string> content(const std::string& name) {
  const std::ifstream file(kFolder + name);
  if (!file) return fail(ErrorKind::not_found, name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Recording : public testing::TestWithParam<std::string> {};

TEST_P(Recording, MatchesEveryAnswer) {
  const auto checked = check(*content(GetParam()), GetParam(), content);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(checked->recorded, GetParam() != "keys.json");
  for (const Case& one : checked->cases) {
    EXPECT_EQ(one.problem, "") << one.name;
    EXPECT_EQ(one.matched, one.asked) << one.name;
    EXPECT_GT(one.asked, 0U) << one.name << ": a case without answers proves nothing";
  }
}

std::vector<std::string> recordings() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".json") && name != "seed_figures.json")
      names.push_back(name);  // See CMakeLists.txt there.
  }
  std::ranges::sort(names);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Folder, Recording, testing::ValuesIn(recordings()),
                         [](const auto& one) { return one.param.substr(0, one.param.find('.')); });

File checked(const std::string& text) {
  const auto out = check(
      text, "file", [](const std::string&) -> Result<std::string> { return R"({"keys": ["61", "62"]})"; });
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? *out : File{};
}

std::string one_case(const std::string& peer, const std::string& fields) {
  return R"({"peer": ")" + peer + R"(", "cases": [{"id": "x", )" + fields + "}]}";
}

TEST(Vectors, WhatIsNotKnownIsNamedAndFails) {
  const std::string servers = R"("servers": ["h1:1:1", "h2:2:1"], "assign": "00")";
  const std::pair<std::string, const char*> cases[] = {
      {one_case("somebody's cache", servers), "peer 'somebody's cache' is not known"},
      {one_case("twemproxy", R"("distribution": "random", )" + servers), "distribution"},
      {one_case("twemproxy", R"("distribution": "modula", "hash": "md6", )" + servers),
       "'md6' is not one of"},
      {one_case("nginx", R"("directive": "hash $key sticky;", )" + servers), "directive"},
      {one_case("twemproxy", R"("servers": ["h1:1:x y=z"], "assign": "00")"), "'y=z' of server"},
      {one_case("twemproxy", R"("servers": ["h1:1:1"], "assign": "000")"), "3 answers for 2 keys"},
      {one_case("twemproxy", R"("assign": "00")"), "no list 'servers'"},
      {one_case("npm hashring", R"("options": {"shuffle": 1}, )" + servers),
       "option 'shuffle' is not known"}};
  for (const auto& [text, problem] : cases) {
    const File file = checked(text);
    ASSERT_EQ(file.cases.size(), 1U);
    EXPECT_THAT(file.cases[0].problem, HasSubstr(problem));
  }
  EXPECT_FALSE(check("{}", "file", content)) << "no recording at all";
  EXPECT_FALSE(check("[", "file", content));
}

TEST(Vectors, TheArticlesMatchButForTheOneThatIsNotComputed) {
  const auto articles = check(*content("seed_figures.json"), "seed_figures.json", content);
  ASSERT_TRUE(articles) << articles.error().message;
  EXPECT_GT(articles->cases.size(), 5U);
  for (const Case& one : articles->cases) {
    if (one.name == "seed3_py") {
      EXPECT_THAT(one.problem, HasSubstr("is not known"));
      EXPECT_EQ(one.not_computed, 12U);
      EXPECT_EQ(one.asked, 0U);
      continue;
    }
    EXPECT_EQ(one.problem, "") << one.name;
    EXPECT_EQ(one.matched, one.asked) << one.name;
  }
}

TEST(Vectors, AMismatchIsCountedAndShown) {
  const File file = checked(one_case(
      "twemproxy", R"("distribution": "modula", "hash": "fnv1a_64", "servers": ["h1:1:1", "h2:1:1"],)"
                   R"( "assign": "01")"));
  const File turned = checked(one_case(
      "twemproxy", R"("distribution": "modula", "hash": "fnv1a_64", "servers": ["h1:1:1", "h2:1:1"],)"
                   R"( "assign": "10")"));
  ASSERT_EQ(file.cases.size(), 1U);
  EXPECT_EQ(file.cases[0].asked, 2U);
  EXPECT_EQ(file.cases[0].matched + turned.cases[0].matched, 2U) << "the answers are each other's opposites";
  ASSERT_EQ(file.cases[0].answers.size(), 1U);
  EXPECT_EQ(file.cases[0].answers[0].json, turned.cases[0].answers[0].json)
      << "--record writes ours, whatever was recorded";
  EXPECT_EQ(file.cases[0].answers[0].pointer, "/cases/0/assign");
}

TEST(Vectors, ServersMayBeWrittenInAnyForm) {
  const char* forms[] = {R"(["10.0.0.1:11211:2", "10.0.0.2:11211:1"])",
                         R"([["10.0.0.1", 11211, 2], ["10.0.0.2", 11211, 1]])",
                         R"([["10.0.0.1:11211", 2], ["10.0.0.2:11211", 1]])",
                         R"([{"addr": "10.0.0.1:11211", "weight": 2}, {"host": "10.0.0.2", "port": 11211}])",
                         R"({"10.0.0.1:11211": 2, "10.0.0.2:11211": 1})",
                         R"(["10.0.0.1:11211", "10.0.0.2:11211"], "weights": [2, 1])",
                         R"(["10.0.0.1:11211 weight=2", "10.0.0.2:11211"])"};
  std::string first;
  for (const char* form : forms) {
    const File file =
        checked(one_case("twemproxy", std::string(R"("hash": "md5", "assign": "00", "servers": )") + form));
    ASSERT_EQ(file.cases.size(), 1U);
    ASSERT_FALSE(file.cases[0].answers.empty()) << form << file.cases[0].problem;
    if (first.empty()) first = file.cases[0].answers[0].json;
    EXPECT_EQ(file.cases[0].answers[0].json, first) << form;
  }
}

TEST(Vectors, ABlockThatIsNotUnderstoodIsNamedAndFails) {
  const File file =
      checked(R"({"peer": "twemproxy", "cases": [], "surprise": [{"a": 1}], "note": ["fine"]})");
  ASSERT_EQ(file.cases.size(), 1U);
  EXPECT_THAT(file.cases[0].problem, HasSubstr("the block 'surprise'"));
}

TEST(Vectors, BlocksAreToldByWhatTheyHold) {
  const std::string one =
      R"({"id": "x", "distribution": "modula", "servers": ["h1:1:1", "h2:1:1"], "assign": "--"})";
  for (const std::string& text :
       {R"({"peer": "twemproxy", "weighted": [)" + one + "]}",
        R"({"other": {"peer": "nutcracker 0.5", "version": "0.5", "cases": [)" + one + "]}}",
        R"({"twemproxy": {"cases": [)" + one + "]}}"}) {
    const File file = checked(text);
    ASSERT_EQ(file.cases.size(), 1U) << text;
    EXPECT_EQ(file.cases[0].problem, "") << text;
  }
}

TEST(Vectors, ACaseMayHaveItsOwnKeys) {
  const std::string fields = R"("distribution": "modula", "servers": ["h1:1:1"], )";
  EXPECT_EQ(checked(one_case("twemproxy", fields + R"("keys": ["61"], "assign": "0")")).cases[0].matched, 1U);
  EXPECT_EQ(checked(one_case("twemproxy", fields + R"("keys_file": "other.json", "assign": "0-")"))
                .cases[0]
                .matched,
            1U);
  EXPECT_THAT(checked(one_case("twemproxy", fields + R"("keys": ["xyz"], "assign": "0")")).cases[0].problem,
              HasSubstr("key 0 is not hex"));
}

TEST(Vectors, AnswersMayBeAListOfIndicesOrNames) {
  const std::string fields =
      R"("distribution": "modula", "hash": "crc32a", "servers": ["h1:1:1 a", "h2:1:1 b"], )";
  const File by_index = checked(one_case("twemproxy", fields + R"("assign": [0, 1])"));
  const File by_name = checked(one_case("twemproxy", fields + R"("assign": ["a", "h2:1"])"));
  const File partly = checked(one_case("twemproxy", fields + R"("assign": [null, 1])"));
  EXPECT_EQ(by_index.cases[0].asked, 2U);
  EXPECT_EQ(by_index.cases[0].matched, by_name.cases[0].matched);
  EXPECT_EQ(partly.cases[0].asked, 1U);
  EXPECT_THAT(partly.cases[0].answers[0].json, testing::StartsWith("[null,"));
  EXPECT_THAT(checked(one_case("twemproxy", fields + R"("assign": ["a", "c"])")).cases[0].problem,
              HasSubstr("answer 1 'c' is neither"));
  EXPECT_THAT(checked(one_case("twemproxy", fields + R"("assign": "0!")")).cases[0].problem,
              HasSubstr("answer 1 is the byte 0x21"));
}

// From Cilium's own test of its table (pkg/maglev, "reproducible"): addresses and weights as there.
constexpr char kCilium[] =
    R"("M": 251, "hosts": ["0.0.0.1:1", "0.0.0.3:3", "0.0.0.4:4", "0.0.0.5:5"], "weights": [2, 13, 111, 10], )"
    R"("table": "2(5),3(1),2(3),1(1),2(2),0(1),2(1),3(1),2(1),3(1),2(1),1(1),2(7),1(1),2(14),3(1),2(1),)"
    R"(1(2),2(12),3(1),2(3),1(1),2(4),3(1),2(8),3(1),2(2),1(1),2(16),1(2),2(3),3(1),2(11),1(2),2(4),3(1),2(3),)"
    R"(1(1),2(4),3(1),2(1),0(1),1(1),2(8),1(1),2(7),1(1),2(4),3(1),2(1),3(1),2(9),1(2),2(5),1(1),2(7),3(1),2(1),)"
    R"(3(1),1(1),2(8),1(1),2(4),0(1),2(1),1(1),2(5),3(1),2(3),1(1),2(4),3(1),2(3),1(1),2(12),0(1),3(1),2(3),3(1),)"
    R"--(2(4),3(1),2(2),1(1),2(7)")--";

TEST(Vectors, CiliumsPublishedTable) {
  for (const std::string& text : {R"({"peer": "Cilium", "published": [{)" + std::string(kCilium) + "}]}",
                                  R"({"cilium": {)" + std::string(kCilium) + "}}",
                                  R"({"seed": "JLfvgnHc2kaSUFaI", )" + std::string(kCilium) + "}"}) {
    const File file = checked(text);
    ASSERT_EQ(file.cases.size(), 1U) << text;
    EXPECT_EQ(file.cases[0].problem, "") << text;
    EXPECT_EQ(file.cases[0].matched, 251U) << text;
  }
  const File other =
      checked(R"({"peer": "Cilium", "seed": 7, "published": [{)" + std::string(kCilium) + "}]}");
  EXPECT_THAT(other.cases[0].problem, HasSubstr("recorded 2, computed"));
  // Its test of removal counts the entries of four backends in a table of 1021.
  const File counts = checked(
      R"({"peer": "Cilium", "M": 1021, "published": [{"backends": [{"addr": "0.0.0.1:1", "weight": 2, "id": 1},)"
      R"({"addr": "0.0.0.2:2", "weight": 13, "id": 2}, {"addr": "0.0.0.3:3", "weight": 111, "id": 3},)"
      R"({"addr": "0.0.0.4:4", "weight": 10, "id": 4}], "counts": {"1": 16, "2": 98, "3": 832, "4": 75}}]})");
  EXPECT_EQ(counts.cases[0].problem, "");
  EXPECT_EQ(counts.cases[0].matched, 4U);
}

}  // namespace
}  // namespace ringshift::plan::vectors
