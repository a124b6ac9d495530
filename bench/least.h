// How the benchmarks report: every figure is the least of its repetitions, since a machine that does other
// work too only ever adds time; and after the table come the project's targets, each with what was measured.
//
// The least of a run is compared with the least of another in the same run: repetitions of all benchmarks are
// interleaved at random, so that a slow minute is shared.
#pragma once
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ringshift::bench {

class LeastReporter final : public benchmark::ConsoleReporter {
 public:
  // Target: figure <= limit; with `of` the figure is of's time divided by name's, and must be >= limit.
  struct Target {
    std::string name, of;
    double limit = 0;
  };
  LeastReporter(OutputOptions options, std::vector<Target> targets)
      : ConsoleReporter(options), targets_(std::move(targets)) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Aggregate && run.aggregate_name == "least")
        least_[run.run_name.str()] = {run.GetAdjustedCPUTime(), run.time_unit};
    }
    ConsoleReporter::ReportRuns(runs);
  }

  void Finalize() override {
    ConsoleReporter::Finalize();
    for (const Target& target : targets_) {
      const auto found = least_.find(target.name), other = least_.find(target.of);
      if (found == least_.end() || (!target.of.empty() && other == least_.end())) continue;
      const double time = found->second.time;
      const double figure = target.of.empty() ? time : other->second.time / time;
      const bool met = target.of.empty() ? figure <= target.limit : figure >= target.limit;
      const std::string what = target.of.empty() ? target.name : target.of + " : " + target.name;
      const char* unit = target.of.empty() ? benchmark::GetTimeUnitString(found->second.unit) : "x ";
      GetOutputStream() << line(what, figure, unit, target, met);
    }
  }

 private:
  struct Least {
    double time = 0;
    benchmark::TimeUnit unit = benchmark::kNanosecond;
  };

  static std::string line(const std::string& what, double figure, const char* unit, const Target& target,
                          bool met) {
    char text[200];
    std::snprintf(text, sizeof text, "%-72s %7.2f %s  target %s %-5g %s\n", what.c_str(), figure, unit,
                  target.of.empty() ? "<=" : ">=", target.limit, met ? "met" : "MISSED");
    return text;
  }

  std::vector<Target> targets_;
  std::map<std::string, Least, std::less<>> least_;
};

inline void report_least(benchmark::internal::Benchmark* each) {
  each->ComputeStatistics("least",
                          [](const std::vector<double>& all) { return *std::ranges::min_element(all); });
}

// main(): the flags of Google Benchmark, over defaults that suit a busy machine.
inline int run(int argc, char** argv, std::vector<LeastReporter::Target> targets) {
  std::vector<std::string> words{argv[0], "--benchmark_repetitions=9", "--benchmark_min_time=0.01",
                                 "--benchmark_enable_random_interleaving=true",
                                 "--benchmark_display_aggregates_only=true"};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;
  const bool plain = std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word.starts_with("--benchmark_format=") && word != "--benchmark_format=console";
  });
  if (plain) {
    benchmark::RunSpecifiedBenchmarks();
  } else {
    LeastReporter reporter(benchmark::ConsoleReporter::OO_Tabular, std::move(targets));
    benchmark::RunSpecifiedBenchmarks(&reporter);
  }
  benchmark::Shutdown();
  return 0;
}

}  // namespace ringshift::bench
