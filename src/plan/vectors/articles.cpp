// seed_figures.json: the experiments of published articles, run again by their own rings.
//
//   Go      100,000 keys order:I, nodes node-0..4, 4 -> 5
//   PHP     1,000,000 keys user:I:profile, nodes redis-node1:6379..., 4 -> 5
//   JS      10,000 keys user:I:profile, nodes cache-a..d, 3 -> 4
//   Python  not computed: its cases fail
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/encoding.h"
#include "plan/vectors/reading.h"

namespace ringshift::plan::vectors {
namespace {

struct Ring {
  std::string_view algorithm;
  std::vector<std::string> names;
  Options options;
};

struct Keys {
  std::string before, after;  // Around the number.
  std::uint64_t count = 0;
};

// Each key's owner; empty when the ring cannot be built (the case then fails by its figures).
std::vector<placement::MemberIndex> owners_of(const Ring& ring, const Keys& keys) {
  std::vector<Server> servers;
  for (const std::string& name : ring.names) {
    Server server;
    server.label = name;
    server.index = static_cast<placement::MemberIndex>(servers.size());
    servers.push_back(std::move(server));
  }
  const auto peer = build(ring.algorithm, ring.options, servers);
  std::vector<placement::MemberIndex> owners;
  for (std::uint64_t i = 0; peer && i < keys.count; ++i) {
    const std::string key = keys.before + std::to_string(i) + keys.after;
    owners.push_back((*peer)->owner_of((*peer)->hash(key)));
  }
  return owners;
}

std::vector<std::uint64_t> counts_of(const std::vector<placement::MemberIndex>& owners, std::size_t members) {
  std::vector<std::uint64_t> counts(members, 0);
  for (const auto owner : owners) ++counts[owner];
  return counts;
}

std::uint64_t moved(const std::vector<placement::MemberIndex>& a,
                    const std::vector<placement::MemberIndex>& b) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) out += a[i] != b[i] ? 1U : 0U;
  return out;
}

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}
double percent(std::uint64_t part, std::uint64_t whole_count) {
  return rounded(100.0 * static_cast<double>(part) / static_cast<double>(whole_count), 2);
}
double max_by_min(const std::vector<std::uint64_t>& counts) {
  return static_cast<double>(std::ranges::max(counts)) /
         static_cast<double>(std::max<std::uint64_t>(1, std::ranges::min(counts)));
}

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

std::vector<std::string> names(const std::string& before, const std::string& after, int first, int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back(before + std::to_string(first + i) + after);
  return out;
}

void go(const Place& seed, File& out) {
  const Keys keys{"order:", "", 100'000};
  const auto run = [&](const std::string& name, const Options& options, const Place& figures) {
    Case& result = out.cases.emplace_back();
    result.name = name;
    Comparison comparison(result);
    const auto before = owners_of({"article-go", names("node-", "", 0, 4), options}, keys);
    const auto after = owners_of({"article-go", names("node-", "", 0, 5), options}, keys);
    const auto counts = counts_of(after, 5);
    const int digits = has(figures.node, "v") ? 2 : 3;
    expect_number(figures, "moved_pct", percent(moved(before, after), keys.count), comparison);
    expect_number(figures, "maxmin", rounded(max_by_min(counts), digits), comparison);
    expect_list(figures, "new", counts, comparison);
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
  std::uint64_t changed = 0;
  const auto ring = build("article-go", {}, {});
  for (std::uint64_t i = 0; ring && i < keys.count; ++i) {
    const std::uint64_t hash = (*ring)->hash("user:" + std::to_string(i));  // Other keys than its rings'.
    changed += hash % 4 != hash % 5 ? 1U : 0U;
  }
  expect_number(seed, "modulo_4_5_pct", percent(changed, keys.count), comparison);
}

// The article's first example: where 100 keys are, by the names of its nodes, and whether one of them moves.
void php_example(const Place& seed, File& out) {
  if (!has(seed.node, "example_100_keys") && !has(seed.node, "key42_before")) return;
  Case& result = out.cases.emplace_back();
  result.name = "article-php example";
  Comparison comparison(result);
  const auto four = names("redis-node", ":6379", 1, 4), five = names("redis-node", ":6379", 1, 5);
  const Keys hundred{"user:", ":profile", 100};
  const auto before = owners_of({"article-php", four, {}}, hundred),
             after = owners_of({"article-php", five, {}}, hundred);
  const auto counts = counts_of(before, 4);
  if (const auto nodes = seed.child("example_100_keys")) {
    for (std::size_t i = 0; i < nodes->node.items.size() && nodes->node.kind == Node::Kind::map; ++i) {
      const std::string& name = nodes->node.names[i];
      const auto at =
          name.starts_with("node") ? base::parse_u64(std::string_view(name).substr(4)) : std::nullopt;
      const bool known = at && *at >= 1 && *at <= counts.size();
      comparison.expect_at(nodes->child(i).at, name,
                           base::parse_u64(nodes->node.items[i].text).value_or(~0ULL),
                           known ? counts[*at - 1] : ~std::uint64_t{0});
    }
  }
  constexpr std::size_t kKey = 42;
  for (const bool grown : {false, true}) {
    const char* name = grown ? "key42_after" : "key42_before";
    const auto& owners = grown ? after : before;
    if (!has(seed.node, name) || owners.size() <= kKey) continue;
    comparison.expect_at(seed.at + step(name), name, text(seed.node, name),
                         (grown ? five : four)[owners[kKey]]);
  }
}

void php(const Place& seed, File& out) {
  const Keys million{"user:", ":profile", 1'000'000};
  const auto run = [&](const std::string& field, const Options& options) {
    const auto figures = seed.child(field);
    if (!figures) return;
    Case& result = out.cases.emplace_back();
    result.name = "article-php " + field;
    Comparison comparison(result);
    const auto before = owners_of({"article-php", names("redis-node", ":6379", 1, 4), options}, million);
    const auto after = owners_of({"article-php", names("redis-node", ":6379", 1, 5), options}, million);
    const auto counts = counts_of(before, 4);
    double squares = 0;
    for (const auto each : counts) squares += std::pow(static_cast<double>(each) - 250'000, 2);
    expect_list(*figures, "old", counts, comparison);
    expect_list(*figures, "new", counts_of(after, 5), comparison);
    expect_number(*figures, "sd", rounded(std::sqrt(squares / 4), 1), comparison);
    expect_number(*figures, "moved", static_cast<double>(moved(before, after)), comparison);
  };
  run("one_million user:i:profile v160", {{"vnodes", "160"}});
  run("v1000", {{"vnodes", "1000"}});
  run("v1", {{"vnodes", "1"}});
  run("md5_v160", {{"hash", "md5"}, {"vnodes", "160"}});
  php_example(seed, out);
}

void js(const Place& seed, File& out) {
  const Keys keys{"user:", ":profile", 10'000};
  const std::vector<std::string> abc{"cache-a", "cache-b", "cache-c"};
  const std::vector<std::string> abcd{"cache-a", "cache-b", "cache-c", "cache-d"};
  Case& result = out.cases.emplace_back();
  result.name = "article-js";
  Comparison comparison(result);
  std::vector<double> ratios;
  for (const char* points : {"1", "10", "160"}) {
    const auto counts = counts_of(owners_of({"article-js", abcd, {{"vnodes", points}}}, keys), 4);
    expect_list(seed, std::string("v") + points, counts, comparison);
    ratios.push_back(rounded(max_by_min(counts), 2));
  }
  if (const auto recorded = seed.child("maxmin")) {
    for (std::size_t i = 0; i < std::min(ratios.size(), recorded->node.items.size()); ++i) {
      comparison.expect_at(recorded->child(i).at, fmt::format("maxmin {}", i),
                           number(recorded->node.items[i].text).value_or(-1), ratios[i]);
    }
  }
  const auto three = owners_of({"article-js", abc, {}}, keys),
             four = owners_of({"article-js", abcd, {}}, keys);
  expect_number(seed, "ring_3_4_pct", percent(moved(three, four), keys.count), comparison);
  // Dropping c: its keys move, and the others stay.
  const auto without = owners_of({"article-js", {"cache-a", "cache-b", "cache-d"}, {}}, keys);
  std::uint64_t dropped = 0;
  constexpr placement::MemberIndex kOld[] = {0, 1, 3};
  for (std::size_t i = 0; i < std::min(four.size(), without.size()); ++i)
    dropped += kOld[without[i]] != four[i] ? 1U : 0U;
  expect_number(seed, "ring_drop_c_pct", percent(dropped, keys.count), comparison);
  const auto ring = build("article-js", {}, {});
  std::uint64_t changed = 0;
  for (std::uint64_t i = 0; ring && i < keys.count; ++i) {
    const std::uint64_t hash = (*ring)->hash(keys.before + std::to_string(i) + keys.after);
    changed += hash % 3 != hash % 4 ? 1U : 0U;
  }
  expect_number(seed, "modulo_3_4_pct", percent(changed, keys.count), comparison);
}

// What its ring's points are made of is not known: every figure counts as asked, and none as matched.
void python(const Place& seed, File& out) {
  Case& result = out.cases.emplace_back();
  result.name = "seed3_py";
  for (const char* name : {"before", "after_add", "moved_add_pct", "after_drop_node2", "moved_drop_pct"}) {
    const Node* figure = seed.node.find(name);
    if (figure != nullptr) result.asked += figure->kind == Node::Kind::list ? figure->items.size() : 1;
  }
  result.problem = "not computed here: what the article's ring hashes for its points is not known";
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
    const double kept = static_cast<double>(std::min(*from, *to)) / static_cast<double>(std::lcm(*from, *to));
    comparison.expect_at(figures.child(i).at, change, number(figures.node.items[i].text).value_or(-1),
                         rounded(100 * (1 - kept), 4));
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
