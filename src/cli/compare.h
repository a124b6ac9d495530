// What `ringshift compare` found, and the forms in which it is shown.
//
//   compare.cpp          options, the run
//   compare_keys.cpp     where keys come from: made up, a file, a Redis server
//   compare_table.cpp    the table and CSV
//   compare_json.cpp     JSON
//   compare_html.cpp     one page with charts
//   compare_articles.cpp the articles' claims
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/compare/articles.h"
#include "plan/compare/experiment.h"
#include "plan/compare/skew.h"

namespace ringshift::cli::compare {

using plan::compare::KeySet;

struct KeySource {
  std::uint64_t count = 1'000'000;  // Of keys that are made up.
  std::string file;                 // "-" is standard input.
  std::string redis;                // redis://[user[:password]@]host[:port][/db]
  std::uint64_t sample = 100'000;   // Of the server's keys, at most.
  [[nodiscard]] bool real() const noexcept { return !file.empty() || !redis.empty(); }
};
struct Keys {
  KeySet set;
  std::string source;  // For people, without passwords.
};
// Fails when there are none, or more than a KeySet holds.
[[nodiscard]] Result<Keys> load_keys(const KeySource& source);

struct Report {
  std::string title;  // The change, in a few words.
  plan::compare::Change change;
  std::string keys_source;
  std::size_t key_count = 0;
  double minimum = 0;
  std::vector<plan::compare::Row> rows;
  bool has_skew = false;
  std::string skew_placement;
  std::vector<plan::compare::PrefixLoad> skew;
  std::vector<plan::compare::CurvePoint> curve;  // Empty unless asked for.
};
[[nodiscard]] std::string table(const Report& report);
[[nodiscard]] std::string csv(const Report& report);
[[nodiscard]] std::string json(const Report& report);
[[nodiscard]] std::string html(const Report& report);

// A ring that lives in a Redis sorted set, asked over loopback for each key.
struct SortedSetCost {
  std::uint32_t points = 0;
  double call_us = 0;       // One ZRANGEBYSCORE and its answer.
  double pipelined_us = 0;  // Each of a hundred at a time.
  std::size_t bytes = 0;    // MEMORY USAGE.
};
struct ArticleReport {
  plan::compare::ArticleFigures figures;
  std::size_t members = 0;
  std::vector<plan::compare::LookupCost> lookups;
  std::vector<plan::compare::HashCost> hashes;
  std::vector<SortedSetCost> sorted_sets;
  std::string skipped;  // Why there are no sorted sets.
};
// Fails when a real server's answers are not the ring's.
[[nodiscard]] Result<std::vector<SortedSetCost>> sorted_set_costs(std::size_t members, const KeySet& keys);
[[nodiscard]] std::string table(const ArticleReport& report);
[[nodiscard]] std::string json(const ArticleReport& report);

// Text wrapped at `width` columns, each line after the first indented by `indent`.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = 118);
// "1.2 KB", "345 B": three digits or so.
[[nodiscard]] std::string short_bytes(std::size_t bytes);
[[nodiscard]] std::string short_time(double microseconds);

// The whole text under its final name or not at all: written beside it and renamed. "-" is not a file here.
[[nodiscard]] Status write_whole(const std::string& path, std::string_view text);

}  // namespace ringshift::cli::compare
