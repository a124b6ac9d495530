// The picture in text of how operations overlap.
#include <fmt/format.h>

#include <algorithm>

#include "check/report.h"

namespace ringshift::check {
namespace {

constexpr std::size_t kWidestBar = 60;

// The instants of all operations in order; equal ones once. An unknown end is none.
std::vector<std::int64_t> instants_of(const std::vector<Operation>& operations) {
  std::vector<std::int64_t> instants;
  for (const Operation& op : operations) {
    instants.push_back(op.invoked);
    if (op.outcome == Outcome::answered) instants.push_back(op.returned);
  }
  std::ranges::sort(instants);
  const auto rest = std::ranges::unique(instants);
  instants.erase(rest.begin(), rest.end());
  return instants;
}

}  // namespace

std::vector<std::string> picture(const std::vector<Operation>& operations, std::size_t culprit,
                                 const std::vector<std::string>& proxies) {
  std::vector<std::string> lines;
  if (operations.empty()) return lines;
  const std::vector<std::int64_t> instants = instants_of(operations);
  const std::size_t step = std::clamp<std::size_t>(kWidestBar / instants.size(), 1, 3);
  const std::size_t width = std::min(kWidestBar, step * instants.size()) + 1;
  const auto column = [&](std::int64_t time) {
    const auto rank = static_cast<std::size_t>(std::ranges::lower_bound(instants, time) - instants.begin());
    return step * instants.size() <= kWidestBar ? step * rank : rank * kWidestBar / instants.size();
  };
  const std::int64_t zero = operations[culprit].invoked;
  const auto ms = [&](std::int64_t time) { return static_cast<double>(time - zero) / 1e6; };
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    const bool known = op.outcome == Outcome::answered;
    const std::size_t begin = column(op.invoked);
    const std::size_t end = known ? std::max(column(op.returned), begin + 1) : width;
    std::string bar(width + 1, ' ');
    for (std::size_t c = begin; c <= end; ++c) bar[c] = op.outcome == Outcome::not_executed ? '.' : '-';
    bar[begin] = '|';
    bar[end] = known ? '|' : '?';
    const std::string until = known ? fmt::format("{:10.3f}", ms(op.returned)) : fmt::format("{:>10}", "?");
    const std::string via = op.proxy < proxies.size() ? fmt::format(" via {}", proxies[op.proxy]) : "";
    lines.push_back(fmt::format("{} {} [{:10.3f} .. {}] client {:<2}{} {}", i == culprit ? ">" : " ", bar,
                                ms(op.invoked), until, op.client, via, describe(op)));
  }
  return lines;
}

}  // namespace ringshift::check
