#include "plan/vectors/article_rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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

double percent(std::uint64_t part, std::uint64_t whole_count) {
  return rounded(100.0 * static_cast<double>(part) / static_cast<double>(whole_count), 2);
}
double max_by_min(const std::vector<std::uint64_t>& counts) {
  return static_cast<double>(std::ranges::max(counts)) /
         static_cast<double>(std::max<std::uint64_t>(1, std::ranges::min(counts)));
}

std::vector<std::string> names(const std::string& before, const std::string& after, int first, int count) {
  std::vector<std::string> out;
  out.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) out.push_back(fmt::format("{}{}{}", before, first + i, after));
  return out;
}

const Keys kGoKeys{"order:", "", 100'000};
const Keys kGoModuloKeys{"user:", "", 100'000};  // Other keys than its rings'.
const Keys kPhpKeys{"user:", ":profile", 1'000'000};
const Keys kJsKeys{"user:", ":profile", 10'000};

// The share of keys that `hash % from` and `hash % to` place differently.
double modulo_percent(std::string_view algorithm, const Keys& keys, std::uint64_t from, std::uint64_t to) {
  const auto ring = build(algorithm, {}, {});
  std::uint64_t changed = 0;
  for (std::uint64_t i = 0; ring && i < keys.count; ++i) {
    const std::uint64_t hash = (*ring)->hash(keys.before + std::to_string(i) + keys.after);
    changed += hash % from != hash % to ? 1U : 0U;
  }
  return percent(changed, keys.count);
}

std::vector<std::string> php_nodes(int count) { return names("redis-node", ":6379", 1, count); }

}  // namespace

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}

GoFigures article_go(const Options& options) {
  const auto before = owners_of({"article-go", names("node-", "", 0, 4), options}, kGoKeys);
  const auto after = owners_of({"article-go", names("node-", "", 0, 5), options}, kGoKeys);
  GoFigures out;
  out.after = counts_of(after, 5);
  out.moved_percent = percent(moved(before, after), kGoKeys.count);
  out.max_by_min = max_by_min(out.after);
  return out;
}

double article_go_modulo_percent() { return modulo_percent("article-go", kGoModuloKeys, 4, 5); }

PhpFigures article_php(const Options& options) {
  const auto before = owners_of({"article-php", php_nodes(4), options}, kPhpKeys);
  const auto after = owners_of({"article-php", php_nodes(5), options}, kPhpKeys);
  PhpFigures out;
  out.before = counts_of(before, 4);
  out.after = counts_of(after, 5);
  out.moved = moved(before, after);
  double squares = 0;
  for (const auto each : out.before) squares += std::pow(static_cast<double>(each) - 250'000, 2);
  out.sd = rounded(std::sqrt(squares / 4), 1);
  return out;
}

PhpExample article_php_example(std::uint64_t count) {
  constexpr std::size_t kKey = 42;
  const Keys keys{kPhpKeys.before, kPhpKeys.after, std::max<std::uint64_t>(count, kKey + 1)};
  auto before = owners_of({"article-php", php_nodes(4), {}}, keys);
  const auto after = owners_of({"article-php", php_nodes(5), {}}, keys);
  PhpExample out;
  if (before.size() <= kKey || after.size() <= kKey) return out;
  out.key42_before = php_nodes(4)[before[kKey]];
  out.key42_after = php_nodes(5)[after[kKey]];
  before.resize(count);
  out.counts = counts_of(before, 4);
  return out;
}

JsFigures article_js(const std::string& vnodes) {
  JsFigures out;
  out.counts = counts_of(
      owners_of({"article-js", {"cache-a", "cache-b", "cache-c", "cache-d"}, {{"vnodes", vnodes}}}, kJsKeys),
      4);
  out.max_by_min = rounded(max_by_min(out.counts), 2);
  return out;
}

JsMoved article_js_moved() {
  const auto three = owners_of({"article-js", {"cache-a", "cache-b", "cache-c"}, {}}, kJsKeys);
  const auto four = owners_of({"article-js", {"cache-a", "cache-b", "cache-c", "cache-d"}, {}}, kJsKeys);
  // Dropping c: its keys move, and the others stay.
  const auto without = owners_of({"article-js", {"cache-a", "cache-b", "cache-d"}, {}}, kJsKeys);
  std::uint64_t dropped = 0;
  constexpr placement::MemberIndex kOld[] = {0, 1, 3};
  for (std::size_t i = 0; i < std::min(four.size(), without.size()); ++i)
    dropped += kOld[without[i]] != four[i] ? 1U : 0U;
  return {modulo_percent("article-js", kJsKeys, 3, 4), percent(moved(three, four), kJsKeys.count),
          percent(dropped, kJsKeys.count)};
}

double modulo_moved_percent(std::uint64_t from, std::uint64_t to) {
  const double kept = static_cast<double>(std::min(from, to)) / static_cast<double>(std::lcm(from, to));
  return rounded(100 * (1 - kept), 4);
}

}  // namespace ringshift::plan::vectors
