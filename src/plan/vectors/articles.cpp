// seed_figures.json: the experiments of published articles, run again by their own rings (article_rings.h).
// The Python article's is not computed: its cases fail.
#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "plan/vectors/article_rings.h"
#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

// What a figure of the file is, "" when it is not there (and then nothing is compared).
void expect_number(const Node& node, std::string_view name, double ours, Comparison& comparison) {
  if (const auto recorded = number(text(node, name))) comparison.expect(std::string(name), *recorded, ours);
}
void expect_list(const Node& node, std::string_view name, const std::vector<std::uint64_t>& ours,
                 Comparison& comparison) {
  const Node* list = node.find(name);
  for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
    comparison.expect(fmt::format("{} {}", name, i), base::parse_u64(list->items[i].text).value_or(~0ULL),
                      i < ours.size() ? ours[i] : ~std::uint64_t{0});
  }
}

void go(const Node& seed, File& out) {
  const auto run = [&](const std::string& name, const Options& options, const Node& figures) {
    Case& result = out.cases.emplace_back();
    result.name = name;
    Comparison comparison(result);
    const GoFigures ours = article_go(options);
    const int digits = has(figures, "v") ? 2 : 3;
    expect_number(figures, "moved_pct", ours.moved_percent, comparison);
    expect_number(figures, "maxmin", rounded(ours.max_by_min, digits), comparison);
    expect_list(figures, "new", ours.after, comparison);
  };
  if (const Node* rows = seed.find("rows")) {
    for (const Node& row : rows->items) {
      run("article-go " + text(row, "v") + " points", {{"vnodes", text(row, "v")}}, row);
    }
  }
  if (const Node* md5 = seed.find("md5_instead_v200"))
    run("article-go md5", {{"hash", "md5"}, {"vnodes", "200"}}, *md5);
  if (const Node* xxh3 = seed.find("xxh3_hi32_instead_v200"))
    run("article-go xxh3", {{"hash", "xxh3"}, {"vnodes", "200"}}, *xxh3);
  if (!has(seed, "modulo_4_5_pct")) return;
  Case& result = out.cases.emplace_back();
  result.name = "article-go modulo";
  Comparison comparison(result);
  expect_number(seed, "modulo_4_5_pct", article_go_modulo_percent(), comparison);
}

void php(const Node& seed, File& out) {
  const auto run = [&](const std::string& field, const Options& options) {
    const Node* figures = seed.find(field);
    if (figures == nullptr) return;
    Case& result = out.cases.emplace_back();
    result.name = "article-php " + field;
    Comparison comparison(result);
    const PhpFigures ours = article_php(options);
    expect_list(*figures, "old", ours.before, comparison);
    expect_list(*figures, "new", ours.after, comparison);
    expect_number(*figures, "sd", ours.sd, comparison);
    expect_number(*figures, "moved", static_cast<double>(ours.moved), comparison);
  };
  run("one_million user:i:profile v160", {{"vnodes", "160"}});
  run("v1000", {{"vnodes", "1000"}});
  run("v1", {{"vnodes", "1"}});
  run("md5_v160", {{"hash", "md5"}, {"vnodes", "160"}});
}

void js(const Node& seed, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = "article-js";
  Comparison comparison(result);
  std::vector<double> ratios;
  for (const char* points : {"1", "10", "160"}) {
    const JsFigures ours = article_js(points);
    expect_list(seed, std::string("v") + points, ours.counts, comparison);
    ratios.push_back(ours.max_by_min);
  }
  if (const Node* recorded = seed.find("maxmin")) {
    for (std::size_t i = 0; i < std::min(ratios.size(), recorded->items.size()); ++i)
      comparison.expect(fmt::format("maxmin {}", i), number(recorded->items[i].text).value_or(-1), ratios[i]);
  }
  const JsMoved moved = article_js_moved();
  expect_number(seed, "ring_3_4_pct", moved.added, comparison);
  expect_number(seed, "ring_drop_c_pct", moved.dropped, comparison);
  expect_number(seed, "modulo_3_4_pct", moved.modulo, comparison);
}

// What its ring's points are made of is not known: every figure counts as asked, and none as matched.
void python(const Node& seed, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = "seed3_py";
  for (const char* name : {"before", "after_add", "moved_add_pct", "after_drop_node2", "moved_drop_pct"}) {
    const Node* figure = seed.find(name);
    if (figure != nullptr) result.asked += figure->kind == Node::Kind::list ? figure->items.size() : 1;
  }
  result.problem = "not computed here: what the article's ring hashes for its points is not known";
}

// "6->8": the share that hash % N moves, over evenly spread hashes: 1 - min(N, M) / lcm(N, M).
void modulo(const Node& figures, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = "modulo_exact_moved_pct";
  Comparison comparison(result);
  for (std::size_t i = 0; i < figures.items.size(); ++i) {
    const std::string& change = figures.names[i];
    const auto arrow = change.find("->");
    const auto from = base::parse_u64(change.substr(0, arrow));
    const auto to = arrow == std::string::npos ? from : base::parse_u64(change.substr(arrow + 2));
    if (!from || !to || *from == 0 || *to == 0 || *from > 1'000'000 || *to > 1'000'000) {
      result.problem = fmt::format("'{:.40}' is no change of two counts", change);
      continue;
    }
    comparison.expect(change, number(figures.items[i].text).value_or(-1), modulo_moved_percent(*from, *to));
  }
}

}  // namespace

void check_articles(const Node& root, File& out) {
  if (const Node* seed = root.find("seed0_go")) go(*seed, out);
  if (const Node* seed = root.find("seed1_php")) php(*seed, out);
  if (const Node* seed = root.find("seed2_js")) js(*seed, out);
  if (const Node* seed = root.find("seed3_py")) python(*seed, out);
  if (const Node* figures = root.find("modulo_exact_moved_pct")) modulo(*figures, out);
}

}  // namespace ringshift::plan::vectors
