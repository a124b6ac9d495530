// seed_figures.json: the experiments of published articles, run again by their own rings (article_rings.h).
// The Python article's is not computed: its cases fail.
#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "plan/vectors/article_rings.h"
#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

// What a figure of the file is; nothing is compared when it is not there.
void expect_number(const Place& place, std::string_view name, double ours, Comparison& comparison) {
  if (has(place.node, name)) {
    comparison.expect_at(place.at + step(name), std::string(name),
                         number(text(place.node, name)).value_or(-1), ours);
  }
}
void expect_list(const Place& place, std::string_view name, const std::vector<std::uint64_t>& ours,
                 Comparison& comparison) {
  const auto list = place.child(name);
  for (std::size_t i = 0; list && i < list->node.items.size(); ++i) {
    comparison.expect_at(list->child(i).at, fmt::format("{} {}", name, i),
                         base::parse_u64(list->node.items[i].text).value_or(~0ULL),
                         i < ours.size() ? ours[i] : ~std::uint64_t{0});
  }
}

void go(const Place& seed, File& out) {
  const auto run = [&](const std::string& name, const Options& options, const Place& figures) {
    Case& result = out.cases.emplace_back();
    result.name = name;
    Comparison comparison(result);
    const GoFigures ours = article_go(options);
    const int digits = has(figures.node, "v") ? 2 : 3;
    expect_number(figures, "moved_pct", ours.moved_percent, comparison);
    expect_number(figures, "maxmin", rounded(ours.max_by_min, digits), comparison);
    expect_list(figures, "new", ours.after, comparison);
  };
  if (const auto rows = seed.child("rows")) {
    for (std::size_t i = 0; i < rows->node.items.size(); ++i) {
      const Place row = rows->child(i);
      run("article-go " + text(row.node, "v") + " points", {{"vnodes", text(row.node, "v")}}, row);
    }
  }
  if (const auto md5 = seed.child("md5_instead_v200"))
    run("article-go md5", {{"hash", "md5"}, {"vnodes", "200"}}, *md5);
  if (const auto xxh3 = seed.child("xxh3_hi32_instead_v200"))
    run("article-go xxh3", {{"hash", "xxh3"}, {"vnodes", "200"}}, *xxh3);
  if (!has(seed.node, "modulo_4_5_pct")) return;
  Case& result = out.cases.emplace_back();
  result.name = "article-go modulo";
  Comparison comparison(result);
  expect_number(seed, "modulo_4_5_pct", article_go_modulo_percent(), comparison);
}

// The article's first example: where 100 keys are, by the names of its nodes, and whether one of them moves.
void php_example(const Place& seed, File& out) {
  if (!has(seed.node, "example_100_keys") && !has(seed.node, "key42_before")) return;
  Case& result = out.cases.emplace_back();
  result.name = "article-php example";
  Comparison comparison(result);
  const PhpExample ours = article_php_example(100);
  if (const auto nodes = seed.child("example_100_keys")) {
    for (std::size_t i = 0; i < nodes->node.items.size() && nodes->node.kind == Node::Kind::map; ++i) {
      const std::string& name = nodes->node.names[i];
      const auto at =
          name.starts_with("node") ? base::parse_u64(std::string_view(name).substr(4)) : std::nullopt;
      const bool known = at && *at >= 1 && *at <= ours.counts.size();
      comparison.expect_at(nodes->child(i).at, name,
                           base::parse_u64(nodes->node.items[i].text).value_or(~0ULL),
                           known ? ours.counts[*at - 1] : ~std::uint64_t{0});
    }
  }
  for (const bool grown : {false, true}) {
    const char* name = grown ? "key42_after" : "key42_before";
    if (!has(seed.node, name)) continue;
    comparison.expect_at(seed.at + step(name), name, text(seed.node, name),
                         grown ? ours.key42_after : ours.key42_before);
  }
}

void php(const Place& seed, File& out) {
  const auto run = [&](const std::string& field, const Options& options) {
    const auto figures = seed.child(field);
    if (!figures) return;
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
  php_example(seed, out);
}

void js(const Place& seed, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = "article-js";
  Comparison comparison(result);
  std::vector<double> ratios;
  for (const char* points : {"1", "10", "160"}) {
    const JsFigures ours = article_js(points);
    expect_list(seed, std::string("v") + points, ours.counts, comparison);
    ratios.push_back(ours.max_by_min);
  }
  if (const auto recorded = seed.child("maxmin")) {
    for (std::size_t i = 0; i < std::min(ratios.size(), recorded->node.items.size()); ++i) {
      comparison.expect_at(recorded->child(i).at, fmt::format("maxmin {}", i),
                           number(recorded->node.items[i].text).value_or(-1), ratios[i]);
    }
  }
  const JsMoved moved = article_js_moved();
  expect_number(seed, "ring_3_4_pct", moved.added, comparison);
  expect_number(seed, "ring_drop_c_pct", moved.dropped, comparison);
  expect_number(seed, "modulo_3_4_pct", moved.modulo, comparison);
}

// What its ring's points are made of is not known, so there is nothing to compare its figures with.
void python(const Place& seed, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = "seed3_py";
  for (const char* name : {"before", "after_add", "moved_add_pct", "after_drop_node2", "moved_drop_pct"}) {
    const Node* figure = seed.node.find(name);
    if (figure != nullptr) result.not_computed += figure->kind == Node::Kind::list ? figure->items.size() : 1;
  }
  result.problem = "what the article's ring hashes for its points is not known";
}

// "6->8": the share that hash % N moves, over evenly spread hashes: 1 - min(N, M) / lcm(N, M).
void modulo(const Place& figures, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = "modulo_exact_moved_pct";
  Comparison comparison(result);
  for (std::size_t i = 0; i < figures.node.items.size(); ++i) {
    const std::string& change = figures.node.names[i];
    const auto arrow = change.find("->");
    const auto from = base::parse_u64(change.substr(0, arrow));
    const auto to = arrow == std::string::npos ? from : base::parse_u64(change.substr(arrow + 2));
    if (!from || !to || *from == 0 || *to == 0 || *from > 1'000'000 || *to > 1'000'000) {
      result.problem = fmt::format("'{:.40}' is no change of two counts", change);
      continue;
    }
    comparison.expect_at(figures.child(i).at, change, number(figures.node.items[i].text).value_or(-1),
                         modulo_moved_percent(*from, *to));
  }
}

}  // namespace

bool check_articles(const Context& context, const std::string& field, File& out) {
  const Place place = *Place{context.root, ""}.child(field);
  if (place.node.kind != Node::Kind::map) return false;
  if (field == "seed0_go") {
    go(place, out);
  } else if (field == "seed1_php") {
    php(place, out);
  } else if (field == "seed2_js") {
    js(place, out);
  } else if (field == "seed3_py") {
    python(place, out);
  } else if (field == "modulo_exact_moved_pct") {
    modulo(place, out);
  } else {
    return false;
  }
  return true;
}

}  // namespace ringshift::plan::vectors
