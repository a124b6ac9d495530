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
      EXPECT_THAT(one.problem, HasSubstr("not computed here"));
      EXPECT_EQ(one.asked, 12U) << "its figures count, and fail";
      EXPECT_EQ(one.matched, 0U);
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
  EXPECT_EQ(file.cases[0].answer, turned.cases[0].answer) << "--record writes ours, whatever was recorded";
  EXPECT_EQ(file.cases[0].pointer, "/cases/0/assign");
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
    ASSERT_FALSE(file.cases[0].answer.empty()) << form << file.cases[0].problem;
    if (first.empty()) first = file.cases[0].answer;
    EXPECT_EQ(file.cases[0].answer, first) << form;
  }
}

}  // namespace
}  // namespace ringshift::plan::vectors
