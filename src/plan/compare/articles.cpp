#include "plan/compare/articles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "plan/vectors/article_rings.h"

namespace ringshift::plan::compare {
namespace {

using vectors::rounded;

class Collector {
 public:
  explicit Collector(const Progress& progress) : progress_(progress) {}

  void number(std::string pointer, double value) {
    Figure figure{std::move(pointer)};
    figure.number = value;
    out_.figures.push_back(std::move(figure));
  }
  void list(std::string pointer, std::vector<std::uint64_t> values) {
    Figure figure{std::move(pointer), Figure::Kind::list};
    figure.list = std::move(values);
    out_.figures.push_back(std::move(figure));
  }
  void text(std::string pointer, std::string value) {
    Figure figure{std::move(pointer), Figure::Kind::text};
    figure.text = std::move(value);
    out_.figures.push_back(std::move(figure));
  }
  void recorded() { out_.figures.back().computed = false; }
  void claim(std::string article, std::string claim, std::optional<bool> holds, std::string truth) {
    out_.claims.push_back({std::move(article), std::move(claim), std::move(truth), holds});
  }
  // False: somebody wants it to end.
  [[nodiscard]] bool step(double fraction) const { return !progress_ || progress_(fraction); }
  [[nodiscard]] ArticleFigures take() { return std::move(out_); }

 private:
  const Progress& progress_;
  ArticleFigures out_;
};

void go(Collector& out) {
  const double modulo = vectors::article_go_modulo_percent();
  out.number("/seed0_go/modulo_4_5_pct", modulo);
  std::vector<std::string> rows;
  int row = 0;
  for (const int points : {1, 50, 200, 800}) {
    const auto ring = vectors::article_go({{"vnodes", std::to_string(points)}});
    const std::string base = fmt::format("/seed0_go/rows/{}", row++);
    const double ratio = rounded(ring.max_by_min, 2);
    out.number(base + "/v", points);
    out.number(base + "/moved_pct", ring.moved_percent);
    out.number(base + "/maxmin", ratio);
    out.list(base + "/new", ring.after);
    rows.push_back(fmt::format("{}: {:.2f} %, {:.2f}", points, ring.moved_percent, ratio));
  }
  std::vector<std::string> better;
  for (const auto& [hash, name] :
       {std::pair{"md5", "md5_instead_v200"}, {"xxh3", "xxh3_hi32_instead_v200"}}) {
    const auto ring = vectors::article_go({{"hash", hash}, {"vnodes", "200"}});
    const double ratio = rounded(ring.max_by_min, 3);
    out.number(fmt::format("/seed0_go/{}/moved_pct", name), ring.moved_percent);
    out.number(fmt::format("/seed0_go/{}/maxmin", name), ratio);
    better.push_back(fmt::format("{} {:.2f} %, {:.3f}", hash, ring.moved_percent, ratio));
  }
  out.claim("Go, FNV-1a", "4 -> 5 by modulo moves about 80 %", true, fmt::format("{:.2f} %", modulo));
  out.claim(
      "Go, FNV-1a", "at 200 points about 20 % move, max/min is about 1.1", false,
      fmt::format("points: moved, max/min: {}; without a finaliser FNV-1a's points cluster; at 200 with "
                  "{}",
                  fmt::join(rows, "; "), fmt::join(better, ", ")));
}

bool php(Collector& out) {
  const auto example = vectors::article_php_example(100);
  for (std::size_t i = 0; i < example.counts.size(); ++i)
    out.number(fmt::format("/seed1_php/example_100_keys/node{}", i + 1),
               static_cast<double>(example.counts[i]));
  out.text("/seed1_php/key42_before", example.key42_before);
  out.text("/seed1_php/key42_after", example.key42_after);
  struct Run {
    const char* field;
    placement::peers::Options options;
    bool after;  // Recorded too.
  };
  const Run kRuns[] = {{"one_million user:i:profile v160", {{"vnodes", "160"}}, true},
                       {"v1000", {{"vnodes", "1000"}}, true},
                       {"v1", {{"vnodes", "1"}}, false},
                       {"md5_v160", {{"hash", "md5"}, {"vnodes", "160"}}, false}};
  std::vector<vectors::PhpFigures> all;
  for (const Run& run : kRuns) {
    if (!out.step(0.3 + 0.15 * static_cast<double>(all.size()))) return false;
    const vectors::PhpFigures& ring = all.emplace_back(vectors::article_php(run.options));
    const std::string base = fmt::format("/seed1_php/{}", run.field);
    out.list(base + "/old", ring.before);
    out.number(base + "/sd", ring.sd);
    if (run.after) out.list(base + "/new", ring.after);
    out.number(base + "/moved", static_cast<double>(ring.moved));
  }
  constexpr double kPercentOfMillion = 10'000;
  out.claim(
      "PHP, crc32", "a million keys on 160 points: standard deviation 78.6, 4 -> 5 moves 6.23 %", false,
      fmt::format("counts {}: standard deviation {:.0f}; {:.2f} % move, of the 20 % that a balanced change "
                  "needs; with md5 {:.0f} and {:.2f} %",
                  fmt::join(all[0].before, "/"), all[0].sd,
                  static_cast<double>(all[0].moved) / kPercentOfMillion, all[3].sd,
                  static_cast<double>(all[3].moved) / kPercentOfMillion));
  return true;
}

void js(Collector& out) {
  std::vector<std::uint64_t> counts[3];
  double ratios[3] = {};
  const char* const kPoints[] = {"1", "10", "160"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto ring = vectors::article_js(kPoints[i]);
    counts[i] = ring.counts;
    ratios[i] = ring.max_by_min;
    out.list(fmt::format("/seed2_js/v{}", kPoints[i]), ring.counts);
    out.number(fmt::format("/seed2_js/maxmin/{}", i), ring.max_by_min);
  }
  const auto moved = vectors::article_js_moved();
  out.number("/seed2_js/modulo_3_4_pct", moved.modulo);
  out.number("/seed2_js/ring_3_4_pct", moved.added);
  out.number("/seed2_js/ring_drop_c_pct", moved.dropped);
  out.claim("JS, MD5", "3 -> 4: modulo moves 75.21 %, the ring 24.12 %, dropping one 27.46 %", true,
            fmt::format("{:.2f} %, {:.2f} %, {:.2f} %", moved.modulo, moved.added, moved.dropped));
  out.claim("JS, MD5", "max/min 3.66, 2.15, 1.18 with 1, 10, 160 points", true,
            fmt::format("{:.2f}, {:.2f}, {:.2f}: {}; {}; {}", ratios[0], ratios[1], ratios[2],
                        fmt::join(counts[0], "/"), fmt::join(counts[1], "/"), fmt::join(counts[2], "/")));
  out.claim("JS, MD5", "its ring is ketama-like", false,
            "it is not: its words are big-endian and it takes one point of a digest; ketama takes four, "
            "little-endian");
}

// What the ring of this one hashes for its points is not known here, so nothing is computed.
void python(Collector& out) {
  const std::pair<const char*, std::vector<std::uint64_t>> kLists[] = {
      {"before", {3485, 3376, 3139}},
      {"after_add", {2677, 2421, 2534, 2368}},
      {"after_drop_node2", {3252, 3559, 3189}}};
  for (const auto& [name, values] : kLists) {
    out.list(fmt::format("/seed3_py/{}", name), values);
    out.recorded();
  }
  for (const auto& [name, value] : {std::pair{"moved_add_pct", 23.68}, {"moved_drop_pct", 24.21}}) {
    out.number(fmt::format("/seed3_py/{}", name), value);
    out.recorded();
  }
  out.claim(
      "Python, MD5", "a demo of 10,000 keys: 3 -> 4 moves 23.68 %, dropping one 24.21 %", std::nullopt,
      "recorded from the article's own program, not recomputed: what its points are made of is not known "
      "here");
}

void modulo(Collector& out) {
  for (const auto& [from, to] : {std::pair{3U, 4U}, {4U, 5U}, {6U, 8U}, {7U, 8U}, {10U, 11U}})
    out.number(fmt::format("/modulo_exact_moved_pct/{}->{}", from, to),
               vectors::modulo_moved_percent(from, to));
  out.claim("overviews", "6 -> 8 by modulo remaps 87.5 %", false,
            fmt::format("{:g} % (7 -> 8 is {:g} %)", vectors::modulo_moved_percent(6, 8),
                        vectors::modulo_moved_percent(7, 8)));
  constexpr std::uint64_t kSlots = 16'384;
  out.claim("overviews", "6 -> 8 with slots moves 3.1 %", false,
            fmt::format("at least {:g} %: {} of {} slots, for two new members of eight take a quarter",
                        100.0 * 2 / 8, kSlots * 2 / 8, kSlots));
  constexpr double kQps = 100'000, kHits = 0.95, kCold = 0.2, kColdHits = 0.2;
  const double warm = kQps * (1 - kHits);
  const double cold = kQps * ((1 - kCold) * (1 - kHits) + kCold * (1 - kColdHits));
  out.claim("overviews", "100k QPS at 95 % hits, 20 % of the keys cold to 20 % hits", true,
            fmt::format("origin {:.0f} -> {:.0f} "
                        "QPS ({:.0f}x), hit rate {:.0f} %",
                        warm, cold, cold / warm, 100 * (1 - cold / kQps)));
}

}  // namespace

Result<ArticleFigures> article_figures(const Progress& progress) {
  const Error stopped{ErrorKind::overloaded, "interrupted: nothing was written"};
  Collector out(progress);
  if (!out.step(0)) return std::unexpected(stopped);
  go(out);
  if (!php(out)) return std::unexpected(stopped);
  js(out);
  python(out);
  modulo(out);
  return out.take();
}

}  // namespace ringshift::plan::compare
